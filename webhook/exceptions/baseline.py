"""Makes exceptions of a policy's present violations, so that it can deny new ones.

Objects of a controller are replaced under other names. Their exception names the object that a user
wrote: a Deployment for its ReplicaSets and Pods. It is for the constraint as a whole, so that
running objects can be updated; another object with the same violation is refused.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from webhook.exceptions.exception import API_VERSION, CLUSTER_KIND, GROUP, KIND
from webhook.exceptions.permission import allows
from webhook.exceptions.writing import exception_name, name_pattern

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from webhook.api.shapes import Json
    from webhook.constraint.constraint import Constraint
    from webhook.exceptions.writing import ExceptionTerms

LABEL: Final = f"{GROUP}/baseline"
"""The label of all exceptions of a baseline, to list them and to delete them together."""


class TopOwner(NamedTuple):
    """The topmost owner of an object, which a user wrote; ``labels`` are its selector's labels."""

    group: str
    kind: str
    name: str
    labels: tuple[tuple[str, str], ...] = ()


class StandingViolation(NamedTuple):
    """An object that violates a constraint; ``owner`` is None without a controller."""

    constraint: Constraint
    group: str
    kind: str
    namespace: str
    name: str
    owner: TopOwner | None = None


def closed(violations: Iterable[StandingViolation]) -> list[str]:
    """Returns the constraints that allow no exceptions; their violations get none."""
    return sorted(
        {
            "/".join(one.constraint.key)
            for one in violations
            if not allows(one.constraint.document, of_cluster=True)
        }
    )


def baseline(violations: Iterable[StandingViolation], terms: ExceptionTerms) -> list[Json]:
    """Returns an exception for each constraint and top owner, by the violating kinds."""
    exceptions: dict[str, Json] = {}
    for one in violations:
        if allows(one.constraint.document, of_cluster=True):
            exception = _exception(one, terms)
            key = f"{exception['metadata'].get('namespace', '')}/{exception['metadata']['name']}"
            exceptions.setdefault(key, exception)
    return [exceptions[key] for key in sorted(exceptions)]


def _exception(one: StandingViolation, terms: ExceptionTerms) -> Json:
    document = one.constraint.document
    is_own = bool(one.namespace) and not terms.of_cluster and allows(document, of_cluster=False)
    kind, name = one.constraint.key
    match: Json = {"kinds": [{"apiGroups": [one.group], "kinds": [one.kind]}]}
    if one.namespace and not is_own:
        match["namespaces"] = [one.namespace]
    match |= _named(one)
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
            "name": _name(one, is_own=is_own),
            **({"namespace": one.namespace} if is_own else {}),
            "labels": {LABEL: "true"},
        },
        "spec": {field: value for field, value in spec.items() if value},
    }


def _named(one: StandingViolation) -> Json:
    """Returns the name and labels that match an object and its replacements."""
    owner = one.owner
    if owner is None or not one.name.startswith(f"{owner.name}-"):
        return {"name": name_pattern(one.name)}
    match: Json = {"name": f"{owner.name}-*"}
    if owner.labels:
        match["labelSelector"] = {"matchLabels": dict(owner.labels)}
    return match


def _name(one: StandingViolation, *, is_own: bool) -> str:
    """Returns the exception's name: deterministic, and shared by the Pods of one Deployment."""
    owner = one.owner
    by = one.name if owner is None or "*" not in _named(one)["name"] else owner.name
    identity = [*one.constraint.key, one.group, one.kind, by, "" if is_own else one.namespace]
    return exception_name(f"{one.constraint.name}-{one.kind}-{by}", identity)


def selector_labels(document: Mapping[str, object]) -> tuple[tuple[str, str], ...]:
    """Returns the labels that an owner's selector requires by equality."""
    spec = document.get("spec")
    selector = spec.get("selector") if type(spec) is dict else None
    labels = selector.get("matchLabels") if type(selector) is dict else None
    if type(labels) is not dict:
        return ()
    return tuple(sorted((key, value) for key, value in labels.items() if type(value) is str))
