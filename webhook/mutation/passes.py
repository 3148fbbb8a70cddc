"""Mutators applied one by one, pass after pass, until a pass changes nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from webhook.api.encoding import is_same_json
from webhook.api.gvk import GroupVersionKind, text
from webhook.constraint.errors import MatchError
from webhook.constraint.match import MatchSubject, View
from webhook.mutation.errors import ApplyError, MutationError, NotConverging
from webhook.mutation.plan import Mutated, MutationPlan

if TYPE_CHECKING:
    from webhook.mutation.mutator import Mutator, MutatorId
    from webhook.mutation.setting import Context

MutationOnError = Literal["skip", "reject"]
"""The effect of a mutator's fault on a request: the mutator is skipped, or the object is refused.
"""


class _Restart(Exception):
    """A mutator that was applied already failed: its changes must go, too."""


class Passes:
    """The passes over one object; each pass applies every matching mutator by itself."""

    def __init__(
        self,
        plan: MutationPlan,
        gvk: GroupVersionKind,
        context: Context,
        on_error: MutationOnError,
        passes_max: int,
    ) -> None:
        self._plan = plan
        self._gvk = gvk
        self._context = context
        self._on_error = on_error
        self._pace = context.pace
        self._passes_max = passes_max
        self._skipped: dict[str, str] = {}
        self._out: set[MutatorId] = set()
        self._metadata: Any = self
        self._view: View
        self._subject: MatchSubject
        self._outcomes: dict[MutatorId, bool] = {}

    def mutate(self, obj: dict[str, Any]) -> Mutated:
        """Applies the mutators until a pass changes nothing.

        Raises :class:`~webhook.mutation.errors.MutationError`.
        """
        while True:
            try:
                return self._mutate(obj)
            except _Restart:
                continue  # Each time there is one mutator fewer.

    def _mutate(self, original: dict[str, Any]) -> Mutated:
        obj = original
        passes: list[tuple[Mutator, ...]] = []
        mark, mark_at = original, 1
        for iteration in range(1, self._passes_max + 1):
            before = obj
            self._pace.iteration = iteration
            obj, applied = self._pass(obj, iteration, passes)
            if not applied or is_same_json(before, obj, self._pace.look):
                if iteration == 1:
                    return Mutated(original, skipped=self._skipped)
                return Mutated(
                    obj,
                    tuple(passes),
                    iteration,
                    skipped=self._skipped,
                    asks_providers=self._plan.asks_providers,
                )
            passes.append(applied)
            # A state that was there before comes again for ever: no pass knows of earlier ones.
            if iteration > 1 and is_same_json(obj, mark, self._pace.look):
                break
            if iteration == 2 * mark_at:
                mark, mark_at = obj, iteration
        raise NotConverging(
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
            self._pace.look()
            try:
                if not self._matches(mutator, obj):
                    continue
                assigned, obj = mutator.assignment.apply(obj, self._context)
            except MatchError as error:
                text = f"failed to run Match criteria: {error}"
                self._fail(mutator, f"matching for mutator {mutator.id}", text, obj, iteration)
            except ApplyError as error:
                action = f"mutation for mutator {mutator.id}"
                self._fail(mutator, action, str(error), obj, iteration)
            except RecursionError:
                action = f"mutation for mutator {mutator.id}"
                text = "the object is nested too deeply for it"
                self._fail(mutator, action, text, obj, iteration)
            else:
                if assigned:
                    applied.append(mutator)
                continue
            if any(mutator in pass_ for pass_ in passes):
                raise _Restart
        return obj, tuple(applied)

    def _matches(self, mutator: Mutator, obj: dict[str, Any]) -> bool:
        """Whether a mutator matches the current object; cached until its metadata changes."""
        metadata = obj.get("metadata")
        if metadata is not self._metadata:
            self._metadata = metadata
            self._view = View(obj, self._gvk)
            self._view.namespace = self._context.namespace_name
            self._subject = MatchSubject(
                (self._view,), self._context.namespace, self._context.source
            )
            self._outcomes = {}
        is_matched = self._outcomes.get(mutator.id)
        if is_matched is None:
            is_matched = self._outcomes[mutator.id] = mutator.matches(self._view, self._subject)
        return is_matched

    def _fail(
        self, mutator: Mutator, action: str, fault: str, obj: dict[str, Any], iteration: int
    ) -> None:
        name = str(mutator.id)
        if self._on_error == "reject":
            raise MutationError(f"{action} failed for {self._about(obj)}: {fault}", iteration, name)
        self._skipped[name] = fault
        self._out.add(mutator.id)

    def _about(self, obj: dict[str, Any]) -> str:
        name = text(obj, "metadata", "name") or text(obj, "metadata", "generateName")
        return f"{self._gvk.group} {self._gvk.kind} {self._context.namespace_name} {name}"
