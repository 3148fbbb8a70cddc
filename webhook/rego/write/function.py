"""Stage 9: one Python function while it is being written, shared by all emitters.

The style is "success indents": code after a failed condition is skipped by its indentation, so no
jump is needed. Conditions are kept pending and written as one ``if`` when a statement must follow.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from webhook.rego.location import NOWHERE, Location
from webhook.rego.run.metered import WORK_STEPS
from webhook.rego.run.runtime import LONG_TEXT
from webhook.rego.write.constants import NeverHolds
from webhook.rego.write.expression import Expression, Kind, all_of, defined, name, negation
from webhook.rego.write.facts import Fact, KindOf
from webhook.rego.write.statement import PAYS, Inner, Line, Pay, Return
from webhook.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable

    from webhook.rego.write.bodies import Bodies
    from webhook.rego.write.calls import Calls
    from webhook.rego.write.common_reads import CommonReads
    from webhook.rego.write.references import References
    from webhook.rego.write.terms import Terms
    from webhook.rego.write.unification import Unification
    from webhook.rego.write.unit import Unit
    from webhook.rego.write.uses import Uses

MAX_BLOCKS: Final = 16
"""The depth of nested loops from which an inner function continues: CPython allows 20 blocks, and a
``try`` counts as a block, too.
"""

FLAT_FROM: Final = 30
"""Levels of indentation from which conditions leave a loop instead of opening a block.

CPython allows 100 levels.
"""

MAX_ITEMS: Final = 1_000_000
"""Members of a collection that nested iterations may make: some 100 MB."""

CALL_STEPS: Final = 5
"""The steps of a function's call, likewise."""

FREE_TURNS: Final = 10
"""Turns of a loop that may be free (:mod:`webhook.rego.write.payment`): nearly all lists and
objects of Kubernetes are no longer.
"""


@dataclass(frozen=True, slots=True)
class Loop:
    """A loop that the place is inside of, or an inner function."""

    indent: int
    inner: Inner | None = None


@dataclass(slots=True)
class Saved:
    """The state that a nested body changes and must give back; made so often that ``frozen`` would be seen."""

    env: dict[str, Expression]
    known: dict[Fact, Expression]
    indent: int
    loops: list[Loop]
    inner: Inner | None
    state: str
    repeats: bool
    looping: bool
    flat: bool
    collecting: str
    blocks: int
    turns: int
    price: Pay | None


