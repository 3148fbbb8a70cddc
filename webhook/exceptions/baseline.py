"""Makes exceptions of a policy's present violations, so that it can deny new ones.

Objects of a controller are replaced under other names. Their exception names the object that a user
wrote: a Deployment for its ReplicaSets and Pods. It is for the constraint as a whole, so that
running objects can be updated; another object with the same violation is refused.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NamedTuple

from webhook.api.encoding import encode
from webhook.exceptions.exception import (
    API_VERSION,
    CLUSTER_KIND,
    GENERATED_BEGINNING_MAX,
    GROUP,
    KIND,
)
from webhook.exceptions.permission import allows
from webhook.exceptions.writing import exception_name, name_pattern

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from webhook.api.shapes import Json
    from webhook.constraint.constraint import Constraint
    from webhook.exceptions.writing import ExceptionTerms

LABEL: Final = f"{GROUP}/baseline"
"""The label of all exceptions of a baseline, to list them and to delete them together."""


class Owner(NamedTuple):
    """An owner of an object; ``labels`` are its selector's labels."""

    group: str
    kind: str
    name: str
    labels: tuple[tuple[str, str], ...] = ()


class StandingViolation(NamedTuple):
    """An object with its labels that violates a constraint; ``owner`` is that of its exception.

    None without a controller.
    """

    constraint: Constraint
    group: str
    kind: str
    namespace: str
    name: str
    owner: Owner | None = None
    labels: Mapping[str, str] = MappingProxyType({})


def naming_owner(name: str, owners: Sequence[Owner]) -> Owner:
    """Returns the topmost of its owners after which an object is named, else the topmost of all.

    ``owners`` begin with the nearest. An operator's Deployment may be named otherwise than the
    object that the operator follows.
    """
    named = (owner for owner in reversed(owners) if _beginning(owner.name, name))
    return next(named, owners[-1])


def implied(
    violation: StandingViolation, owners: Sequence[Owner], kind: tuple[str, str]
) -> StandingViolation:
    """Returns the violation of what a violating object will make, by its group and kind.

    ``owners`` begin with the object.

    A CronJob may have no Pod now, and the audit knows its violations by expansion alone.
    """
    owner = naming_owner(f"{violation.name}-", owners)
    name = f"{owner.name}-"[:GENERATED_BEGINNING_MAX]
    return violation._replace(
        group=kind[0], kind=kind[1], name=name, owner=owner, labels=dict(owner.labels)
    )


def closed(violations: Iterable[StandingViolation]) -> list[str]:
    """Returns the constraints that allow no exceptions; their violations get none."""
    return sorted(
        {
            "/".join(violation.constraint.key)
            for violation in violations
            if not allows(violation.constraint.document, of_cluster=True)
        }
    )


def baseline(violations: Iterable[StandingViolation], terms: ExceptionTerms) -> list[Json]:
    """Returns an exception for each constraint and top owner, by the violating kinds."""
    exceptions: dict[str, Json] = {}
    for violation in violations:
        if allows(violation.constraint.document, of_cluster=True):
            exception = _exception(violation, terms)
            key = f"{exception['metadata'].get('namespace', '')}/{exception['metadata']['name']}"
            exceptions.setdefault(key, exception)
    return [exceptions[key] for key in sorted(exceptions)]


def _exception(violation: StandingViolation, terms: ExceptionTerms) -> Json:
    document = violation.constraint.document
    is_own = (
        bool(violation.namespace) and not terms.of_cluster and allows(document, of_cluster=False)
    )
    kind, name = violation.constraint.key
    match: Json = {"kinds": [{"apiGroups": [violation.group], "kinds": [violation.kind]}]}
    if violation.namespace and not is_own:
        match["namespaces"] = [violation.namespace]
    match |= _named(violation)
    spec = {
        "constraints": [{"kind": kind, "name": name}],
        "match": match,
        "effect": terms.effect,
        "reason": terms.reason,
        "ticket": terms.ticket,
        "owner": terms.owner,
        "expires": terms.expires,
    }
    return {
        "apiVersion": f"{GROUP}/{API_VERSION}",
        "kind": KIND if is_own else CLUSTER_KIND,
        "metadata": {
            "name": _name(violation, is_own=is_own),
            **({"namespace": violation.namespace} if is_own else {}),
            "labels": {LABEL: "true"},
        },
        "spec": {field: value for field, value in spec.items() if value},
    }


def _named(violation: StandingViolation) -> Json:
    """Returns the name and labels that match an object and its replacements."""
    owner = violation.owner
    beginning = "" if owner is None else _beginning(owner.name, violation.name)
    if owner is None or not beginning:
        return {"name": name_pattern(violation.name)}
    match: Json = {"name": f"{beginning}*"}
    # A custom kind's selector may be about other objects than its own.
    if owner.labels and all(violation.labels.get(key) == value for key, value in owner.labels):
        match["labelSelector"] = {"matchLabels": dict(owner.labels)}
    return match


def _beginning(owner: str, name: str) -> str:
    """Returns the beginning that a name has of its owner; empty if it is named otherwise."""
    whole = f"{owner}-"
    for beginning in (whole, whole[:GENERATED_BEGINNING_MAX]):
        if name.startswith(beginning):
            return beginning
    return ""


def _name(violation: StandingViolation, *, is_own: bool) -> str:
    """Returns the exception's name: deterministic, and shared by the Pods of one Deployment.

    Others have names of their own: a Pod ``web``, and the Pods of a StatefulSet ``web``.
    """
    owner, named = violation.owner, _named(violation)
    by = violation.name if owner is None or "*" not in named["name"] else owner.name
    identity = [
        *violation.constraint.key,
        violation.group,
        violation.kind,
        encode(named, sort_keys=True).decode(),
        "" if is_own else violation.namespace,
    ]
    return exception_name(f"{violation.constraint.name}-{violation.kind}-{by}", identity)


def selector_labels(document: Mapping[str, object]) -> tuple[tuple[str, str], ...]:
    """Returns the labels that an owner's selector requires by equality.

    A Job's selector has its UID, and the Job that takes its place has another: such labels are left
    out. A ReplicationController's selector is made of labels alone.
    """
    metadata = document.get("metadata")
    uid = metadata.get("uid") if type(metadata) is dict else None
    spec = document.get("spec")
    selector = spec.get("selector") if type(spec) is dict else None
    labels = selector.get("matchLabels") if type(selector) is dict else None
    if document.get("kind") == "ReplicationController":
        labels = selector
    if type(labels) is not dict:
        return ()
    texts = ((key, value) for key, value in labels.items() if type(value) is str)
    return tuple(sorted((key, value) for key, value in texts if value != uid))
