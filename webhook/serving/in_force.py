"""Metrics of the revision in force, and ``gc.freeze`` after start-up."""

from __future__ import annotations

import gc
from typing import TYPE_CHECKING

from webhook.constraint import enforcement
from webhook.constraint.template import CEL
from webhook.metrics.mutation import MUTATORS, MUTATORS_CONFLICTING
from webhook.metrics.policies import (
    CONSTRAINTS,
    CONSTRAINTS_WITHOUT_ENGINE,
    SNAPSHOT,
    SNAPSHOT_REVISION,
    TEMPLATES_WITH_CEL,
)
from webhook.metrics.providers import KNOWN_PROVIDERS

if TYPE_CHECKING:
    from webhook.constraint.snapshot import Snapshot
    from webhook.metrics.registry import Registry
    from webhook.mutation.fights import Fights
    from webhook.serving.revision import Revision


def gauge(registry: Registry, snapshot: Snapshot) -> None:
    """Sets the metrics of a snapshot's constraints and digest."""
    counts: dict[tuple[str, ...], float] = {
        (action, status): 0
        for action in (*enforcement.ACTIONS, "unrecognized")
        for status in ("active", "error")
    }
    for constraint in snapshot.constraints:
        known = constraint.enforcement_action in enforcement.ACTIONS
        action = constraint.enforcement_action if known else "unrecognized"
        counts[action, "active"] += 1
    for constraint, _ in snapshot.broken:
        known = constraint.enforcement_action in enforcement.ACTIONS
        action = constraint.enforcement_action if known else "unrecognized"
        counts[action, "error"] += 1
    registry.replace(CONSTRAINTS, counts)
    registry.replace(SNAPSHOT, {(snapshot.digest,): 1})
    registry.set(SNAPSHOT_REVISION, snapshot.revision)
    engines = [{code.engine for code in template.code} for template in snapshot.templates]
    registry.set(TEMPLATES_WITH_CEL, sum(CEL in of_template for of_template in engines))
    without = sum(fault.stage == "engine" for _, fault in snapshot.broken)
    registry.set(CONSTRAINTS_WITHOUT_ENGINE, without)
    registry.violations.keep(constraint.key for constraint in snapshot.constraints)


def settle() -> None:
    """Excludes the objects of start-up from garbage collection, before the first request.

    Only once: objects that later loads replace must remain collectable, and a second scan of all
    data would delay admissions.
    """
    gc.collect()
    gc.freeze()


def gauge_extensions(
    registry: Registry, fights: Fights, before: Revision | None, now: Revision
) -> dict[str, int] | None:
    """Sets the metrics of mutators, ExpansionTemplates and Providers.

    Returns the counts to log if they changed.
    """
    mutations, expansion, providers = now.mutations, now.expansion, now.policies.providers
    in_webhook = now.policies.in_webhook
    others = () if in_webhook is None else in_webhook.mutating_policies
    if (
        before is not None
        and before.policies.in_webhook is in_webhook
        and before.mutations is mutations
        and before.expansion is expansion
        and before.policies.providers is providers
    ):
        return None
    active, conflicts = len(mutations.mutators), len(mutations.conflicts)
    registry.replace(MUTATORS, {("active",): active, ("error",): conflicts})
    registry.set(MUTATORS_CONFLICTING, conflicts)
    registry.replace(KNOWN_PROVIDERS, {("active",): len(providers), ("error",): 0})
    fights.keep((*mutations.mutators, *others))
    counted = (*mutations.mutators, *mutations.previewed, *others)
    registry.mutators.keep(item.id for item in counted)
    if before is None and not (mutations or conflicts or expansion or providers or others):
        return None
    return {
        "mutators": active,
        "mutating_policies": len(others),
        "conflicting": conflicts,
        "expansion_templates": len(expansion.names),
        "providers": len(providers),
    }
