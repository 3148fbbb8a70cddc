"""The Python source of one program while it is being written.

Only three things enter the source: text of this package, names made of a letter
and a number, and ``repr`` of constants.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from webhook.rego.builtins.registry import GATEKEEPER
from webhook.rego.check.checks import path_text
from webhook.rego.check.ir import is_wildcard
from webhook.rego.errors import RegoErrors, RegoLoadError
from webhook.rego.run.numbers import Numeral
from webhook.rego.run.runtime import FIRST_SLOT
from webhook.rego.run.values import RegoObject, RegoSet
from webhook.rego.write.expression import named, scalar
from webhook.rego.write.purity import Purity, PurityFacts

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Mapping

    from webhook.rego.builtins.registry import Builtin
    from webhook.rego.check.ir import Function as FunctionName
    from webhook.rego.check.tree import Node, Tree
    from webhook.rego.location import Location
    from webhook.rego.run.values import Value
    from webhook.rego.write.ahead import Ahead
    from webhook.rego.write.expression import Expression
    from webhook.rego.write.function_requests import FunctionRequest
    from webhook.rego.write.payment import Payment
    from webhook.rego.write.statement import WrittenFunction

MAX_VARIANTS: Final = 30
"""The most calls with known operands that get their own functions in one constraint's code."""


