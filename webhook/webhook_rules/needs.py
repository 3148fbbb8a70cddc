"""Reads from a policy's spec which requests it needs."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from webhook.api.config import MUTATION_PROCESS, WEBHOOK_PROCESS
from webhook.api.gvk import gvk_of, namespace_of
from webhook.api.shapes import object_of, objects_of, texts_of
from webhook.constraint import constraint
from webhook.constraint.enforcement import WEBHOOK, points_of
from webhook.constraint.errors import ConstraintFrameworkError
from webhook.constraint.failure_policy import IGNORE, FailurePolicy, readable_failure_policy
from webhook.constraint.group import is_group, templates_of
from webhook.constraint.match import for_process
from webhook.constraint.wildcard import WILDCARD
from webhook.kyverno import kinds as kyverno_kinds
from webhook.mutation.mutator import OPERATIONS as WRITTEN
from webhook.values import dataclass
from webhook.webhook_rules.kinds import meets, targets_of_rules

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from webhook.webhook_rules.kinds import GroupAndKind, RuleTarget

_BY_DEFAULT: Final = frozenset({"CREATE", "UPDATE"})
"""The operations of a template that lists none, as in Gatekeeper's webhook."""


@dataclass(frozen=True, slots=True)
class Need:
    """The kinds, operations and places of a policy.

    ``kinds`` has ``*`` for any group or kind. Empty ``operations`` match every operation sent.
    ``direct`` is for requests themselves, ``generated`` for objects that ExpansionTemplates make of
    them.
    """

    kinds: tuple[GroupAndKind, ...]
    operations: frozenset[str] = frozenset()
    places: tuple[str, ...] = ()
    scope: str = WILDCARD
    object_selector: Mapping[str, Any] | None = None
    namespace_selector: Mapping[str, Any] | None = None
    process: str = WEBHOOK_PROCESS
    direct: bool = True
    generated: bool = True
    failure_policy: FailurePolicy | None = None
    """The failure policy of a constraint, which selects its entries."""
    targets: tuple[RuleTarget, ...] = ()
    """The resources of a policy that names them instead of kinds, each with its operations."""

    def covered_operations(self, offered: Sequence[str]) -> tuple[str, ...]:
        """Returns the offered operations of a resource that the policy needs."""
        if self.targets:
            return tuple(offered)
        operations = self.operations or _BY_DEFAULT
        return tuple(operation for operation in offered if operation in operations) or (
            () if self.operations else tuple(offered)
        )


def need_of(
    document: Mapping[str, Any], operations_of: Callable[[str], frozenset[str]]
) -> Need | None:
    """Reads the need of a constraint, group, mutator or Kyverno policy; None if it has none.

    ``operations_of`` returns a template's operations by its name; empty if it lists none.
    """
    if gvk_of(document).group == constraint.GROUP or is_group(document):
        return _of_constraint(document, operations_of)
    if kyverno_kinds.is_evaluated(document):
        return _of_kyverno(document)
    return _of_mutator(document)


