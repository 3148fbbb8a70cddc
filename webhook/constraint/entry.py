"""A template with its constraints, as a snapshot holds them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from webhook.constraint.digest import is_same_generation
from webhook.constraint.group_evaluation import GROUP_EVALUATOR, AskedOfGroup
from webhook.constraint.several_targets import SeveralTargets
from webhook.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from webhook.constraint.causes import OnError
    from webhook.constraint.constraint import Broken, Constraint
    from webhook.constraint.driver import Evaluator
    from webhook.constraint.review import Review
    from webhook.constraint.target import CompiledMatch, Target
    from webhook.constraint.template import Template

ELSEWHERE: Final = "other_target"
"""Code of a policy that no review here ever asks."""


@dataclass(frozen=True, slots=True)
class OtherTarget:
    """A template for another of its targets; ``evaluator`` is None where none can be used."""

    template: Template
    target: Target
    evaluator: Evaluator | None


@dataclass(frozen=True, slots=True)
class Entry:
    """A template with its constraints in order of name.

    ``evaluator`` and ``crd`` are those of its last good revision, None where
    there is none. ``broken`` says why a newer one cannot be used, and
    ``on_error`` is what the newest one wants done about faults. Constraints match by ``target``;
    ``others`` are the further targets of the template.
    """

    template: Template
    target: Target
    evaluator: Evaluator | None
    constraints: tuple[Constraint, ...]
    crd: Mapping[str, Any] | None
    on_error: OnError | None = None
    broken: Broken | None = None
    others: tuple[OtherTarget, ...] = ()

    def holds(self, document: Mapping[str, Any]) -> bool:
        """Whether this generation of the template is in force, and none later is known."""
        return self.broken is None and is_same_generation(self.template.document, document)

    def asked(self, review: Review, operation: str | None = None) -> Any:
        """What its evaluator is asked about; ``operation`` is the one that selects templates."""
        if self.evaluator is GROUP_EVALUATOR:
            return AskedOfGroup(review, operation)
        return review.document

    def given(self, constraint: Constraint) -> Any:
        """What its evaluator is given of a constraint."""
        evaluator = self.evaluator
        whole = evaluator is not None and evaluator.reads_constraint
        return constraint.document if whole else constraint.parameters

    def group_of(self, constraint: Constraint) -> bytes:
        """Equal for constraints that are evaluated together."""
        if self.evaluator is not None and self.evaluator.reads_constraint:
            return constraint.name.encode()
        return constraint.parameters_key

    @property
    def targets(self) -> tuple[Target, ...]:
        """What the template is about, foremost first."""
        return (self.target, *(other.target for other in self.others))

    def elsewhere(self, asked: Collection[str]) -> str:
        """Why no review asks the template, where none of its targets is ``asked``; else empty."""
        if any(target.name in asked for target in self.targets):
            return ""
        return f"enforces nothing here: it is for {self.template.targets} alone"

    @property
    def matching(self) -> Target | SeveralTargets:
        """What says what constraints may match by."""
        return SeveralTargets(self.targets) if self.others else self.target

    def match(self, target: Target, match: Mapping[str, Any]) -> CompiledMatch:
        """What a target makes of a constraint's match; raises InvalidConstraint."""
        together = self.matching
        if isinstance(together, SeveralTargets):
            return together.compile_match(target, match)
        return target.compile_match(match)

    def for_target(self, name: str) -> Entry | None:
        """This for one of the template's targets, with what its constraints match there."""
        if self.target.name == name:
            return self
        other = next((one for one in self.others if one.target.name == name), None)
        if other is None:
            return None
        constraints = []
        for constraint in self.constraints:
            match = (constraint.document.get("spec") or {}).get("match")
            compiled = None if match is None else self.match(other.target, match)
            constraints.append(replace(constraint, match=compiled))
        return Entry(
            other.template,
            other.target,
            other.evaluator,
            tuple(constraints),
            self.crd,
            self.on_error,
            self.broken,
        )

    def on_error_for(self, constraint: Constraint) -> OnError | None:
        """What the constraint, or else its template, says; None where neither does."""
        return constraint.on_error or self.on_error

    def fault_of(self, constraint: Constraint, default: OnError) -> Broken | None:
        """Why a constraint is not evaluated; None where it is."""
        broken = constraint.broken or self.broken
        if broken is None:
            return None
        if constraint.is_good and self.evaluator is not None:
            on_error = self.on_error_for(constraint) or default
            return None if on_error == "lastGood" else broken
        return broken