class Unit:
    """Constants, built-ins, places and finished functions of one compilation."""

    def __init__(
        self,
        tree: Tree,
        builtins: Mapping[str, Builtin],
        mocked: frozenset[FunctionName],
        replaced: frozenset[tuple[str, ...]],
        level: str,
    ) -> None:
        self.level = level
        self.tree = tree
        self.builtins = builtins
        self.mocked = mocked
        self.replaced = replaced
        self.functions: list[WrittenFunction] = []
        """The written functions, in their order."""
        self.ends: list[str] = []
        """Statements after all functions."""
        self.header: list[str] = []
        self.places: list[Location] = []
        self.used_builtins: dict[str, str] = {}
        self.slow_builtins: dict[str, str] = {}
        self.slots = 0
        self.inlined = 0
        """Calls of functions written in their callers' places."""
        self.texts = 0
        """Texts joined from constants and values."""
        self.calls: dict[int, int] = {}
        self.payments: dict[str, Payment] = {}
        """The highest cost of each written function."""
        self.modifies = False
        """Whether a modifier makes documents be computed more than once."""
        self.requested: list[tuple[str, FunctionRequest]] = []
        self.data_nodes: list[str] = []
        self.child_links: list[str] = []
        self.names: dict[Hashable, str] = {}
        self._place_of: dict[tuple[str, int, int], int] = {}
        self._constants: dict[str, str] = {}
        self.facts = PurityFacts(tree, builtins, mocked, replaced)
        self.purity = Purity(self.facts, parameters=True)
        self.releases: list[Callable[[], None]] = []
        """Called at the end: each ends what one function's writer refers to."""
        self.of_constraint: list[tuple[int, str]] = []
        """Slots of documents that only parameters decide, and the functions that compute them."""
        self.lenient = False
        """Whether complaints of built-ins are never reported."""
        self.ahead: Ahead | None = None
        """The values that only parameters decide, for a constraint's own code; None elsewhere."""
        self.eager: Callable[[str, FunctionRequest], None] | None = None
        """Writes a requested function at once, so that its caller knows its cost."""
        self.sharing: Callable[[Node, str], tuple[str, tuple[str, ...]]] | None = None
        """Names documents that policies of a review share."""
        self.variants = 0
        self.quiet: set[str] = set()
        """Functions that end no evaluation and print nothing."""
        self.fixed: dict[str, Value] = {}
        """Functions with one constant result: UNDEFINED, or no members."""

    def constant(self, value: Value) -> Expression:
        """A known value; collections become names in the header."""
        kind = type(value)
        if value is None or kind is bool or kind is str or kind is int:
            return scalar(value)
        return named(self._named(self._source(value)), value)

    def _named(self, source: str) -> str:
        """The name of a constant in the header."""
        name = self._constants.get(source)
        if name is None:
            name = self._constants[source] = f"k{len(self._constants)}"
            self.header.append(f"{name} = {source}")
        return name

    def strings(self, members: list[str]) -> str:
        """The name of a constant set of strings, to look a string up in."""
        return self._named(f"frozenset(({''.join(f'{member!r}, ' for member in members)}))")

    def pattern(self, text: str) -> str:
        """The name of a search for a constant pattern that is known to compile."""
        return self._named(f"pattern({text!r}).found_in")

    def _source(self, value: Value) -> str:
        kind = type(value)
        if kind is list:
            return f"[{', '.join(map(self._source, value))}]"
        if kind is tuple:
            return f"({''.join(self._source(item) + ', ' for item in value)})"
        if kind is dict:
            items = (f"{name!r}: {self._source(item)}" for name, item in value.items())
            return f"{{{', '.join(items)}}}"
        if kind is RegoSet:
            return f"RegoSet([{', '.join(map(self._source, value))}])"
        if kind is RegoObject:
            items = (f"({self._source(k)}, {self._source(v)})" for k, v in value.items())
            return f"RegoObject([{', '.join(items)}])"
        if isinstance(value, Numeral):
            return f"Numeral({value.text!r})"
        if isinstance(value, float):
            return repr(value)
        return scalar(value).source

    def place(self, location: Location) -> str:
        """Source of a place in the policy, for errors."""
        at = location.position()
        number = self._place_of.get(at)
        if number is None:
            number = self._place_of[at] = len(self.places)
            self.places.append(location)
        return f"L[{number}]"

    def builtin(self, name: str) -> str:
        """The name of a built-in's function in the source."""
        alias = self.used_builtins.get(name)
        if alias is None:
            alias = self.used_builtins[name] = f"b{len(self.used_builtins)}"
        return alias

    def slow(self, name: str) -> str:
        """The name of a built-in that is called with a state and a place and never complains."""
        alias = self.slow_builtins.get(name)
        if alias is None:
            alias = self.slow_builtins[name] = f"c{len(self.slow_builtins)}"
        return alias

    def slot(self) -> int:
        """A place in the state of an evaluation, for a document."""
        self.slots += 1
        return FIRST_SLOT + self.slots - 1

    def want(self, needed: FunctionRequest) -> str:
        """The name of a function, which is to be written if it has not been."""
        at = needed.key
        name = self.names.get(at)
        if name is None:
            name = self.names[at] = f"{needed.letter}{len(self.names)}"
            if self.eager is None:
                self.requested.append((name, needed))
            else:
                self.eager(name, needed)
        return name

    def may_vary(self) -> bool:
        """Whether another function may be written for known operands."""
        self.variants += 1
        return self.variants <= MAX_VARIANTS

    def arity(self, name: FunctionName) -> int:
        """How many operands a function takes; -1 if there is none of this name."""
        if isinstance(name, str):
            builtin = self.builtins.get(name)
            return -1 if builtin is None else len(builtin.operands)
        node = self.tree.function(name)
        return -1 if node is None else len(node.rules[0].args or ())

    def close(self) -> None:
        """Ends what refers to each other: otherwise only a collection of garbage would free it.

        With it would go all rules: for 500 templates these were twice their lasting memory.
        """
        for release in self.releases:
            release()
        self.releases.clear()
        self.ahead = self.eager = self.sharing = None

    def replaceable(self, path: tuple[Value, ...]) -> bool:
        """Whether some modifier of the program may replace the document at this path."""
        return self.facts.replaceable(path)

    def conflict(self, node: Node) -> str:
        """Source of the message for rules that disagree (OPA v1/topdown/errors.go)."""
        function = node.rules[0].args is not None
        if self.level == GATEKEEPER:
            return "FUNCTION" if function else "COMPLETE"
        name = path_text(("data", *node.path))
        if function:
            return repr(f"function {name} produced conflicting values for the same inputs")
        return repr(f"rule {name} produced conflicting values")

    def refuse(self, message: str, location: Location) -> RegoErrors:
        """Returns the error for a feature that this compiler does not support."""
        return RegoErrors([RegoLoadError("rego_compile_error", message, location)])

    def unsafe(self, name: str, location: Location) -> RegoErrors:
        """The error for a variable that has no value where it is needed."""
        message = f"var {'_' if is_wildcard(name) else name.rsplit(' ', 1)[-1]} is unsafe"
        return RegoErrors([RegoLoadError("rego_unsafe_var_error", message, location)])
