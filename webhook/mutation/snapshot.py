"""One revision of mutators, immutable, and what they make of an object.

For each kind and operation the snapshot keeps a *plan*, made when first asked for: the mutators
that are about it, in their order, without those in a conflict. What no mutator is about costs one
look-up.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from webhook.api.gvk import GroupVersionKind, gvk_of, text
from webhook.constraint.errors import MatchError
from webhook.constraint.match import MatchSubject, View
from webhook.constraint.plan import PLANS_MAX
from webhook.mutation.errors import (
    ApplyError,
    MutationError,
    NotConvergingError,
    OutOfTimeError,
)
from webhook.mutation.setting import ExternalData
from webhook.mutation.values import are_same

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from webhook.mutation.mutator import Mutator, MutatorId
    from webhook.mutation.setting import Context

OnError = Literal["skip", "reject"]
"""What a mutator's fault at a request does: the object goes on without it, or is refused."""


@dataclass(frozen=True, slots=True)
class MutationPlan:
    """The mutators about one kind at one operation, in the order in which they run."""

    mutators: tuple[Mutator, ...]
    asks_providers: bool
    """Whether any of them puts placeholders for what a provider answers."""


@dataclass(frozen=True, slots=True)
class Mutated:
    """What became of an object.

    ``object`` is the one that came where nothing changed, and ``passes`` name who assigned
    anything in each pass that changed something. ``iterations`` is 0 where nothing changed, else
    the passes with the last, quiet one: what Gatekeeper's metric observes. ``skipped`` says of
    mutators that failed why.
    """

    object: dict[str, Any]
    passes: tuple[tuple[Mutator, ...], ...] = ()
    iterations: int = 0
    skipped: Mapping[str, str] = field(default_factory=dict)
    asks_providers: bool = False