def _of_kyverno(document: Mapping[str, Any]) -> Need | None:
    """Reads the kinds in a Kyverno policy, and those that it implies for pod controllers.

    A validating policy needs the entry that fails open, whatever its own failurePolicy is: no check
    has shown that it would not lock the cluster out.
    """
    spec = object_of(document.get("spec"))
    evaluation = object_of(spec.get("evaluation"))
    if (
        gvk_of(document).kind not in kyverno_kinds.KINDS
        or evaluation.get("mode") not in (None, "", "Kubernetes")
        or object_of(evaluation.get("admission")).get("enabled") is False
    ):
        return None
    # Imported here: most clusters have none of these policies.
    from webhook.kyverno.autogen import generated_specs  # noqa: PLC0415

    matched = object_of(spec.get("matchConstraints"))
    rules = [
        rule
        for part in (spec, *generated_specs(spec))
        for rule in objects_of(object_of(part.get("matchConstraints")).get("resourceRules"))
    ]
    if not rules:
        return None
    kind = gvk_of(document).kind
    is_within = kind not in kyverno_kinds.CLUSTER_KINDS
    is_mutating = kind in kyverno_kinds.MUTATING_KINDS
    targets = targets_of_rules(rules)
    if is_mutating:
        offered = (
            (target, [name for name in target.operations if name in WRITTEN]) for target in targets
        )
        targets = tuple(
            replace(target, operations=tuple(names)) for target, names in offered if names
        )
        if not targets:
            return None
    return Need(
        (),
        places=(namespace_of(document) or "default",) if is_within else (),
        scope="Namespaced" if is_within else WILDCARD,
        object_selector=matched.get("objectSelector"),
        namespace_selector=matched.get("namespaceSelector"),
        process=MUTATION_PROCESS if is_mutating else WEBHOOK_PROCESS,
        generated=False,
        failure_policy=None if is_mutating else IGNORE,
        targets=targets,
    )


def _of_constraint(
    document: Mapping[str, Any], operations_of: Callable[[str], frozenset[str]]
) -> Need | None:
    spec = object_of(document.get("spec"))
    if not _is_for_admission(document, spec):
        return None
    match = for_process(object_of(spec.get("match")), WEBHOOK_PROCESS)
    templates = templates_of(document) if is_group(document) else {gvk_of(document).kind.lower()}
    sets = [operations_of(name) for name in sorted(templates)]
    operations = frozenset().union(*sets) if all(sets) else frozenset()
    need = _need(match, _kinds(objects_of(match.get("kinds"))), operations, WEBHOOK_PROCESS)
    return replace(need, failure_policy=readable_failure_policy(document))


def _is_for_admission(document: Mapping[str, Any], spec: Mapping[str, Any]) -> bool:
    if spec.get("enforcementAction") != "scoped":
        return True
    try:
        return bool(points_of(document, (WEBHOOK,)).get(WEBHOOK))
    except ConstraintFrameworkError:
        return True


def _of_mutator(document: Mapping[str, Any]) -> Need | None:
    spec = object_of(document.get("spec"))
    match = object_of(spec.get("match"))
    matched, applied = objects_of(match.get("kinds")), objects_of(spec.get("applyTo"))
    kinds = _kinds(applied) if applied else _kinds(matched)
    if applied and matched:
        within = _kinds(matched)
        kinds = tuple(kind for kind in kinds if any(meets(kind, other) for other in within))
    operations = {name for rule in applied for name in texts_of(rule.get("operations"))}
    whole = not applied or any(not rule.get("operations") for rule in applied)
    return _need(
        match,
        kinds,
        frozenset() if whole or WILDCARD in operations else frozenset(operations),
        MUTATION_PROCESS,
    )


def _need(
    match: Mapping[str, Any],
    kinds: tuple[GroupAndKind, ...],
    operations: frozenset[str],
    process: str,
) -> Need:
    places = texts_of(match.get("namespaces"))
    source = match.get("source")
    return Need(
        kinds,
        frozenset() if WILDCARD in operations else operations,
        () if any(WILDCARD in place for place in places) else tuple(places),
        str(match.get("scope") or WILDCARD),
        match.get("labelSelector"),
        match.get("namespaceSelector"),
        process,
        direct=source != "Generated",
        generated=source != "Original",
    )


def _kinds(listed: Sequence[Mapping[str, Any]]) -> tuple[GroupAndKind, ...]:
    """Returns each group with each kind; an empty list means all, as in a match."""
    if not listed:
        return ((WILDCARD, WILDCARD),)
    pairs = (
        (group, kind)
        for part in listed
        for group in texts_of(part.get("apiGroups") or part.get("groups")) or (WILDCARD,)
        for kind in texts_of(part.get("kinds")) or (WILDCARD,)
    )
    return tuple(dict.fromkeys(pairs))
