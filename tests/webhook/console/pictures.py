"""Pictures made up for tests: as hostile, as empty and as large as what a console may meet."""

from typing import Any

from tests import policies
from webhook.api.revision import PolicyRevision
from webhook.console.picture import (
    Picture,
    PictureState,
    ReplicaPod,
    ReplicaStanding,
    ShownCertificate,
    ShownPolicy,
    ShownViolation,
)

SCRIPT = "<script>alert(1)</script>"
QUOTES = "\"'><img src=x onerror=alert(1)>"
LONG = "n" * 253
RIGHT_TO_LEFT = "שלום-عالم"
TURNING = "safe\u202egnp.exe"
HOSTILE = (SCRIPT, QUOTES, LONG, RIGHT_TO_LEFT, TURNING, "a b&c=d#e", "../../etc", "{{ 7 * 7 }}")


def constraint(
    name: str, *, kind: str = "RequiredLabel", state: PictureState = "active", **fields: Any
) -> ShownPolicy:
    document = policies.constraint(kind, name, kinds=["Pod"], parameters={"label": name})
    return shown_policy("constraint", kind, name, document, state, action="deny", **fields)


def template(
    name: str, *, rego: str = "package x\n", state: PictureState = "active", **fields: Any
) -> ShownPolicy:
    document = {
        "apiVersion": "templates.gatekeeper.sh/v1",
        "kind": "ConstraintTemplate",
        "metadata": {"name": name},
        "spec": {
            "crd": {"spec": {"names": {"kind": name.title()}}},
            "targets": [{"target": "admission.k8s.gatekeeper.sh", "rego": rego}],
        },
    }
    return shown_policy("template", "ConstraintTemplate", name, document, state, **fields)


def shown_policy(
    category: str, kind: str, name: str, document: Any, state: PictureState, **fields: Any
) -> ShownPolicy:
    return ShownPolicy(category, kind, name, document, state, **fields)


def violation(text: str, policy: str = "RequiredLabel/owner", **fields: Any) -> ShownViolation:
    given = {"namespace": text, "name": text, "message": text, "severity": "high", **fields}
    return ShownViolation(policy, "deny", "v1", "Pod", **given)


def picture(
    policies: tuple[ShownPolicy, ...] = (),
    violations: tuple[ShownViolation, ...] | None = (),
    **fields: Any,
) -> Picture:
    given: dict[str, Any] = {
        "over": "cluster",
        "place": "https://api.example",
        "version": "1234",
        "taken": "2026-01-01T00:00:00Z",
        **fields,
    }
    return Picture(
        policies=policies,
        violations=violations,
        by_key={item.key: item for item in policies},
        **given,
    )


def hostile_picture() -> Picture:
    """Every text that a page shows is one that would do harm if it were not escaped."""
    policies = [
        constraint(
            text,
            kind=text,
            state="error",
            faults=(text,),
            place=text,
            severity=text,
            standings=(ReplicaStanding(text, text, 1, text, text),),
            rollout={"state": text, "action": text, "steps": [{"action": text, "since": text}]},
            revisions=(PolicyRevision(text, "u", 1, text, text, "", text),),
        )
        for text in HOSTILE
    ]
    policies += [template(text, rego=text, faults=(text,)) for text in HOSTILE]
    return picture(
        tuple(policies),
        tuple(violation(text, f"{text}/{text}", place=text) for text in HOSTILE),
        place=SCRIPT,
        version=SCRIPT,
        trouble=HOSTILE,
        faults=HOSTILE,
        pods=tuple(ReplicaPod(text, ready=True, terminating=False) for text in HOSTILE),
        certificates=(
            ShownCertificate(SCRIPT, SCRIPT, "2026-01-01T00:00:00Z", why=SCRIPT),
            ShownCertificate(SCRIPT, SCRIPT, is_trusted=False, why=SCRIPT),
        ),
        hidden=(SCRIPT,),
        kinds=({"kind": SCRIPT, "objects": 1, "state": SCRIPT},),
    )
