"""A real API server grants the accounts of the manifests what they need, and nothing else."""

import base64
import json
import ssl
import urllib.error
import urllib.request
from pathlib import Path

import pytest
import yaml

from tests.cluster import Api
from tests.manifests import CONFIGURATION, NAMESPACE
from tests.patience import PATIENCE_SECONDS, until
from tests.webhook.generation.planned import constraint, plan_of, template

CERTIFICATE = ("", "secrets", "waddle-webhook-server-cert", NAMESPACE)
KEYS = ("", "secrets", "waddle-revision-keys", NAMESPACE)
WEBHOOKS = (
    "admissionregistration.k8s.io",
    "validatingwebhookconfigurations",
    CONFIGURATION,
    "",
)
STATUSES = ("status.gatekeeper.sh", "constraintpodstatuses", "", NAMESPACE)

REVISIONS = ("policy.waddle.dev", "policyrevisions", "", "")

NEEDED = [
    # Events of admissions, as Gatekeeper's.
    *((verb, ("", "events", "", NAMESPACE)) for verb in ("create", "patch")),
    ("list", ("templates.gatekeeper.sh", "constrainttemplates", "", "")),
    ("watch", ("constraints.gatekeeper.sh", "anything", "", "")),
    ("watch", ("syncset.gatekeeper.sh", "syncsets", "", "")),
    ("watch", ("", "namespaces", "", "")),
    *((verb, ("externaldata.gatekeeper.sh", "providers", "", "")) for verb in ("list", "watch")),
    ("update", ("externaldata.gatekeeper.sh", "providers/status", "p", "")),
    ("create", ("status.gatekeeper.sh", "providerpodstatuses", "", NAMESPACE)),
    ("create", ("authorization.k8s.io", "subjectaccessreviews", "", "")),
    ("watch", ("config.gatekeeper.sh", "configs", "", "")),
    ("update", ("config.gatekeeper.sh", "configs/status", "config", NAMESPACE)),
    ("update", ("templates.gatekeeper.sh", "constrainttemplates/status", "t", "")),
    ("update", ("templates.gatekeeper.sh", "constrainttemplates/finalizers", "t", "")),
    ("update", ("constraints.gatekeeper.sh", "anything/status", "c", "")),
    ("create", ("apiextensions.k8s.io", "customresourcedefinitions", "", "")),
    ("update", ("apiextensions.k8s.io", "customresourcedefinitions", "c", "")),
    *((verb, REVISIONS) for verb in ("list", "watch", "create", "patch", "delete")),
    *((verb, ("", "events", "", "default")) for verb in ("create", "patch")),
    # Of exceptions, which are in namespaces.
    *((verb, ("", "events", "", "elsewhere")) for verb in ("create", "patch")),
    *((verb, STATUSES) for verb in ("list", "watch", "create", "update", "delete")),
    ("watch", ("", "pods", "", NAMESPACE)),
    *((verb, CERTIFICATE) for verb in ("get", "list", "watch", "update")),
    *((verb, KEYS) for verb in ("get", "update")),
    *((verb, WEBHOOKS) for verb in ("get", "list", "watch", "update")),
    # Which policies nobody is asked about is seen by all of them.
    *(
        (verb, (WEBHOOKS[0], plural, "", ""))
        for plural in ("validatingwebhookconfigurations", "mutatingwebhookconfigurations")
        for verb in ("list", "watch")
    ),
    *(
        (verb, (WEBHOOKS[0], plural, "", ""))
        for plural in ("validatingadmissionpolicies", "validatingadmissionpolicybindings")
        for verb in ("get", "list", "watch", "create", "update", "delete")
    ),
]
FORBIDDEN = [
    ("list", ("", "secrets", "", NAMESPACE)),
    ("get", ("", "secrets", "other", NAMESPACE)),
    ("get", ("", "secrets", "waddle-webhook-server-cert", "default")),
    ("create", ("", "secrets", "", NAMESPACE)),
    ("delete", CERTIFICATE),
    *((verb, KEYS) for verb in ("delete", "patch", "create")),
    ("list", ("", "secrets", "", "")),
    ("update", (*WEBHOOKS[:2], "another", "")),
    ("create", (*WEBHOOKS[:2], "", "")),
    ("delete", WEBHOOKS),
    ("delete", ("apiextensions.k8s.io", "customresourcedefinitions", "c", "")),
    ("update", ("templates.gatekeeper.sh", "constrainttemplates", "t", "")),
    ("delete", ("constraints.gatekeeper.sh", "anything", "c", "")),
    ("update", REVISIONS),
    ("delete", ("", "events", "", NAMESPACE)),
    ("delete", ("", "events", "", "elsewhere")),
    ("delete", ("", "events", "", "default")),
    ("create", ("", "pods", "", NAMESPACE)),
    ("delete", ("", "pods", "p", NAMESPACE)),
    ("create", ("status.gatekeeper.sh", "constraintpodstatuses", "", "default")),
    ("update", ("apps", "deployments", "waddle-webhook", NAMESPACE)),
    ("impersonate", ("", "users", "admin", "")),
    ("escalate", ("rbac.authorization.k8s.io", "clusterroles", "", "")),
]


