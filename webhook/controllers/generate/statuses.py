"""Writes the part of statuses about generated policies and bindings, in Gatekeeper's fields and words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import TypeAlias

from webhook.api.shapes import Json
from webhook.constraint.enforcement import VAP
from webhook.controllers.object_faults import TEMPLATES
from webhook.generation.plan import WITHOUT, GenerationPlan, GenerationState
from webhook.values import dataclass

Statuses: TypeAlias = "dict[tuple[str, str], Json]"
"""The generation's part of a status, by constraint kind (or TEMPLATES) and name."""

LookUp: TypeAlias = Callable[[str, "Json"], tuple[str, str]]
"""The state of a desired object: ``generated``, ``error`` with its reason, or empty if unknown."""


@dataclass(frozen=True, slots=True)
class GenerationReport:
    """Fields of statuses, and counts of generated objects by ``active`` and ``error``."""

    statuses: Statuses
    policies: dict[tuple[str, ...], float]
    bindings: dict[tuple[str, ...], float]


def generation_statuses(
    plan: GenerationPlan, policy: LookUp, binding: LookUp, before: Statuses, *, alone: bool
) -> GenerationReport:
    """Returns the statuses of a plan. An object that is being written keeps the status ``before``."""
    statuses: Statuses = {}
    policies: Counter[str] = Counter()
    for name, planned in plan.templates.items():
        state, message = _policy_state(plan, planned, policy)
        policies[state] += 1
        entry: Json = {"state": state, "observedGeneration": planned.generation}
        if state == "error":
            entry["warning"] = f"ValidatingAdmissionPolicy is not generated: {message}"
        elif planned.warning:
            entry["warning"] = planned.warning
        _notify(statuses, before, (TEMPLATES, name), state, {"vapGenerationStatus": entry})
    bindings: Counter[str] = Counter()
    for key, planned in plan.constraints.items():
        state, message = _binding_state(plan, key[0], planned, policy, binding, alone=alone)
        bindings[state] += 1
        if alone:
            policies[_policy_state(plan, planned, policy)[0]] += 1
        entry = {
            "enforcementPoint": VAP,
            "state": state,
            "observedGeneration": planned.generation,
        }
        if message or planned.warning:
            entry["message"] = message or planned.warning
        _notify(statuses, before, key, state, {"enforcementPointsStatus": [entry]})
    return GenerationReport(statuses, _counted(policies), _counted(bindings))


def _notify(
    statuses: Statuses, before: Statuses, key: tuple[str, str], state: str, fields: Json
) -> None:
    known = before.get(key)
    if state:
        statuses[key] = known if known == fields else fields
    elif known is not None:
        statuses[key] = known


def _policy_state(
    plan: GenerationPlan, planned: GenerationState, policy: LookUp
) -> tuple[str, str]:
    if planned.error:
        return "error", planned.error
    return policy(planned.policy, plan.policies[planned.policy])


def _binding_state(
    plan: GenerationPlan,
    kind: str,
    planned: GenerationState,
    policy: LookUp,
    binding: LookUp,
    *,
    alone: bool,
) -> tuple[str, str]:
    if planned.error:
        return "error", planned.error
    of_template = plan.templates.get(kind.lower())
    if of_template is not None:
        state, message = _policy_state(plan, of_template, policy)
        if state == "error":
            return state, f"{WITHOUT}{message}"
    if planned.withdrawn:
        return "withdrawn", planned.withdrawn
    if planned.waiting:
        return "waiting", planned.waiting
    if alone:
        state, message = _policy_state(plan, planned, policy)
        if state != "generated":
            return state, message
    return binding(planned.binding, plan.bindings[planned.binding])


def _counted(states: Mapping[str, int]) -> dict[tuple[str, ...], float]:
    return {
        ("active",): float(states.get("generated", 0)),
        ("error",): float(states.get("error", 0)),
    }
