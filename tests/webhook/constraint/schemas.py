"""Schemas of parameters, and whether the API server takes the CRD that is made of one."""

from tests import policies
from tests.cluster import ApiError, Cluster
from webhook.constraint.client import Client
from webhook.constraint.drivers.rego import RegoDriver
from webhook.constraint.errors import InvalidTemplate
from webhook.constraint.targets.admission import AdmissionTarget

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


def template(kind, schema):
    rego = 'package a\nviolation[{"msg": "no"}] { false }'
    return policies.template(kind, rego, schema=schema, metadata={"uid": "t"})


def created_crd(kind, schema):
    """The CRD of a template with this schema, or None where we refuse to make one."""
    client = Client(targets=(AdmissionTarget(),), drivers=(RegoDriver(),))
    try:
        return client.create_crd(template(kind, schema))
    except InvalidTemplate:
        return None


def crd_of(kind, schema):
    """The CRD that we would make of it, whatever is wrong with it."""
    crd = created_crd(kind, {"type": "object"})
    for version in crd["spec"]["versions"]:
        version["schema"] = {
            "openAPIV3Schema": {
                "type": "object",
                "properties": {"spec": {"type": "object", "properties": {"parameters": schema}}},
            }
        }
    return crd


def is_taken(cluster: Cluster, crd):
    try:
        cluster.api.request("POST", f"{CRDS}?dryRun=All", crd)
    except ApiError as error:
        if error.status not in (400, 422):
            raise
        return False
    return True
