"""A cluster with something to see: who is behind, a roll-out, a mutator, a group, exceptions."""

from typing import Any

import yaml

from tests.behaviour.serving import REQUIRED_LABELS
from tests.policies import exception
from tests.webhook.console.listing import Listing
from webhook.api import pod_status
from webhook.api.pod_status import Pod, StatusError, StatusSubject
from webhook.cli.cluster_access import EXTENSIONS, TEMPLATES
from webhook.cluster.kinds import PODS
from webhook.controllers.status_kinds import status_resource
from webhook.policy_kinds.known import constraints_of
from webhook.policy_kinds.table import CONSTRAINT_GROUPS, EXCEPTION_KINDS

KIND = "RequiredLabel"
NAMESPACE = "waddle-system"
REPLICAS = ("waddle-webhook-0", "waddle-webhook-1", "waddle-webhook-2")
SINCE = "2026-11-22T08:00:00Z"
FAULT = "spec.parameters.label: expected a string, got 7"

Object = dict[str, Any]

TEMPLATE: Object = yaml.safe_load(REQUIRED_LABELS)
EXCEPTED = {
    "kinds": [{"apiGroups": ["apps"], "kinds": ["Deployment"]}],
    "excludedNamespaces": ["legacy-billing"],
}
"""A match with an exception."""

MUTATOR: Object = {
    "apiVersion": "mutations.gatekeeper.sh/v1",
    "kind": "Assign",
    "spec": {
        "applyTo": [{"groups": [""], "versions": ["v1"], "kinds": ["Pod"]}],
        "location": "spec.containers[name: *].imagePullPolicy",
        "parameters": {"assign": {"value": "Always"}},
    },
}


GROUP: Object = {
    "spec": {
        "match": {"kinds": [{"apiGroups": [""], "kinds": ["ConfigMap"]}]},
        "enforcementAction": "warn",
        "members": {
            "owner": {"kind": KIND, "parameters": {"label": "owner"}},
            "team": {"kind": KIND, "parameters": {"label": "team"}},
        },
        "expression": "owner() || team()",
    },
}

EXCEPTIONS: dict[str, Object] = {
    "moving": {"state": "Active", "message": "it ends at 2098-01-01T00:00:00Z", "lastUsed": SINCE},
    "forgotten": {"state": "Unused", "message": "it has excused nothing for 40 days"},
}
"""Their statuses, by their names."""


def constraint(name: str, **fields: Any) -> Object:
    """A constraint of the template."""
    found: Object = {
        "apiVersion": "constraints.gatekeeper.sh/v1beta1",
        "kind": KIND,
        "spec": {"parameters": {"label": "owner"}, "match": EXCEPTED},
        **fields,
    }
    return found | {"metadata": named(name, **fields.pop("metadata", {}))}


def named(name: str, **more: Any) -> Object:
    """The metadata of an object of a first generation."""
    return {"name": name, "uid": f"u-{name}", "generation": 1, **more}


def rolled_out() -> Object:
    """A constraint in the second stage of its roll-out."""
    steps = [
        {"action": "dryrun", "since": "2026-11-20T08:00:00Z"},
        {"action": "warn", "since": "2026-11-21T08:04:00Z"},
    ]
    record = {
        "observedGeneration": 1,
        "state": "Progressing",
        "action": "warn",
        "steps": steps,
        "auditedViolations": 3,
        "increasedAt": "2026-11-20T17:30:00Z",
    }
    annotations = {"waddle.dev/rollout": "dryrun after=24h, warn quiet=24h"}
    found = constraint("deployments-have-owners", status={"rollout": record})
    found["metadata"]["annotations"] = annotations
    return found


def fill(listing: Listing) -> None:
    """Have all of it."""
    template = TEMPLATE | {"metadata": named("requiredlabel")}
    constraints = [rolled_out(), constraint("pods-have-teams")]
    group = GROUP | {
        "apiVersion": CONSTRAINT_GROUPS.gvk.group_version,
        "kind": CONSTRAINT_GROUPS.kind,
        "metadata": named("either-label"),
    }
    listing.put(CONSTRAINT_GROUPS.resource, group)
    for index, (name, status) in enumerate(EXCEPTIONS.items()):
        ends = f"{2098 + index}-01-01T00:00:00Z"
        made = exception(name, "ConstraintGroup/either-label", namespace="shop", expires=ends)
        listing.put(EXCEPTION_KINDS[0].resource, made | {"status": status})
    mutator = MUTATOR | {"metadata": named("always-pull")}
    listing.put(TEMPLATES, template)
    listing.put(constraints_of(KIND), *constraints)
    (assign,) = (one for one in EXTENSIONS if one.gvk.kind == "Assign")
    listing.put(assign, mutator)
    for name in REPLICAS:
        ready = {"type": "Ready", "status": "True"}
        labels = {"app.kubernetes.io/name": "waddle", "gatekeeper.sh/operation": "webhook"}
        metadata = {"name": name, "namespace": NAMESPACE, "uid": f"u-{name}", "labels": labels}
        status = {"phase": "Running", "conditions": [ready]}
        listing.put(PODS, {"metadata": metadata, "status": status})
        write_status(listing, name, pod_status.status_subject(pod_status.TEMPLATE, template))
        for item in (*constraints, group):
            behind = name == REPLICAS[-1] and item is constraints[-1]
            write_status(
                listing,
                name,
                pod_status.status_subject(pod_status.CONSTRAINT, item),
                fault=FAULT if behind else "",
            )
        write_status(listing, name, pod_status.status_subject(pod_status.MUTATOR, mutator))


def write_status(
    listing: Listing, replica: str, subject: StatusSubject, *, fault: str = ""
) -> None:
    """Writes a replica's status of an object."""
    made = pod_status.pod_status(
        Pod(replica, NAMESPACE, f"u-{replica}", ("webhook",)),
        subject,
        errors=[StatusError("invalid", fault)] if fault else (),
        enforced=None if subject.status is pod_status.TEMPLATE else not fault,
        additions={"since": SINCE, "activeGeneration": 1},
    )
    listing.put(status_resource(subject.status), made)
