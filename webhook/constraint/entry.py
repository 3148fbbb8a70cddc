"""A template with its constraints, as a snapshot holds them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from webhook.constraint.digest import is_same_generation
from webhook.constraint.group_evaluation import GROUP_EVALUATOR, GroupReview
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
"""The code of a status error: the template is for targets that this process does not review."""


@dataclass(frozen=True, slots=True)
class OtherTarget:
    """A template for one of its further targets; ``evaluator`` is None if its code is unusable."""

    template: Template
    target: Target
    evaluator: Evaluator | None


@dataclass(frozen=True, slots=True)
class Entry:
    """A template with its constraints in order of name.

    ``evaluator`` and ``crd`` belong to the last good revision, None without one. ``broken`` is why
    a newer revision is unusable. ``on_error`` is the newest revision's ``onError``. Constraints
    match by ``target``; ``others`` are the template's further targets.
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
        """Whether ``document`` is the generation in force and the newest known one."""
        return self.broken is None and is_same_generation(self.template.document, document)

    def evaluator_input(self, review: Review, operation: str | None = None) -> Any:
        """Returns the evaluator's input from a review; groups also get the operation."""
        if self.evaluator is GROUP_EVALUATOR:
            return GroupReview(review, operation)
        return review.document

    def given(self, constraint: Constraint) -> Any:
        """Returns the evaluator's input from a constraint: its parameters, or the whole object."""
        evaluator = self.evaluator
        whole = evaluator is not None and evaluator.reads_constraint
        return constraint.document if whole else constraint.parameters

    def group_of(self, constraint: Constraint) -> bytes:
        """Returns a key that is equal for constraints with the same evaluation result."""
        if self.evaluator is not None and self.evaluator.reads_constraint:
            return constraint.name.encode()
        return constraint.parameters_key

    @property
    def targets(self) -> tuple[Target, ...]:
        """The template's targets, the target of this entry first."""
        return (self.target, *(other.target for other in self.others))

    def elsewhere(self, reviewed_targets: Collection[str]) -> str:
        """Returns why no review evaluates the template; empty if one of its targets is reviewed.

        ``reviewed_targets`` are the names of the targets that this process reviews.
        """
        if any(target.name in reviewed_targets for target in self.targets):
            return ""
        return f"enforces nothing here: it is for {self.template.targets} alone"

    @property
    def matching(self) -> Target | SeveralTargets:
        """Returns the target that defines ``spec.match``, or the union of several targets."""
        return SeveralTargets(self.targets) if self.others else self.target

    def match(self, target: Target, match: Mapping[str, Any]) -> CompiledMatch:
        """Compiles a constraint's match for a target; raises InvalidConstraint."""
        together = self.matching
        if isinstance(together, SeveralTargets):
            return together.compile_match(target, match)
        return target.compile_match(match)

    def for_target(self, name: str) -> Entry | None:
        """Returns this entry for a target, with its constraints' matches; None without this target."""
        if self.target.name == name:
            return self
        other = next((item for item in self.others if item.target.name == name), None)
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
        """Returns ``onError`` of the constraint, else of the template; None if neither sets it."""
        return constraint.on_error or self.on_error

    def fault_of(self, constraint: Constraint, default: OnError) -> Broken | None:
        """Returns why a constraint is not evaluated; None if it is.

        There are three cases: 1. Neither the constraint nor its template is broken: it is
        evaluated. 2. Both have a last good revision and ``onError`` is ``lastGood``: that revision
        is evaluated. 3. Otherwise it is not evaluated.
        """
        broken = constraint.broken or self.broken
        if broken is not None and constraint.is_good and self.evaluator is not None:
            return None if (self.on_error_for(constraint) or default) == "lastGood" else broken
        return broken
