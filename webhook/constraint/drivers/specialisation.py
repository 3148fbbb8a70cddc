"""Specialised code for constraints that are evaluated often: the parameters are compiled in.

Thousands of constraints must start fast and small, so each begins with its template's general code.
After enough evaluations a constraint gets specialised code, written on another thread, until the
memory for all such code is used up. Then constraints that are no longer evaluated lose theirs, and
the others wait.
"""

from __future__ import annotations

from dataclasses import field
from functools import partial
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakSet

from webhook.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable

    from webhook.rego.engine import CompiledRule, Entrypoint

    WriteCode = Callable[[Any], tuple[Entrypoint, int] | None]

EVALUATIONS: Final = 5_000
"""Evaluations before a constraint is specialised: about its cost. For the 34 templates of the
public library, writing takes 5 ms and saves 1 µs an evaluation (medians).
"""

MAX_BYTES: Final = 8 << 20
"""Memory for all specialised code of a process: about 300 constraints of the public library."""

MAX_WAITING: Final = 64
"""Constraints that wait for specialised code; others ask again after as many evaluations."""

KNOWN_MIN: Final = 64
"""Constraints of a template that are remembered before any is dropped."""

KNOWN_MAX: Final = 1 << 15
"""The most constraints remembered, for parameters that change faster than they are evaluated: about
10 MB.
"""

IDLE_EVALUATIONS: Final = 20
"""A constraint without an evaluation during this many evaluations of another one counts as deleted.
"""


@dataclass(slots=True, eq=False, weakref_slot=True)
class Bound:
    """A constraint's parameters, the rule that evaluates them, and the number of evaluations."""

    parameters: Any = field(repr=False)
    general: Entrypoint = field(repr=False)
    """The template's general code, with the known values of these parameters."""
    rule: Entrypoint = field(repr=False)
    due: int
    """The number of evaluations at which it asks for specialised code."""
    count: int = 0
    seen: int = 0
    """``count`` at the last search for unused constraints."""
    bytes: int = 0
    """The size of its specialised code; 0 without any."""
    is_requested: bool = False

    def is_unused(self) -> bool:
        """Whether it was not evaluated since the last call."""
        unused, self.seen = self.count == self.seen, self.count
        return unused


class Specialiser:
    """Specialises constraints; one for all templates of a process.

    Reviewing threads ask; a single thread writes and drops code.
    """

    def __init__(
        self,
        submit: Callable[[Callable[[], None]], object],
        *,
        evaluations: int = EVALUATIONS,
        max_bytes: int = MAX_BYTES,
    ) -> None:
        """``submit`` runs jobs of some milliseconds on another thread, one at a time."""
        self._submit = submit
        self.evaluations = evaluations
        self._max_bytes = max_bytes
        # Constraints and templates go without notice, and their code with them.
        self._own: WeakSet[Bound] = WeakSet()
        self._waiting: set[Bound] = set()
        self.refused = 0
        """How often a constraint was refused because the memory was used up."""

    @property
    def constraints(self) -> int:
        """The number of specialised constraints."""
        return len(self._own)

    @property
    def bytes(self) -> int:
        """The estimated memory for their code, in bytes."""
        return sum(bound.bytes for bound in self._own)

    def ask(self, bound: Bound, write: WriteCode) -> None:
        """Requests specialised code for a constraint that was evaluated often enough."""
        bound.due = bound.count + self.evaluations
        if bound.is_requested or len(self._waiting) >= MAX_WAITING:
            return
        bound.is_requested = True
        self._waiting.add(bound)
        self._submit(partial(self._write, bound, write))

    def _write(self, bound: Bound, write: WriteCode) -> None:
        self._waiting.discard(bound)
        if self.bytes >= self._max_bytes:
            self._give_back()
        if self.bytes >= self._max_bytes:
            self.refused += 1
            bound.is_requested = False
            return
        written = write(bound.parameters)
        if written is not None:
            bound.rule, bound.bytes = written
            self._own.add(bound)

    def _give_back(self) -> None:
        """Drops the code of constraints that are no longer evaluated."""
        for bound in list(self._own):
            if bound.is_unused():
                self._own.discard(bound)
                bound.rule, bound.bytes, bound.is_requested = bound.general, 0, False


class ConstraintRules:
    """The rules of one template: a general one, and specialised ones by parameters."""

    __slots__ = ("_general", "_known", "_room", "_specialiser", "_write")

    def __init__(self, general: CompiledRule, write: WriteCode, specialiser: Specialiser) -> None:
        """``general`` evaluates any parameters; ``write`` returns a specialised rule and its size."""
        self._general = general
        self._write = write
        self._specialiser = specialiser
        self._known: dict[int, Bound] = {}
        self._room = KNOWN_MIN

    def rule(self, parameters: Any) -> Entrypoint:
        """Returns the rule for these parameters, found by their identity, since they never change."""
        bound = self._known.get(id(parameters))
        if bound is None or bound.parameters is not parameters:
            bound = self._add(parameters)
        bound.count += 1
        if bound.count >= bound.due:
            self._specialiser.ask(bound, self._write)
        return bound.rule

    def _add(self, parameters: Any) -> Bound:
        if len(self._known) >= self._room:
            self._forget()
        general = self._general.for_parameters(parameters)
        bound = Bound(parameters, general, general, self._specialiser.evaluations)
        # It holds the parameters, so that no other can get their identity meanwhile.
        self._known[id(parameters)] = bound
        return bound

    def _forget(self) -> None:
        """Forgets constraints that are no longer evaluated: a deletion is not reported here."""
        known = self._known
        if max(bound.count - bound.seen for bound in known.values()) >= IDLE_EVALUATIONS:
            self._known = {at: bound for at, bound in known.items() if not bound.is_unused()}
        elif len(known) >= KNOWN_MAX:
            self._known = {}
        self._room = max(KNOWN_MIN, 2 * len(self._known))
