"""The rules that needs require, and those of an entry, split so that they can be compared."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from webhook.api.builtin_kinds import NEVER_INTERCEPTED
from webhook.api.shapes import objects_of, texts_of
from webhook.constraint.wildcard import WILDCARD
from webhook.webhook_rules.kinds import no_discovery, targets_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from webhook.webhook_rules.kinds import GroupAndKind, RuleTarget
    from webhook.webhook_rules.needs import Need


class RulePart(NamedTuple):
    """One operation on one resource, as rules name them."""

    group: str
    resource: str
    operation: str
    scope: str = WILDCARD

    def covers(self, other: RulePart) -> bool:
        """Whether this rule sends every request that the other one sends."""
        if self.scope not in (WILDCARD, other.scope):
            return False
        if self.group not in (WILDCARD, other.group):
            return False
        if self.operation not in (WILDCARD, other.operation):
            return False
        name, slash, sub = self.resource.partition("/")
        other_name, other_slash, other_sub = other.resource.partition("/")
        if self.resource in ("*/*", other.resource):
            return True
        return (
            slash == other_slash and name in (WILDCARD, other_name) and sub in (WILDCARD, other_sub)
        )


OBJECTS_BESIDE: Final = {
    "pods": ("pods/ephemeralcontainers", "pods/resize"),
    "services": ("services/status",),
}
"""Subresources that change whole objects of a resource; a policy on the resource needs them too."""

EVERYTHING: Final = (
    "*",
    *("pods/ephemeralcontainers", "pods/exec", "pods/log", "pods/portforward", "pods/proxy"),
    *("pods/attach", "pods/resize", "deployments/scale", "replicasets/scale"),
    *("statefulsets/scale", "replicationcontrollers/scale", "services/proxy", "nodes/proxy"),
    "services/status",
)
"""The resources of a policy about every kind: all resources, and Gatekeeper's subresources."""


def parts_of(
    needs: Iterable[Need],
    generators: Mapping[GroupAndKind, frozenset[GroupAndKind]],
    served: Callable[[str, str], tuple[RuleTarget, ...] | None] = no_discovery,
) -> frozenset[RulePart]:
    """Returns the rules that the needs require."""
    listed = tuple(needs)
    parts = {
        part
        for need in listed
        for kind in _kinds(need, generators)
        for target in _targets(kind, served)
        for part in _parts(need, target)
    }
    return simplified(parts | {part for need in listed for part in _named(need)})


def _named(need: Need) -> Iterator[RulePart]:
    """Yields the rules of a need that names resources."""
    for target in need.targets:
        if target.kind in NEVER_INTERCEPTED:
            continue
        scope = need.scope
        if target.namespaced is not None and target.kind[1] == WILDCARD:
            scope = "Namespaced" if target.namespaced else "Cluster"
        for operation in target.operations:
            yield RulePart(target.group, target.resource, operation, scope)


def _kinds(
    need: Need, generators: Mapping[GroupAndKind, frozenset[GroupAndKind]]
) -> Iterator[GroupAndKind]:
    """Yields the kinds of a need, and those that templates expand into them, directly or not."""
    known = set(need.kinds)
    waiting = list(need.kinds)
    yield from need.kinds if need.direct else ()
    while need.generated and waiting:
        reached = waiting.pop()
        for whole, sources in generators.items():
            if not all(
                WILDCARD in pair or pair[0] == pair[1] for pair in zip(whole, reached, strict=True)
            ):
                continue
            for source in sorted(sources - known):
                known.add(source)
                waiting.append(source)
                yield source


def _targets(
    kind: GroupAndKind, served: Callable[[str, str], tuple[RuleTarget, ...] | None]
) -> Iterator[RuleTarget]:
    """Yields the targets of a kind; their group is ``*`` if the kind's group is."""
    for target in targets_of(*kind, served):
        if target.kind not in NEVER_INTERCEPTED:
            yield replace(target, group=WILDCARD) if kind[0] == WILDCARD else target


def _parts(need: Need, target: RuleTarget) -> Iterator[RulePart]:
    scope = WILDCARD
    if target.namespaced is None:
        scope = need.scope
    elif need.scope not in (WILDCARD, "Namespaced" if target.namespaced else "Cluster"):
        return
    resources: tuple[str, ...] = (target.resource, *OBJECTS_BESIDE.get(target.resource, ()))
    if target.resource == WILDCARD and target.group in ("", WILDCARD):
        resources = EVERYTHING
    for operation in need.covered_operations(target.operations):
        for resource in resources:
            yield RulePart(target.group, resource, operation, scope)


def simplified(parts: Iterable[RulePart]) -> frozenset[RulePart]:
    """Drops parts that another part covers."""
    every = set(parts)
    wide = [rule for rule in every if WILDCARD in f"{rule.group}{rule.resource}{rule.operation}"]
    return frozenset(
        rule
        for rule in every
        if not (rule.scope != WILDCARD and rule._replace(scope=WILDCARD) in every)
        and not any(other != rule and other.covers(rule) for other in wide)
    )


def read_rules(rules: Any) -> frozenset[RulePart]:
    """Reads the rules of an entry, for every version."""
    return frozenset(
        RulePart(group, resource, operation, str(rule.get("scope") or WILDCARD))
        for rule in objects_of(rules)
        for group in texts_of(rule.get("apiGroups"))
        for resource in texts_of(rule.get("resources"))
        for operation in texts_of(rule.get("operations"))
    )


def written(parts: Iterable[RulePart]) -> list[dict[str, Any]]:
    """Returns the parts as rules; equal parts give equal rules."""
    operations: dict[tuple[str, str, str], list[str]] = {}
    for part in sorted(parts):
        operations.setdefault((part.group, part.scope, part.resource), []).append(part.operation)
    resources: dict[tuple[str, str, tuple[str, ...]], list[str]] = {}
    for (group, scope, resource), named in operations.items():
        resources.setdefault((group, scope, tuple(named)), []).append(resource)
    groups: dict[tuple[str, tuple[str, ...], tuple[str, ...]], list[str]] = {}
    for (group, scope, named_operations), of_group in resources.items():
        groups.setdefault((scope, named_operations, tuple(of_group)), []).append(group)
    return [
        {
            "apiGroups": listed,
            "apiVersions": [WILDCARD],
            "operations": list(named),
            "resources": list(of_groups),
            "scope": scope,
        }
        for (scope, named, of_groups), listed in sorted(groups.items(), key=lambda item: item[1])
    ]