AUDIT_NEEDED = [
    ("list", ("", "pods", "", "")),
    ("list", ("", "secrets", "", "")),
    ("list", ("anything.example", "anything", "", "")),
    ("watch", ("constraints.gatekeeper.sh", "anything", "", "")),
    ("update", ("constraints.gatekeeper.sh", "anything/status", "c", "")),
    *((verb, ("", "events", "", "anywhere")) for verb in ("create", "patch")),
    *((verb, STATUSES) for verb in ("list", "watch", "create", "update", "delete")),
]
AUDIT_FORBIDDEN = [
    ("update", ("constraints.gatekeeper.sh", "anything", "c", "")),
    ("update", ("templates.gatekeeper.sh", "constrainttemplates/status", "t", "")),
    ("create", ("", "pods", "", NAMESPACE)),
    ("delete", ("", "pods", "p", "")),
    ("delete", ("", "events", "", "default")),
    ("update", CERTIFICATE),
    ("update", WEBHOOKS),
    ("create", ("status.gatekeeper.sh", "constraintpodstatuses", "", "default")),
    ("impersonate", ("", "users", "admin", "")),
]


def allowed(
    api: Api, verb: str, of_resource: tuple[str, str, str, str], account: str = "waddle"
) -> bool:
    group, resource, name, namespace = of_resource
    resource, _, subresource = resource.partition("/")
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SubjectAccessReview",
        "spec": {
            "user": f"system:serviceaccount:{NAMESPACE}:{account}",
            "groups": ["system:serviceaccounts", "system:authenticated"],
            "resourceAttributes": {
                "verb": verb,
                "group": group,
                "resource": resource,
                "subresource": subresource,
                "name": name,
                "namespace": namespace,
            },
        },
    }
    answer = api.request("POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", review)
    return bool(answer["status"]["allowed"])


@pytest.fixture(scope="module")
def granted(installed: Api) -> Api:
    """From when the API server goes by all that was written: it hears of roles a moment later."""

    def missing() -> list[tuple[str, tuple[str, str, str, str]]]:
        waddle = [case for case in NEEDED if not allowed(installed, *case)]
        return waddle + [
            case for case in AUDIT_NEEDED if not allowed(installed, *case, "waddle-audit")
        ]

    until(lambda: not missing(), lambda: f"these rights: {missing()}")
    return installed


def test_the_service_account_may_do_what_it_must(granted):
    assert [case for case in NEEDED if not allowed(granted, *case)] == []


def test_the_service_account_may_do_nothing_else(granted):
    assert [case for case in FORBIDDEN if allowed(granted, *case)] == []


def test_the_audit_s_account_reads_everything_and_writes_what_it_says(granted):
    unmet = [case for case in AUDIT_NEEDED if not allowed(granted, *case, "waddle-audit")]
    beyond = [case for case in AUDIT_FORBIDDEN if allowed(granted, *case, "waddle-audit")]
    assert (unmet, beyond) == ([], [])


@pytest.fixture(scope="module")
def ask(granted, cluster):
    """Requests as the service account, by its token: status code and body of the answers."""
    token = granted.request(
        "POST",
        f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts/waddle/token",
        {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}},
    )["status"]["token"]
    context = ssl.create_default_context()
    context.load_verify_locations(cadata=authority_of(cluster.kubeconfig))

    def ask(method, path, body=None):
        request = urllib.request.Request(
            f"{cluster.server}{path}",
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Authorization": f"Bearer {token}", "Content-Type": "application/json"},
        )
        try:
            with urllib.request.urlopen(
                request, timeout=PATIENCE_SECONDS, context=context
            ) as answer:
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as error:
            with error:
                return error.code, json.load(error)

    return ask


def test_one_secret_can_be_watched_without_the_right_to_all(ask):
    """A field selector of its name is what the rule's resourceNames allow."""
    secrets = f"/api/v1/namespaces/{NAMESPACE}/secrets"
    status, found = ask("GET", f"{secrets}?fieldSelector=metadata.name={CERTIFICATE[2]}")
    assert (status, len(found["items"])) == (200, 1)
    assert ask("GET", secrets)[0] == 403


def test_a_policy_that_reads_constraints_and_its_binding_can_be_made(ask):
    """The API server asks beside the verb whether who makes them may read the parameters."""
    plan = plan_of(template(), constraint())
    policies, bindings = (
        f"/apis/{WEBHOOKS[0]}/v1/{plural}"
        for plural in ("validatingadmissionpolicies", "validatingadmissionpolicybindings")
    )
    (policy,), (binding,) = plan.policies.values(), plan.bindings.values()
    assert "paramKind" in policy["spec"]
    assert ask("POST", f"{policies}?dryRun=All", policy)[0] == 201
    # No such owner exists here, and the garbage collector would take the policy before its binding.
    del policy["metadata"]["ownerReferences"]
    assert ask("POST", policies, policy)[0] == 201
    try:
        assert ask("POST", f"{bindings}?dryRun=All", binding)[0] == 201
    finally:
        assert ask("DELETE", f"{policies}/{policy['metadata']['name']}")[0] == 200


def authority_of(kubeconfig: Path) -> str:
    found = yaml.safe_load(kubeconfig.read_text())["clusters"][0]["cluster"]
    return base64.b64decode(found["certificate-authority-data"]).decode()
