"""The failure policy of constraints: whether requests pass while no replica answers.

A constraint or group with ``waddle.dev/failure-policy: fail`` is decided at the webhook entry that
fails closed, which has a path of its own. With ``ignore``, the default, it is decided at the entry
that fails open. A constraint must not fail closed for objects that are needed to repair the
cluster.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final, Literal, TypeAlias

from webhook.api import names
from webhook.api.shapes import annotations_of, object_of, objects_of, texts_of
from webhook.constraint.errors import InvalidConstraint
from webhook.constraint.wildcard import WILDCARD

FailurePolicy: TypeAlias = Literal["fail", "ignore"]

ANNOTATION: Final = "waddle.dev/failure-policy"
FAIL: Final[FailurePolicy] = "fail"
IGNORE: Final[FailurePolicy] = "ignore"
"""The failure policy without the annotation."""

FAILURE_POLICIES: Final[tuple[FailurePolicy, ...]] = (FAIL, IGNORE)

_REPAIR_NAMESPACES: Final = frozenset({"kube-system", "kube-node-lease"})

_REPAIR_KINDS: Final = {
    ("", "Node"): "no node could join, or report",
    ("coordination.k8s.io", "Lease"): "nodes and controllers stay alive by their leases",
    ("", "Event"): "a storm of events would stand before what ends it",
    ("events.k8s.io", "Event"): "a storm of events would stand before what ends it",
    ("", "Binding"): "no Pod could be placed on a node",
    ("policy", "Eviction"): "no node could be drained",
    (
        "apiextensions.k8s.io",
        "CustomResourceDefinition",
    ): "Waddle's own kinds could not be repaired",
}
"""Kinds that are needed to repair a cluster, by group and kind, with the consequence of blocking
them.
"""

_REPAIR_GROUPS: Final = {
    "admissionregistration.k8s.io": "webhook configurations could not be repaired",
    "authentication.k8s.io": "nobody could be recognized",
    "authorization.k8s.io": "nobody could be asked who may do what",
    names.OURS: "Waddle's own objects could not be repaired",
    **{
        f"{name}.gatekeeper.sh": "the policies could not be repaired"
        for name in (
            "config",
            "constraints",
            "expansion",
            "externaldata",
            "mutations",
            "status",
            "syncset",
            "templates",
        )
    },
}
"""The consequence of blocking a group with all its kinds."""


def failure_policy_of(document: Mapping[str, Any], spared: Collection[str] = ()) -> FailurePolicy:
    """Returns a constraint's failure policy.

    ``spared`` are further namespaces from which the cluster is repaired. Raises
    :class:`~webhook.constraint.errors.InvalidConstraint` for an unknown value, and if failing
    closed would lock the cluster out.
    """
    value = annotations_of(document).get(ANNOTATION)
    if value in (None, IGNORE):
        return IGNORE
    if value != FAIL:
        raise InvalidConstraint(
            f'invalid Constraint: annotation {ANNOTATION} must be {FAIL} or {IGNORE}, got "{value}"'
        )
    match = object_of(object_of(document.get("spec")).get("match"))
    why = next(_lock_outs(match, spared), "")
    if why:
        raise InvalidConstraint(
            f"invalid Constraint: {ANNOTATION}: {FAIL} would lock the cluster out while no replica "
            f"answers: {why}"
        )
    return FAIL


def readable_failure_policy(document: Mapping[str, Any]) -> FailurePolicy:
    """Returns the failure policy of a constraint; ``ignore`` if its annotation is invalid."""
    try:
        return failure_policy_of(document)
    except InvalidConstraint:
        return IGNORE


def _lock_outs(match: Mapping[str, Any], spared: Collection[str]) -> Iterator[str]:
    """Yields a clause for each way in which refused requests would lock the cluster out."""
    for namespace in texts_of(match.get("namespaces")):
        if namespace in _REPAIR_NAMESPACES or namespace in spared:
            yield f"it is for namespace {namespace}, from which the cluster is repaired"
    kinds = objects_of(match.get("kinds"))
    if not kinds:
        yield "it is for every kind, Nodes and Leases among them; list kinds in spec.match.kinds"
        return
    for entry in kinds:
        groups = texts_of(entry.get("apiGroups")) or (WILDCARD,)
        yield from _kind_lock_outs(groups, texts_of(entry.get("kinds")) or (WILDCARD,))


def _kind_lock_outs(groups: Collection[str], kinds: Collection[str]) -> Iterator[str]:
    every_group, every_kind = WILDCARD in groups, WILDCARD in kinds
    for (group, kind), why in _REPAIR_KINDS.items():
        if (every_group or group in groups) and (every_kind or kind in kinds):
            yield f"{kind} is among its kinds, and {why}"
    for group, why in _REPAIR_GROUPS.items():
        if group in groups or (every_group and every_kind):
            yield f"kinds of {group} are among its kinds, and {why}"
