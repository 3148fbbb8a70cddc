"""One immutable revision of mutators, and their effect on an object.

For each kind and operation the snapshot keeps a *plan*, made at its first use: its mutators in
their order, without mutators in a conflict. A kind without mutators costs one look-up.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from webhook.api.gvk import GroupVersionKind, gvk_of
from webhook.constraint.plan import PLANS_MAX
from webhook.mutation.passes import MutationOnError, Passes
from webhook.mutation.plan import Mutated, MutationPlan

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from webhook.mutation.mutator import Mutator, MutatorId
    from webhook.mutation.setting import Context


class MutationSnapshot:
    """Mutators at one moment; safe to share, immutable except for its cache of plans."""

    __slots__ = ("_count", "_mutators", "_plans", "conflicts", "preview", "would_conflict")

    def __init__(
        self,
        mutators: Sequence[Mutator] = (),
        conflicts: Mapping[MutatorId, tuple[MutatorId, ...]] | None = None,
        *,
        preview: MutationSnapshot | None = None,
        would_conflict: Mapping[MutatorId, tuple[MutatorId, ...]] | None = None,
    ) -> None:
        """``mutators`` may be in any order; mutators in ``conflicts`` are known and not applied.

        ``preview`` is the snapshot that includes mutators in preview; None without such mutators.
        ``would_conflict`` has the mutators that are left out of ``preview``, each with its conflicts.
        """
        self.conflicts = {} if conflicts is None else dict(conflicts)
        self.preview = preview
        self.would_conflict = {} if would_conflict is None else dict(would_conflict)
        self._count = len(mutators)
        self._mutators = tuple(
            mutator
            for mutator in sorted(mutators, key=lambda item: item.id)
            if mutator.id not in self.conflicts
        )
        self._plans: dict[tuple[GroupVersionKind, str], MutationPlan | None] = {}

    def __bool__(self) -> bool:
        return bool(self._mutators)

    def concerns(self, gvk: GroupVersionKind, operation: str) -> bool:
        """Whether a mutator, in force or in preview, applies to a kind at an operation."""
        if self.plan(gvk, operation) is not None:
            return True
        return self.preview is not None and self.preview.plan(gvk, operation) is not None

    @property
    def previewed(self) -> tuple[Mutator, ...]:
        """The mutators in preview, without mutators that would conflict."""
        mutators = () if self.preview is None else self.preview.mutators
        return tuple(item for item in mutators if item.is_preview)

    @property
    def mutators(self) -> tuple[Mutator, ...]:
        """The mutators in force, in the order in which they run."""
        return self._mutators

    def plan(self, gvk: GroupVersionKind, operation: str) -> MutationPlan | None:
        """Returns the plan of a kind at an operation; None where no mutator matches."""
        if not self._mutators:
            return None
        key = gvk, operation
        try:
            return self._plans[key]
        except KeyError:
            pass
        mutators = tuple(item for item in self._mutators if item.applies_to(gvk, operation))
        plan = MutationPlan(mutators, gvk) if mutators else None
        if len(self._plans) >= PLANS_MAX:
            self._plans.clear()
        self._plans[key] = plan
        return plan

    def mutate(
        self,
        obj: dict[str, Any],
        context: Context,
        *,
        on_error: MutationOnError = "reject",
        gvk: GroupVersionKind | None = None,
    ) -> Mutated:
        """Applies every mutator that matches, pass after pass, until a pass changes nothing.

        Raises :class:`~webhook.mutation.errors.MutationError`; where faults are skipped, only if
        the mutators do not converge, or the context's pace ends them.
        """
        gvk = gvk_of(obj) if gvk is None else gvk
        plan = self.plan(gvk, context.operation)
        if plan is None:
            return Mutated(obj)
        context.pace.begin()
        mutated = plan.apply_at_once(obj, context)
        if mutated is not None:
            return mutated
        return Passes(plan, gvk, context, on_error, self._count + 1).mutate(obj)