class FunctionBuilder:
    """One Python function: its lines, and the facts known at the current place."""

    __slots__ = (
        "_created",
        "_inner",
        "blocks",
        "bodies",
        "callees",
        "calls",
        "collecting",
        "common",
        "effects",
        "env",
        "flat",
        "free",
        "hoisted",
        "indent",
        "is_called_often",
        "known",
        "lines",
        "location",
        "looping",
        "loops",
        "names",
        "nest",
        "patterns",
        "pays",
        "pending",
        "price",
        "prologue",
        "reads",
        "references",
        "repeats",
        "split",
        "state",
        "straight",
        "terms",
        "turns",
        "unit",
        "uses",
    )

    terms: Terms
    references: References
    patterns: Unification
    calls: Calls
    nest: Bodies

    def __init__(self, unit: Unit, uses: Uses) -> None:
        """The caller adds the emitters afterwards."""
        self.unit = unit
        self.uses = uses
        self.lines: list[Line] = []
        self.indent = 1
        self.pending: list[Expression] = []
        self.env: dict[str, Expression] = {}
        """Values of the variables that are bound."""
        self.state = "S"
        """The local with the evaluation's state."""
        self.loops: list[Loop] = []
        """Loops that the body is inside of."""
        self.blocks = 0
        """Loops that the place is inside of, in its own function."""
        self.split = False
        """Whether there are inner functions."""
        self._inner: Inner | None = None
        """The inner function that the place is in."""
        self._created: dict[str, Inner | None] = {}
        """The inner function that made each local, by the local's name; None for the outer one."""
        self.known: dict[Fact, Expression] = {}
        self.reads: dict[tuple[str, tuple[str, ...]], tuple[Expression, int]] = {}
        """Locals with paths already read (or undefined), and the indentation of their block."""
        self.common: dict[str, CommonReads] = {}
        """The place for common reads of a local's fields, by local."""
        self.repeats = True
        """Whether the same solution may be found twice without harm."""
        self.names = 0
        self.effects = 0
        """The number of effects: code that may end the evaluation or is visible outside. Such code
        is never removed.
        """
        self.is_called_often = False
        """Whether an evaluation may call it any number of times."""
        self.looping = False
        self.flat = False
        self.collecting = ""
        """The local with the collection that the loops fill."""
        self.bodies = 1
        """The number of bodies that share the code being written: a turn of a loop counts for each
        body.
        """
        self.callees: list[tuple[str, int]] = []
        """Functions called, and the number of calls while each loop of this function has only free
        turns.
        """
        self.turns = 1
        """Turns of the loops that the place is inside of, while they are free."""
        self.free = 0
        """Steps of all code written so far, while the loops are free."""
        self.straight = 0
        """Steps of code outside of loops; an evaluation does not pay for them."""
        self.price: Pay | None = None
        """Where the innermost loop is paid for."""
        self.pays = False
        """Whether anything written pays once a loop is long."""
        self.prologue: list[Line] = []
        self.hoisted: dict[tuple[str, ...], Expression] = {}
        self.location: Location = NOWHERE

    def release(self) -> None:
        """Drops the emitters, which refer back to this function; nothing is written any more."""
        del self.terms, self.references, self.patterns, self.calls, self.nest

    # --- conditions ---------------------------------------------------------------------------

    def condition(self, test: Expression) -> None:
        """Opens a condition: code written next runs only if it holds, and uses its facts."""
        if test.value is False:
            raise NeverHolds
        if test.value is not True:
            self.pending.append(test)
        for local, kind in test.proves:
            if local.is_local:
                self.known[KindOf(local.source)] = local.of_kind(kind)

    def narrowed(self, value: Expression) -> Expression:
        """The value with the kind that a condition before has proved."""
        if value.kind is Kind.ANY:
            return self.known.get(KindOf(value.source), value)
        return value

    def attempt(self, write: Callable[[], None]) -> bool:
        """Writes a body; if it can have no solution, it is removed unless it has effects."""
        start, effects, depth = len(self.lines), self.effects, len(self.loops)
        reads = dict(self.reads)
        try:
            write()
        except NeverHolds:
            if self.effects == effects:
                del self.lines[start:]
                self.reads = reads
                del self.loops[depth:]
                self.pending = []
            else:
                self.line("pass")
            return False
        return True

    def flush(self) -> None:
        """Writes the pending conditions, so that a statement can follow."""
        if not self.pending:
            return
        if self.indent >= FLAT_FROM and not self.flat:
            pending, self.pending = self.pending, []
            self.loop(self.new(), "ONCE")  # a failing test leaves it
            self.pending = pending
            self.flat = True
        test = all_of(self.pending)
        self.pending = []
        if self.flat:
            self.lines.append(Line(self.indent, f"if {negation(test).source}: continue"))
            return
        self.lines.append(Line(self.indent, f"if {test.source}:"))
        self.indent += 1

    # --- lines --------------------------------------------------------------------------------

    def new(self, kind: Kind = Kind.ANY) -> Expression:
        """A local."""
        self.names += 1
        local = f"v{self.names}"
        self._created[local] = self._inner
        return name(local, kind)

    def outer(self) -> Expression:
        """Returns a new local of the function itself, even inside an inner function."""
        local = self.new()
        self._created[local.source] = None
        return local

    def line(self, text: str) -> None:
        """A statement."""
        self.append(Line(self.indent, text))

    def append(self, line: Line) -> None:
        """A statement, which stands where conditions that are still pending let it."""
        if self.pending:
            self.flush()
            line.indent = self.indent
        self.lines.append(line)

    def result(self, value: Expression) -> None:
        """End the function."""
        self.append(Return(self.indent, value=value))

    def end(self, value: Expression) -> None:
        """End the function where nothing that was written has."""
        self.lines.append(Return(1, value=value))

    def assign(self, value: Expression) -> Expression:
        """A local holding the value of an expression that cannot be undefined."""
        local = self.new(value.kind)
        self.line(f"{local.source} = {value.source}")
        return local

    def set(self, local: str, value: Expression) -> None:
        """Assigns another value to a local of this function or of an enclosing function."""
        self.line(f"{local} = {value.source}")
        self._share(local)

    def simple(self, value: Expression) -> Expression:
        """Returns the value itself if it may be repeated at no cost, else a local that holds it."""
        return value if value.is_simple else self.assign(value)

    def defined(self, value: Expression) -> Expression:
        """A local holding the value of an expression, where that is defined."""
        local = self.new(value.kind)
        self.condition(defined(local.source, value))
        return local

    def _share(self, local: str) -> None:
        """Notes the locals of enclosing functions that an inner function assigns (``nonlocal``)."""
        if self._inner is not None and self._created.get(local) is not self._inner:
            self._inner.shared[local] = None

    # --- loops --------------------------------------------------------------------------------

    def loop(self, targets: Expression | str, source: Expression | str) -> None:
        """Opens a loop."""
        if self.blocks >= MAX_BLOCKS:
            inner = Inner(self.indent, name=self.new().source)
            self.append(inner)
            self.loops.append(Loop(self.indent, inner))
            self._inner = inner
            self.indent += 1
            self.blocks = 0
            self.flat = False
            self.split = True
        target = targets if isinstance(targets, str) else targets.source
        items = source if isinstance(source, str) else source.source
        self.line(f"for {target} in {items}:")
        self.loops.append(Loop(self.indent))
        self.blocks += 1
        self.looping = True
        self.indent += 1

    def close(self) -> None:
        """End the body: its inner functions are called where they stand."""
        for loop in reversed(self.loops):
            if loop.inner is not None:
                self.lines.append(Line(loop.indent, f"{loop.inner.name}()"))
        self.loops = []

    def leave(self, flag: Expression) -> None:
        """End the body, leaving all its loops: its flag is set."""
        loops = self.loops
        for at in range(len(loops) - 1, -1, -1):
            loop = loops[at]
            word = "return" if at and loops[at - 1].inner is not None else "break"
            if at == len(loops) - 1:
                self.line("break")
            if loop.inner is not None:
                self.lines.append(Line(loop.indent, f"{loop.inner.name}()"))
            if at:
                self.lines.append(Line(loop.indent, f"if {flag.source}: {word}"))
        self.loops = []

    # --- paying -------------------------------------------------------------------------------

    def may_complain(self) -> None:
        """Notes that the code written next may end a strict evaluation."""
        if not self.unit.lenient:
            self.effects += 1

    def charge(self, count: str) -> None:
        """Pay for a loop over something with a length, where that is more than may be free."""
        self._begin_paying(f"if P or {count} > {FREE_TURNS}: ", count, begins=True)
        self._turn(FREE_TURNS)

    def charge_constant(self, count: int) -> None:
        """Pay for a loop over so many constants."""
        if count > FREE_TURNS:
            self._begin_paying("", str(count), begins=True)
        else:
            self._begin_paying("if P: ", str(count), begins=False)
        self._turn(min(count, FREE_TURNS))

    def charge_turns(self) -> None:
        """Begins to pay: the next loop charges each turn itself and may be long."""
        self.line(f"P = {PAYS} = True")
        self._share("P")
        self.price = None
        self._turn(FREE_TURNS)

    def _begin_paying(self, guard: str, steps: str, *, begins: bool) -> None:
        """The line that pays for a loop; each call that is written in the loop adds to its price."""
        self.price = Pay(self.indent, steps=steps, guard=guard, begins=begins)
        self.append(self.price)
        if begins:
            self._share("P")
        if self.bodies > 1:
            self.price.add(self.bodies - 1)

    def _turn(self, count: int) -> None:
        if self.collecting and self.loops:
            self.line(f"if P and len({self.collecting}) > {MAX_ITEMS}: too_large()")
        self.turns *= count
        self.free += self.turns * self.bodies
        self.pays = True

    def work(self) -> None:
        """Charges, within a loop, for work that takes longer than a usual turn."""
        self.spend(WORK_STEPS)
        if self.turns > 1:
            self.append(Pay(self.indent, steps=str(WORK_STEPS), guard="if P: "))

    def made(self, text: Expression) -> None:
        """Pay for a text that has been made: within a loop for the work, and for its length."""
        self.spend(WORK_STEPS)
        local = text.source
        if self.turns > 1:
            self.line(f"if P or len({local}) > {LONG_TEXT}: made({self.state}, {local})")
        else:
            self.line(f"if len({local}) > {LONG_TEXT}: too_long({self.state}, {local})")

    def called(self, function: str) -> None:
        """Pay, within a loop, for the call of a function that is written next."""
        self.callees.append((function, self.turns))
        self.spend(CALL_STEPS)
        if self.price is not None:
            self.price.add(CALL_STEPS)
        elif self.turns > 1:
            self.append(Pay(self.indent, steps=str(CALL_STEPS)))

    def spend(self, steps: int) -> None:
        """Counts steps of code written next, which charges for itself once the evaluation pays."""
        self.free += self.turns * steps
        if self.turns == 1:
            self.straight += steps

    # --- places -------------------------------------------------------------------------------

    def place(self) -> str:
        """Source of the place in the policy that is being written."""
        return self.unit.place(self.location)

    def save(self) -> Saved:
        """Saves the state that a nested body changes and must give back."""
        return Saved(
            dict(self.env),
            dict(self.known),
            self.indent,
            self.loops,
            self._inner,
            self.state,
            self.repeats,
            self.looping,
            self.flat,
            self.collecting,
            self.blocks,
            self.turns,
            self.price,
        )

    def restore(self, saved: Saved) -> None:
        """Gives it back."""
        if self.loops is not saved.loops:
            self.close()
        self.env, self.known, self.indent = saved.env, saved.known, saved.indent
        self.loops, self._inner, self.state = saved.loops, saved.inner, saved.state
        self.repeats, self.looping, self.flat = saved.repeats, saved.looping, saved.flat
        self.collecting, self.blocks = saved.collecting, saved.blocks
        self.turns, self.price = saved.turns, saved.price
        if self.reads:
            kept = {path: read for path, read in self.reads.items() if read[1] <= self.indent}
            self.reads = kept
