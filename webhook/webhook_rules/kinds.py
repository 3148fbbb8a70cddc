"""Maps kinds to the resources and operations that bring their objects to a webhook."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Final

from webhook.api.builtin_kinds import BUILTIN_GROUPS, BUILTIN_KINDS
from webhook.api.gvk import plural_of
from webhook.api.scope import CLUSTER_SCOPED
from webhook.api.shapes import texts_of
from webhook.constraint.wildcard import WILDCARD
from webhook.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from typing import Any

    GroupAndKind = tuple[str, str]

WRITES: Final = ("CREATE", "UPDATE", "DELETE")
"""The operations that write, in the order of messages."""


@dataclass(frozen=True, slots=True)
class RuleTarget:
    """A resource as in rules, and the kind of its objects; ``*`` stands for any.

    ``namespaced`` is None if unknown. ``is_guessed`` is whether the resource is derived from the
    kind's name.
    """

    group: str
    resource: str
    kind: GroupAndKind
    operations: tuple[str, ...] = WRITES
    namespaced: bool | None = None
    is_guessed: bool = False
    is_beside: bool = False
    """Whether a gap is not reported, as the policy matches this target only incidentally."""

    @property
    def name(self) -> str:
        """The resource without its subresource."""
        return self.resource.partition("/")[0]

    @property
    def subresource(self) -> str:
        """The subresource, or an empty text."""
        return self.resource.partition("/")[2]

    def __str__(self) -> str:
        """Returns the name that kubectl uses."""
        if self.resource == WILDCARD:
            return (
                "any resource"
                if self.group == WILDCARD
                else f"any resource of group {self.group!r}"
            )
        return (
            f"{self.resource}.{self.group}" if self.group not in ("", WILDCARD) else self.resource
        )


_APPS: Final = ("deployments", "replicasets", "statefulsets")
_CONNECT: Final = ("CONNECT",)
_CREATE: Final = ("CREATE",)

_OF_SUBRESOURCES: Final[dict[GroupAndKind, tuple[RuleTarget, ...]]] = {
    ("autoscaling", "Scale"): (
        *(
            RuleTarget(
                "apps", f"{kind}/scale", ("autoscaling", "Scale"), ("UPDATE",), namespaced=True
            )
            for kind in _APPS
        ),
        RuleTarget(
            "",
            "replicationcontrollers/scale",
            ("autoscaling", "Scale"),
            ("UPDATE",),
            namespaced=True,
        ),
    ),
    **{
        kind: (RuleTarget("", resource, kind, operations, namespaced=namespaced),)
        for kind, resource, operations, namespaced in (
            (("", "Binding"), "pods/binding", _CREATE, True),
            (("", "NodeProxyOptions"), "nodes/proxy", _CONNECT, False),
            (("", "PodAttachOptions"), "pods/attach", _CONNECT, True),
            (("", "PodExecOptions"), "pods/exec", _CONNECT, True),
            (("", "PodPortForwardOptions"), "pods/portforward", _CONNECT, True),
            (("", "PodProxyOptions"), "pods/proxy", _CONNECT, True),
            (("", "ServiceProxyOptions"), "services/proxy", _CONNECT, True),
            (("authentication.k8s.io", "TokenRequest"), "serviceaccounts/token", _CREATE, True),
            (("policy", "Eviction"), "pods/eviction", _CREATE, True),
        )
    },
}
"""Kinds whose objects come only by subresources; rules name the resource with the subresource."""

_RETIRED: Final = frozenset({"extensions"})
"""Groups that API servers since 1.22 do not serve."""


@cache
def builtin_targets(group: str, kind: str) -> tuple[RuleTarget, ...]:
    """Returns the targets of a built-in kind, of one group or any; empty for another kind."""
    if group == WILDCARD:
        groups = sorted(
            {candidate for candidate, named in BUILTIN_KINDS if named == kind} - _RETIRED
        )
        return tuple(target for candidate in groups for target in builtin_targets(candidate, kind))
    known = (group, kind)
    if known not in BUILTIN_KINDS:
        return ()
    if known in _OF_SUBRESOURCES:
        return _OF_SUBRESOURCES[known]
    resource = plural_of(kind)
    return (RuleTarget(group, resource, known, namespaced=known not in CLUSTER_SCOPED),)


def no_discovery(group: str, kind: str) -> tuple[RuleTarget, ...] | None:
    """Returns None: the targets of custom resources are unknown without an API server."""
    del group, kind
    return None


def targets_of(
    group: str,
    kind: str,
    served: Callable[[str, str], tuple[RuleTarget, ...] | None] = no_discovery,
) -> tuple[RuleTarget, ...]:
    """Returns the targets of a kind in a policy; none for a kind that does not exist.

    A match lists groups and kinds separately, so some pairs of them are no kind. ``served`` returns
    the targets of custom resources, None for unknown ones.
    """
    if kind == WILDCARD:
        return (RuleTarget(group, WILDCARD, (group, WILDCARD), (*WRITES, "CONNECT")),)
    known = builtin_targets(group, kind)
    if known or group in BUILTIN_GROUPS:
        return known
    custom = served(group, kind)
    if custom is not None:
        return custom
    return (RuleTarget(group, plural_of(kind), (group, kind), is_guessed=True),)


@cache
def _kinds_by_resource() -> dict[tuple[str, str], GroupAndKind]:
    """Returns the built-in kinds by group and name of their resources."""
    kinds = {(group, plural_of(kind)): (group, kind) for group, kind in sorted(BUILTIN_KINDS)}
    of_subresources = {
        (target.group, target.resource): target.kind
        for some in _OF_SUBRESOURCES.values()
        for target in some
    }
    return {**kinds, **of_subresources}


def targets_of_rules(rules: Iterable[Mapping[str, Any]]) -> tuple[RuleTarget, ...]:
    """Returns the targets of a policy that names resources, as the API server's rules do."""
    targets: dict[tuple[str, str, bool | None], dict[str, None]] = {}
    for rule in rules:
        scope = {"Cluster": False, "Namespaced": True}.get(str(rule.get("scope")))
        operations = texts_of(rule.get("operations")) or (WILDCARD,)
        for group in texts_of(rule.get("apiGroups")):
            for resource in texts_of(rule.get("resources")):
                named = targets.setdefault((group, resource, scope), {})
                named |= dict.fromkeys(_offered(group, resource, operations))
    return tuple(
        RuleTarget(group, resource, kind, tuple(operations), _scope_of(kind, scope))
        for (group, resource, scope), operations in targets.items()
        for kind in (_kinds_by_resource().get((group, resource), (group, WILDCARD)),)
    )


def _offered(group: str, resource: str, operations: Sequence[str]) -> tuple[str, ...]:
    """Returns the operations of a resource that a rule names."""
    if WILDCARD not in operations:
        return tuple(operations)
    kind = _kinds_by_resource().get((group, resource))
    for target in _OF_SUBRESOURCES.get(kind, ()) if kind else ():
        if target.resource == resource:
            return target.operations
    return (*WRITES, "CONNECT") if "/" in resource else WRITES


def meets(first: GroupAndKind, other: GroupAndKind) -> bool:
    """Returns whether two kinds are the same, where ``*`` is any group or any kind."""
    return all(WILDCARD in pair or pair[0] == pair[1] for pair in zip(first, other, strict=True))


def _scope_of(kind: GroupAndKind, scope: bool | None) -> bool | None:
    return kind not in CLUSTER_SCOPED if scope is None and kind[1] != WILDCARD else scope
