"""The table of built-ins: name, operand and result types, and the function.

A family module registers with the decorator and says where the behaviour is
documented::

    @builtin("strings.reverse", STRING, result=STRING)
    def strings_reverse(x: str) -> str:
        \"\"\"Reverse by code point (OPA reference, "Strings").\"\"\"
        return x[::-1]

Operands of a declared simple type are checked before the function is entered,
and a wrong one is ``operand 1 must be string but got number``, as in OPA.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable

    from webhook.rego.types import Type
    from webhook.rego.values import Value


class Context(Protocol):
    """What an evaluation lends its built-ins; one object for each query."""

    @property
    def now_ns(self) -> int:
        """The query's one time, in nanoseconds since 1970: every call sees the same."""

    @property
    def random(self) -> Any:
        """A ``random.Random`` of this query, seeded by the caller or the system."""

    @property
    def cache(self) -> dict[Any, Any]:
        """A scratch of this query, for results that must not change within it."""

    @property
    def runtime(self) -> dict[str, Value]:
        """What ``opa.runtime()`` returns."""

    @property
    def services(self) -> dict[str, Any]:
        """Doors to the outside that the caller opened: ``http`` for http.send and so on."""

    def charge(self, steps: int) -> None:
        """Pay for work about to be done in C; raises ``eval_cancel_error`` when spent.

        One step is about 50 ns of work: an element visited, a few characters
        copied. A built-in whose work is not linear in a small result charges
        before it works.
        """


@dataclass(frozen=True, slots=True)
class Builtin:
    """A registered built-in.

    ``function`` takes the operands, after a :class:`Context` if ``context``. A
    ``relation`` returns an iterable of results, each one a solution (``walk``).
    ``deterministic`` is false where equal operands may give different results
    in different queries.
    """

    name: str
    operands: tuple[Type, ...]
    result: Type
    function: Callable[..., Value]
    context: bool = False
    relation: bool = False
    deterministic: bool = True
    variadic: Type | None = None
    infix: str = ""


BUILTINS: dict[str, Builtin] = {}
"""Every built-in by name, complete once :mod:`webhook.rego.builtins.families` is imported."""