class MutationSnapshot:
    """Mutators at one moment; safe to share, never changed but for its cache of plans."""

    __slots__ = ("_count", "_mutators", "_plans", "conflicts", "preview", "would_conflict")

    def __init__(
        self,
        mutators: Sequence[Mutator] = (),
        conflicts: Mapping[MutatorId, tuple[MutatorId, ...]] | None = None,
        *,
        preview: MutationSnapshot | None = None,
        would_conflict: Mapping[MutatorId, tuple[MutatorId, ...]] | None = None,
    ) -> None:
        """``mutators`` in any order; those that ``conflicts`` names are known and not applied.

        ``preview`` is what would be in force with those mutators that are only previewed, None
        where there are none; of them ``would_conflict`` tells who is left out of it, and why.
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
        """Whether anybody is about a kind at an operation, or would be."""
        if self.plan(gvk, operation) is not None:
            return True
        return self.preview is not None and self.preview.plan(gvk, operation) is not None

    @property
    def previewed(self) -> tuple[Mutator, ...]:
        """Those that are computed and not applied, without those that would be in a conflict."""
        found = () if self.preview is None else self.preview.mutators
        return tuple(item for item in found if item.is_preview)

    @property
    def mutators(self) -> tuple[Mutator, ...]:
        """Those in force, in the order in which they run."""
        return self._mutators

    def plan(self, gvk: GroupVersionKind, operation: str) -> MutationPlan | None:
        """Who is about a kind at an operation; None where nobody is."""
        if not self._mutators:
            return None
        key = gvk, operation
        try:
            return self._plans[key]
        except KeyError:
            pass
        found = tuple(item for item in self._mutators if item.applies_to(gvk, operation))
        asks = any(type(item.assignment.setter) is ExternalData for item in found)
        plan = MutationPlan(found, asks) if found else None
        if len(self._plans) >= PLANS_MAX:
            self._plans.clear()
        self._plans[key] = plan
        return plan

    def mutate(
        self,
        obj: dict[str, Any],
        context: Context,
        *,
        on_error: OnError = "reject",
        until: float | None = None,
        gvk: GroupVersionKind | None = None,
    ) -> Mutated:
        """Apply every mutator that matches, pass after pass, until a pass changes nothing.

        ``until`` is on the monotonic clock. Raises
        :class:`~webhook.mutation.errors.MutationError`; where faults are skipped, only if the
        mutators do not converge or have no time.
        """
        gvk = gvk_of(obj) if gvk is None else gvk
        plan = self.plan(gvk, context.operation)
        if plan is None:
            return Mutated(obj)
        return _Run(plan, gvk, context, on_error, until, self._count + 1).mutate(obj)


class _Restart(Exception):
    """A mutator that was applied already failed: its changes must go, too."""


class _Run:
    """The passes over one object."""

    def __init__(
        self,
        plan: MutationPlan,
        gvk: GroupVersionKind,
        context: Context,
        on_error: OnError,
        until: float | None,
        passes_max: int,
    ) -> None:
        self._plan = plan
        self._gvk = gvk
        self._context = context
        self._on_error = on_error
        self._until = until
        self._passes_max = passes_max
        self._skipped: dict[str, str] = {}
        self._out: set[MutatorId] = set()
        self._metadata: Any = self
        self._view: View
        self._subject: MatchSubject
        self._outcomes: dict[MutatorId, bool] = {}

    def mutate(self, obj: dict[str, Any]) -> Mutated:
        while True:
            try:
                return self._mutate(obj)
            except _Restart:
                continue  # One mutator fewer each time.

    def _mutate(self, original: dict[str, Any]) -> Mutated:
        obj = original
        passes: list[tuple[Mutator, ...]] = []
        mark, mark_at = original, 1
        for iteration in range(1, self._passes_max + 1):
            before = obj
            obj, applied = self._pass(obj, iteration, passes)
            if not applied or are_same(before, obj):
                if iteration == 1:
                    return Mutated(original, skipped=self._skipped)
                return Mutated(
                    obj, tuple(passes), iteration, self._skipped, self._plan.asks_providers
                )
            passes.append(applied)
            # A state that was there before comes again for ever: no pass knows of earlier ones.
            if iteration > 1 and are_same(obj, mark):
                break
            if iteration == 2 * mark_at:
                mark, mark_at = obj, iteration
        raise NotConvergingError(
            f"mutation not converging: mutation not converging for {self._about(obj)}",
            self._passes_max,
        )

    def _pass(
        self, obj: dict[str, Any], iteration: int, passes: list[tuple[Mutator, ...]]
    ) -> tuple[dict[str, Any], tuple[Mutator, ...]]:
        applied: list[Mutator] = []
        for mutator in self._plan.mutators:
            if self._out and mutator.id in self._out:
                continue
            if self._until is not None and time.monotonic() > self._until:
                raise OutOfTimeError("the time for mutating this object ended", iteration)
            try:
                if not self._matches(mutator, obj):
                    continue
                assigned, obj = mutator.assignment.apply(obj, self._context)
            except MatchError as error:
                text = f"failed to run Match criteria: {error}"
                self._fail(mutator, f"matching for mutator {mutator.id}", text, obj, iteration)
            except ApplyError as error:
                what = f"mutation for mutator {mutator.id}"
                self._fail(mutator, what, str(error), obj, iteration)
            except RecursionError:
                what = f"mutation for mutator {mutator.id}"
                text = "the object is nested too deeply for it"
                self._fail(mutator, what, text, obj, iteration)
            else:
                if assigned:
                    applied.append(mutator)
                continue
            if any(mutator in one for one in passes):
                raise _Restart
        return obj, tuple(applied)

    def _matches(self, mutator: Mutator, obj: dict[str, Any]) -> bool:
        """Whether a mutator matches the object as it is now; asked anew if its metadata changed."""
        metadata = obj.get("metadata")
        if metadata is not self._metadata:
            self._metadata = metadata
            self._view = View(obj, self._gvk)
            self._view.namespace = self._context.namespace_name
            self._subject = MatchSubject(
                (self._view,), self._context.namespace, self._context.source
            )
            self._outcomes = {}
        found = self._outcomes.get(mutator.id)
        if found is None:
            found = self._outcomes[mutator.id] = mutator.matches(self._view, self._subject)
        return found

    def _fail(
        self, mutator: Mutator, what: str, fault: str, obj: dict[str, Any], iteration: int
    ) -> None:
        name = str(mutator.id)
        if self._on_error == "reject":
            raise MutationError(f"{what} failed for {self._about(obj)}: {fault}", iteration, name)
        self._skipped[name] = fault
        self._out.add(mutator.id)

    def _about(self, obj: dict[str, Any]) -> str:
        name = text(obj, "metadata", "name") or text(obj, "metadata", "generateName")
        return f"{self._gvk.group} {self._gvk.kind} {self._context.namespace_name} {name}"
