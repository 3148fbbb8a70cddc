"""Stage 5a: terms as Python, in one function being written.

The style is "success indents": a condition that fails falls out of the nest, so
that nothing is needed to leave it. Conditions are kept pending and written as
one ``if`` when a statement must follow.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from webhook.rego.check import ir
from webhook.rego.check.variables import visible
from webhook.rego.location import NOWHERE
from webhook.rego.run.metered import WORK_STEPS
from webhook.rego.run.runtime import LONG_TEXT, MISSING, PAYING
from webhook.rego.run.values import UNDEFINED, RegoSet
from webhook.rego.write.constants import UnreachableError, static
from webhook.rego.write.price import Price

if TYPE_CHECKING:
    from collections.abc import Callable

    from webhook.rego.location import Location
    from webhook.rego.run.values import Value
    from webhook.rego.write.common_reads import CommonReads
    from webhook.rego.write.unit import Unit
    from webhook.rego.write.uses import Uses

MAX_BLOCKS: Final = 16
"""Loops inside each other in one function, from which on a function inside of it goes on: CPython
allows 20 blocks, of which a ``try`` is one, too."""

FLAT_FROM: Final = 30
"""Levels of indentation from which conditions leave a loop instead of opening a block.

CPython allows 100 levels.
"""

MAX_ITEMS: Final = 1_000_000
"""Members of a collection that nested iterations may make: some 100 MB."""

CALL_STEPS: Final = 5
"""What a call of a function is paid with, likewise."""

PAYS: Final = f"S[{PAYING}]"
"""Whether an evaluation pays for all its loops."""

FREE_TURNS: Final = 10
"""Turns of a loop that may be free (:mod:`webhook.rego.write.payment`): what nearly all lists
and objects of Kubernetes have."""

STRING, INT, BOOL, LIST, DICT, SET, NULL = "s", "i", "b", "l", "d", "S", "n"

Operand = tuple[str, str]
"""Source of a value, free of effects, and its kind where known."""

KIND_OF: Final[dict[type, str]] = {
    str: STRING,
    int: INT,
    bool: BOOL,
    list: LIST,
    dict: DICT,
    type(None): NULL,
    RegoSet: SET,
}


class Writer:
    """Writes one Python function."""

    __slots__ = (
        "blocks",
        "bodies",
        "callees",
        "collecting",
        "common",
        "effects",
        "env",
        "flat",
        "free",
        "hoisted",
        "indent",
        "index",
        "known",
        "lines",
        "location",
        "looping",
        "loops",
        "names",
        "pays",
        "pending",
        "price",
        "prologue",
        "reads",
        "repeats",
        "split",
        "state",
        "straight",
        "turns",
        "unit",
        "uses",
    )

    def __init__(self, unit: Unit, uses: Uses) -> None:
        self.unit = unit
        self.uses = uses
        self.lines: list[tuple[int, str]] = []
        self.indent = 1
        self.pending: list[str] = []
        self.env: dict[str, Operand] = {}
        self.state = "S"
        self.loops: list[int | tuple[int, str]] = []
        """Indentation of the loops that the body is inside of; of an inner function with its name."""
        self.blocks = 0
        """Loops that the place is inside of, in its own function."""
        self.split = False
        """Whether there are inner functions."""
        self.known: dict[tuple[Any, ...], Operand] = {}
        self.reads: dict[tuple[str, ...], tuple[str, int]] = {}
        """Paths of locals that have been read, to a local that is undefined where there is nothing,
        and the indentation of the reading: it stands for whatever is written in the same block."""
        self.common: dict[str, CommonReads] = {}
        """Where a local's fields are read that many bodies read, by the local."""
        self.repeats = True
        """Whether the same solution may be found twice without harm."""
        self.names = 0
        self.effects = 0
        """Counts what may end the evaluation or be seen from outside: it is never left out."""
        self.looping = False
        self.flat = False
        self.collecting = ""
        self.bodies = 1
        """Bodies that share what is being written: a turn of a loop is a turn of each."""
        self.callees: list[tuple[str, int]] = []
        """Functions called, and how often while no loop of this one has more than its free turns."""
        self.turns = 1
        """Turns of the loops that the place is inside of, while they are free."""
        self.free = 0
        """Steps of all that has been written, likewise."""
        self.straight = 0
        """Steps of what stands outside of loops: nobody pays for it."""
        self.price: Price | None = None
        """Where the innermost loop is paid for, and how many steps a turn."""
        self.pays = False
        """Whether anything written pays once a loop is long."""
        self.prologue: list[str] = []
        self.hoisted: dict[tuple[str, ...], str] = {}
        self.index = "index"
        self.location: Location = NOWHERE

    # --- lines -----------------------------------------------------------------------------

    def new(self) -> str:
        """A local name."""
        self.names += 1
        return f"v{self.names}"

    def condition(self, source: str) -> None:
        """What follows happens only where this holds."""
        if source == "False":
            raise UnreachableError
        if source != "True":
            self.pending.append(source)

    def attempt(self, write: Callable[[], None]) -> bool:
        """Write a body; of one that turns out to have no solution only effects are left."""
        start, effects, depth = len(self.lines), self.effects, len(self.loops)
        reads = dict(self.reads)
        try:
            write()
        except UnreachableError:
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
        """Write the pending conditions, so that a statement can follow."""
        if not self.pending:
            return
        if self.indent >= FLAT_FROM and not self.flat:
            pending, self.pending = self.pending, []
            self.loop(self.new(), "ONCE")  # what fails can leave it
            self.pending = pending
            self.flat = True
        condition = " and ".join(self.pending)
        self.pending = []
        if self.flat:
            self.lines.append((self.indent, f"if not ({condition}): continue"))
            return
        self.lines.append((self.indent, f"if {condition}:"))
        self.indent += 1

    def line(self, text: str) -> None:
        """A statement."""
        if self.pending:
            self.flush()
        self.lines.append((self.indent, text))

    def loop(self, targets: str, source: str) -> None:
        """Open a loop."""
        if self.blocks >= MAX_BLOCKS:
            name = self.new()
            self.line(f"def {name}():")
            self.loops.append((self.indent, name))
            self.indent += 1
            self.blocks = 0
            self.flat = False
            self.split = True
        self.line(f"for {targets} in {source}:")
        self.loops.append(self.indent)
        self.blocks += 1
        self.looping = True
        self.indent += 1

    def close(self) -> None:
        """End the body: its inner functions are called where they stand."""
        for loop in reversed(self.loops):
            if isinstance(loop, tuple):
                self.lines.append((loop[0], f"{loop[1]}()"))
        self.loops = []

    def leave(self, flag: str) -> None:
        """End the body, leaving all its loops: its flag is set."""
        loops = self.loops
        for at in range(len(loops) - 1, -1, -1):
            loop = loops[at]
            word = "return" if at and isinstance(loops[at - 1], tuple) else "break"
            if at == len(loops) - 1:
                self.line("break")
            if isinstance(loop, tuple):
                self.lines.append((loop[0], f"{loop[1]}()"))
            if at:
                indent = loop if isinstance(loop, int) else loop[0]
                self.lines.append((indent, f"if {flag}: {word}"))
        self.loops = []

    def assign(self, source: str) -> str:
        """A local holding the value of an expression that cannot be undefined."""
        name = self.new()
        self.line(f"{name} = {source}")
        return name

    def defined(self, source: str) -> str:
        """A local holding the value of an expression, where that is defined."""
        name = self.new()
        self.condition(f"({name} := {source}) is not U")
        return name

    def may_complain(self) -> None:
        """What is written next may end a strict evaluation."""
        if not self.unit.lenient:
            self.effects += 1

    def charge(self, source: str) -> None:
        """Pay for a loop over something with a length, where that is more than may be free."""
        self._begin_paying(f"if P or {source} > {FREE_TURNS}: P = {PAYS} = S[2].pay({source}")
        self._turn(FREE_TURNS)

    def charge_constant(self, count: int) -> None:
        """Pay for a loop over so many constants."""
        if count > FREE_TURNS:
            self._begin_paying(f"P = {PAYS} = S[2].pay({count}")
        else:
            self._begin_paying(f"if P: S[2].pay({count}")
        self._turn(min(count, FREE_TURNS))

    def charge_turns(self) -> None:
        """Begin to pay: a loop follows whose turns pay for themselves, and may be many."""
        self.line(f"P = {PAYS} = True")
        self.price = None
        self._turn(FREE_TURNS)

    def _begin_paying(self, text: str) -> None:
        """The line that pays for a loop; each call that is written in the loop adds to its price."""
        self.line(f"{text})")
        self.price = Price(self.lines, text)
        if self.bodies > 1:
            self.price.add(self.bodies - 1)

    def _turn(self, count: int) -> None:
        if self.collecting and self.loops:
            self.line(f"if P and len({self.collecting}) > {MAX_ITEMS}: too_large()")
        self.turns *= count
        self.free += self.turns * self.bodies
        self.pays = True

    def work(self) -> None:
        """Pay, within a loop, for what takes longer than a turn of it was paid for."""
        self.spend(WORK_STEPS)
        if self.turns > 1:
            self.line(f"if P: S[2].pay({WORK_STEPS})")

    def made(self, text: str) -> None:
        """Pay for a text that has been made: within a loop for the work, and for its length."""
        self.spend(WORK_STEPS)
        if self.turns > 1:
            self.line(f"if P or len({text}) > {LONG_TEXT}: made({self.state}, {text})")
        else:
            self.line(f"if len({text}) > {LONG_TEXT}: too_long({self.state}, {text})")

    def called(self, function: str) -> None:
        """Pay, within a loop, for the call of a function that is written next."""
        self.callees.append((function, self.turns))
        self.spend(CALL_STEPS)
        if self.price is not None:
            self.price.add(CALL_STEPS)
        elif self.turns > 1:
            self.line(f"S[2].pay({CALL_STEPS})")

    def spend(self, steps: int) -> None:
        """Count what is written next, which pays for itself where an evaluation pays."""
        self.free += self.turns * steps
        if self.turns == 1:
            self.straight += steps

    def snapshot(self) -> tuple[Any, ...]:
        """What a nested body changes and must give back."""
        return (
            dict(self.env),
            dict(self.known),
            self.indent,
            self.loops,
            self.state,
            self.repeats,
            self.looping,
            self.flat,
            self.collecting,
            self.blocks,
            self.turns,
            self.price,
        )

    def restore(self, saved: tuple[Any, ...]) -> None:
        """Give it back."""
        if self.loops is not saved[3]:
            self.close()
        self.env, self.known, self.indent, self.loops, *rest = saved
        self.state, self.repeats, self.looping, self.flat, self.collecting, *rest = rest
        self.blocks, self.turns, self.price = rest
        if self.reads:
            kept = {path: read for path, read in self.reads.items() if read[1] <= self.indent}
            self.reads = kept

    # --- whether variables are bound ---------------------------------------------------------

    def bound(self, term: ir.Term) -> bool:
        """Whether every variable of the term has a value."""
        kind = type(term)
        if kind is ir.Const or kind is ir.Given or kind is ir.Comprehension:
            return True
        if kind is ir.Var:
            return term.name in self.env or term.name in ("input", "data")  # type: ignore[union-attr]
        names: set[str] = set()
        visible(term, names)
        return all(name in self.env or name in ("input", "data") for name in names)

    def evaluable(self, term: ir.Term) -> bool:
        """Whether the term has values now: bound, or a reference that can be iterated."""
        if isinstance(term, ir.Ref):
            return isinstance(term.head, ir.Given) or self.bound(term.head)
        if isinstance(term, (ir.Array, ir.Set)):
            return all(map(self.evaluable, term.items))
        if isinstance(term, ir.Object):
            return all(self.evaluable(k) and self.evaluable(v) for k, v in term.items)
        return self.bound(term)

    # --- terms -------------------------------------------------------------------------------

    def operand(self, term: ir.Term) -> Operand:
        """Source of the term's value; what must hold for it to have one is written before."""
        if isinstance(term, ir.Const):
            return self.constant(term.value)
        if isinstance(term, ir.Given):
            return term.source, term.kind
        if isinstance(term, ir.Var):
            return self._variable(term)
        value = self.static(term)
        if value is not MISSING:
            return self.constant(value)
        if isinstance(term, ir.Ref):
            return self.reference(term)
        if isinstance(term, ir.Array):
            items = [self.operand(item)[0] for item in term.items]
            return f"[{', '.join(items)}]", LIST
        if isinstance(term, ir.Set):
            items = [self.operand(item)[0] for item in term.items]
            return f"RegoSet(({''.join(item + ', ' for item in items)}))", SET
        if isinstance(term, ir.Object):
            return self._object(term)
        if isinstance(term, ir.Comprehension):
            return self.comprehension(term)
        return self.template(term)

    def constant(self, value: Value) -> Operand:
        """Source of a known value; there is no solution where it is undefined."""
        if value is UNDEFINED:
            raise UnreachableError
        return self.unit.constant(value), KIND_OF.get(type(value), "")

    def value_of(self, operand: Operand) -> Value:
        """The operand's value where that is known already, else MISSING."""
        return self.unit.values.get(operand[0], MISSING)

    def static(self, term: ir.Term) -> Value:
        """The term's value where that is known already, UNDEFINED included, else MISSING."""
        return static(term, self._known)

    def _known(self, name: str) -> Value:
        found = self.env.get(name)
        return MISSING if found is None else self.value_of(found)

    def atom(self, term: ir.Term) -> Operand:
        """As :meth:`operand`, a name or scalar constant that may be repeated at no cost."""
        source, kind = self.operand(term)
        return self.name_of(source, kind), kind

    def name_of(self, source: str, _kind: str = "") -> str:
        """The source itself where it is a name or constant, else a local."""
        if source.isidentifier() or source[0] in "'\"" or source.isdigit():
            return source
        return self.assign(source)

    def _variable(self, term: ir.Var) -> Operand:
        found = self.env.get(term.name)
        if found is not None:
            return self.narrowed(found)
        if term.name == "input":
            return self.root("input")
        if term.name == "data":
            return self.data(ir.Ref(term, []))
        raise self.unit.unsafe(term.name, self.location)

    def narrowed(self, operand: Operand) -> Operand:
        """The operand with the kind that a test before has shown."""
        if operand[1] == "":
            return self.known.get(("kind", operand[0]), operand)
        return operand

    def narrow(self, source: str, kind: str) -> None:
        """What follows happens only where this local has a value of this kind."""
        if source.isidentifier():
            self.known["kind", source] = (source, kind)

    def root(self, name: str) -> Operand:
        """The input, where there is one, or the base documents."""
        at = (self.state, name)
        found = self.known.get(at)
        if found is None:
            if name == "input":
                found = self.defined(f"{self.state}[0]"), ""
            else:
                found = self.assign(f"{self.state}[1]"), ""
            self.known[at] = found
        return found

    def _object(self, term: ir.Object) -> Operand:
        items = [(self.operand(key), self.operand(value)[0]) for key, value in term.items]
        if all(kind == STRING for (_, kind), _ in items):
            names = [name for (name, _), _ in items]
            constant = all(name[0] in "'\"" for name in names)
            if constant and len(set(names)) == len(names):
                return f"{{{', '.join(f'{key[0]}: {value}' for key, value in items)}}}", DICT
        source = "".join(f"({key[0]}, {value}), " for key, value in items)
        self.effects += 1
        return self.assign(f"build(({source}), {self._place()})"), ""

    def _place(self) -> str:
        return self.unit.place(self.location)

    def comprehension(self, term: ir.Comprehension) -> Operand:
        """Written by the subclass that knows bodies."""
        raise NotImplementedError

    def template(self, term: ir.Template) -> Operand:
        """Written by the subclass that knows bodies."""
        raise NotImplementedError

    def reference(self, ref: ir.Ref) -> Operand:
        """Written by the subclass that knows references."""
        raise NotImplementedError

    def data(self, ref: ir.Ref) -> Operand:
        """Written by the subclass that knows references."""
        raise NotImplementedError

    def match(self, pattern: ir.Term, value: Operand) -> None:
        """Written by the subclass that knows unification."""
        raise NotImplementedError
