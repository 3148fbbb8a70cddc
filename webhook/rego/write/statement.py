"""Statements of generated code, as they stand in a function until the whole unit is written.

Some statements are decided after their place: the price of a loop once the calls in it are known,
and whether a function always pays once all functions are known. So lines are values, and written
text is never parsed again.
"""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, Final

from webhook.rego.run.runtime import PAYING
from webhook.values import dataclass

if TYPE_CHECKING:
    from webhook.rego.write.expression import Expression

PAYS: Final = f"S[{PAYING}]"
"""Whether an evaluation pays for all its loops."""


@dataclass(slots=True, eq=False)
class Line:
    """A line in a block so deep."""

    indent: int
    text: str = ""

    def texts(self, *, always: bool) -> list[str]:
        """Returns the lines of source; ``always`` if the function pays for all its loops."""
        del always
        return [self.text]


@dataclass(slots=True, eq=False)
class Return(Line):
    """The end of a function."""

    value: Expression = field(kw_only=True)

    def __post_init__(self) -> None:
        self.text = f"return {self.value.source}"


@dataclass(slots=True, eq=False)
class Pay(Line):
    """The line that pays for the code after it: the turns of a loop, or a call in a loop.

    ``steps`` is the source of a number. Each call written in a loop adds to the cost of a turn. In
    a function that always pays, the charge is written inline and not called: half the time.
    """

    steps: str = field(kw_only=True)
    guard: str = ""
    begins: bool = False
    """Whether the evaluation pays for all its loops from here on."""
    _each: int = 1

    def add(self, steps: int) -> None:
        """Lets each turn cost more."""
        self._each += steps

    def texts(self, *, always: bool) -> list[str]:
        """The line, or two that do the same at once."""
        steps = self.steps if self._each == 1 else f"{self.steps} * {self._each}"
        if always:
            return [f"X.left -= {steps}", "if X.left < X.next_check: X.check()"]
        begins = f"P = {PAYS} = " if self.begins else ""
        return [f"{self.guard}{begins}S[2].pay({steps})"]


@dataclass(slots=True, eq=False)
class Inner(Line):
    """The head of a function in a function, which goes on where no more blocks may be opened."""

    name: str = field(kw_only=True)
    shared: dict[str, None] = field(default_factory=dict)
    """Names of the functions around it that it assigns to."""

    def texts(self, *, always: bool) -> list[str]:
        """The head, and which names are not its own."""
        del always
        head = f"def {self.name}():"
        return [head, f"    nonlocal {', '.join(sorted(self.shared))}"] if self.shared else [head]


@dataclass(slots=True, eq=False)
class Reads(Line):
    """Locals that are read in one place for all later bodies."""

    locals_: dict[str, str] = field(default_factory=dict)
    """The sources of values that are read, and the locals that hold them."""

    def texts(self, *, always: bool) -> list[str]:
        """Returns all assignments in one line."""
        del always
        return ["; ".join([f"{local} = {reading}" for reading, local in self.locals_.items()])]


@dataclass(slots=True, eq=False)
class WrittenFunction:
    """A function's statements and their settings, before they become text."""

    name: str
    params: tuple[str, ...]
    lines: list[Line]
    """The lines after its beginning."""
    first: tuple[str, ...] = ()
    """The lines before its beginning."""
    settled: bool = False
    """Whether it says itself how it pays, or does nothing that must be paid."""

    def source(self, beginning: list[str], *, always: bool) -> str:
        """The text; ``beginning`` says how it pays, and ``always`` whether for all it does."""
        lines = [f"def {self.name}({', '.join(self.params)}):"]
        lines += [f"    {text}" for text in (*self.first, *beginning)]
        for line in self.lines:
            margin = "    " * line.indent
            lines += [margin + text for text in line.texts(always=always)]
        return "\n".join(lines)
