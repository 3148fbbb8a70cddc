"""The fast form of a whole policy: its validations, and the variables that they read, as one function.

A composed variable is a local computed at its first use. A variable that reads only parameters is
computed once for these and passed in. As the fast form of an expression, the function is exact
whenever it returns. After any exception the validations are evaluated one by one instead.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from webhook.cel.check.checker import Checked
from webhook.cel.errors import EvaluationError, LimitExceeded, Unsure
from webhook.cel.fast.expression import NAMESPACE, function_of
from webhook.cel.fast.operators import KNOWN, cost_of
from webhook.cel.fast.writer import Unwritten, Writer
from webhook.cel.run.values import NOTHING, VARIABLES, Value
from webhook.cel.syntax.ast import Expr, Name, Select, children
from webhook.rego.write import expression as source
from webhook.rego.write.expression import Expression, Kind

MAX_LINES: Final = 2_000
"""The most lines of one function: a variable that several branches read is written in each."""


def _unsure() -> None:
    raise Unsure


def _failed() -> None:
    raise EvaluationError("a variable of parameters that has no value")


GIVEN: Final[dict[str, Any]] = {
    **NAMESPACE,
    "NOTHING": NOTHING,
    "EvaluationError": EvaluationError,
    "LimitExceeded": LimitExceeded,
    "unsure": _unsure,
    "failed": _failed,
}
"""All that generated code is run with, constants apart."""

_ANY_OBJECT: Final = source.name("A")
_PARAMS: Final = source.name("P")
_OPERATION: Final = source.name("O")
_KNOWN: Final = dict(zip(KNOWN, (_ANY_OBJECT, _PARAMS), strict=True))


@dataclass(frozen=True, slots=True)
class Part:
    """An expression of a policy; ``has_exact_errors`` as in :class:`~webhook.cel.engine.Expression`."""

    checked: Checked
    has_exact_errors: bool


@dataclass(frozen=True, slots=True)
class Whole:
    """A policy's function.

    ``run`` is given the object (for a deletion the old one), parameters, operation, environment,
    meter and the values of the variables in ``prepared``: NOTHING for one that has none, which the
    first ``needed`` of them must not be. It gives, for each validation that fails, its number and
    message, None where its messageExpression has no value. ``reads`` are the names that it looks up
    in its environment.
    """

    run: Callable[..., list[tuple[int, Value]]] = field(repr=False)
    prepared: tuple[str, ...]
    needed: int
    reads: frozenset[str]


@dataclass(frozen=True, slots=True)
class WholeSource:
    """Its text, the constants that this names, and the same as there."""

    text: str
    constants: dict[str, Any]
    prepared: tuple[str, ...]
    needed: int
    reads: frozenset[str]


def whole_source(
    variables: Mapping[str, Part], validations: Sequence[tuple[Part, Part | None]]
) -> WholeSource | None:
    """The text of a policy's function; None where there is none."""
    try:
        return _PolicyWriter(variables, validations).policy()
    except (Unwritten, RecursionError):
        return None


def whole_form(
    variables: Mapping[str, Part], validations: Sequence[tuple[Part, Part | None]]
) -> Whole | None:
    """A policy's function, compiled; None where there is none."""
    written = whole_source(variables, validations)
    if written is None:
        return None
    run = function_of(written.text, {**GIVEN, **written.constants})
    if run is None:
        return None
    return Whole(run, written.prepared, written.needed, written.reads)


class _PolicyWriter(Writer):
    has_exact_errors = False

    def __init__(
        self, variables: Mapping[str, Part], validations: Sequence[tuple[Part, Part | None]]
    ) -> None:
        self.parts = variables
        self.validations = validations
        self.all = [*variables.values(), *(part for pair in validations for part in pair if part)]
        super().__init__(_together([part.checked for part in self.all]))
        self.locals: dict[str, Expression] = {}
        self.written: set[str] = set()
        self.guarded: set[str] = set()
        self.plain_variables: set[str] = set()
        of_parameters = _of_parameters(variables)
        needed = self.read_by([validation for validation, _ in validations])
        self.needed = tuple(name for name in of_parameters if name in needed)
        self.prepared = (*self.needed, *(name for name in of_parameters if name not in needed))

    def policy(self) -> WholeSource:
        """The whole function."""
        for name in (part for part in self.parts if part in self.prepared):
            self.tried(name)
            self.computed |= {name}
        self.computed = frozenset(self.needed)
        for number, (validation, message) in enumerate(self.validations):
            self.validation(number, validation, message)
        self.line("return R")
        cost = sum(cost_of(part.checked.parsed.root) for part in self.all)
        head = ["def f(A, P, O, E, M, C):", f"    M.left -= {cost}"]
        head += ["    if M.left < M.next_look:", "        M.check()", "    R = []"]
        head += [f"    {local.source} = E[{name!r}]" for name, local in self.roots.items()]
        if self.prepared:
            names = ", ".join(self.locals[name].source for name in self.prepared)
            head.append(f"    {names}{',' if len(self.prepared) == 1 else ''} = C")
        late = [self.locals[name].source for name in sorted(self.guarded)]
        if late:
            head.append(f"    {' = '.join(late)} = NOTHING")
        text = "\n".join([*head, *self.lines, ""])
        reads = frozenset(self.roots)
        return WholeSource(text, self.constants, self.prepared, len(self.needed), reads)

    def tried(self, name: str) -> None:
        """Finds the kind of a given variable's value, without keeping the lines for it."""
        lines, roots = self.lines, self.roots
        self.lines, self.roots = [], dict(roots)
        value = self.value(self.parts[name].checked.parsed.root)
        self.hold(name, value)
        self.lines, self.roots = lines, roots

    def validation(self, number: int, validation: Part, message: Part | None) -> None:
        """Writes one validation, and its message if it fails."""
        value = self.value(validation.checked.parsed.root)
        fails = source.negation(value)
        if value.kind is not Kind.BOOL:
            fails = source.compare(value, "is not", "True")
        self.line(f"if {fails.source}:")
        computed = self.computed
        self.indent += 1
        if message is None:
            self.add_failure(number, source.scalar(None))
        elif self.errors_are_exact(message):
            self.line("try:")
            self.indent += 1
            self.add_failure(number, self.value(message.checked.parsed.root))
            self.indent -= 1
            self.line("except LimitExceeded:")
            self.line("    unsure()")
            self.line("except EvaluationError:")
            self.indent += 1
            self.add_failure(number, source.scalar(None))
            self.indent -= 1
        else:
            self.add_failure(number, self.value(message.checked.parsed.root))
        self.indent -= 1
        self.computed = computed

    def add_failure(self, number: int, message: Expression) -> None:
        """Adds the result of a failed validation."""
        failure = source.tuple_of([source.scalar(number), message])
        self.line(source.method(source.name("R"), "append", failure).source)

    def errors_are_exact(self, part: Part) -> bool:
        """Whether errors of the part, and of all variables that it reads, are errors of the exact form.

        It is known whether a variable of parameters has a value.
        """
        within = self.read_by([part]) - {*self.prepared}
        return part.has_exact_errors and all(
            self.parts[name].has_exact_errors for name in within if name in self.parts
        )

    def read_by(self, parts: Sequence[Part]) -> set[str]:
        """The composed variables that are read, by variables that are read, too."""
        names: set[str] = set()
        waiting = list(parts)
        while waiting:
            more = _read_by(waiting.pop().checked) - names
            names |= more
            waiting += [self.parts[name] for name in more if name in self.parts]
        return names

    # --- methods that a policy overrides ---------------------------------------------------------

    def line(self, text: str) -> None:
        super().line(text)
        if len(self.lines) > MAX_LINES:
            raise Unwritten

    def name(self, meaning: str) -> Expression:
        if meaning == f".{_VARIABLES_NAME}":
            raise Unwritten  # as a value: there is none here
        return super().name(meaning)

    def select(self, node: Select) -> Expression:
        if (
            node.field == "operation"
            and not node.optional
            and self.checked.names.get(node.operand) == ".request"
        ):
            return source.TRUE if node.tests else _OPERATION  # it is always there
        return super().select(node)

    def is_plain_variable(self, name: str) -> bool:
        return name in _KNOWN or name in self.plain_variables

    def variable(self, node: Select) -> Expression:
        name = node.field
        if name in _KNOWN:
            return _KNOWN[name]
        if name in self.computed:
            return self.locals[name]
        if name not in self.parts:
            raise Unwritten  # referential data, which is no argument of the function
        if name in self.prepared:
            self.line(f"if {self.locals[name].source} is NOTHING:")
            self.line("    failed()")
            self.computed |= {name}
            return self.locals[name]
        # In a loop, or if another branch computes it, it may have been computed before.
        is_guarded = self.loops > 0 or name in self.written
        self.written.add(name)
        computed = self.computed
        if is_guarded:
            self.guarded.add(name)
            local = self.locals.setdefault(name, source.name(f"x{len(self.locals) + 1}"))
            self.line(f"if {local.source} is NOTHING:")
            self.indent += 1
        scopes, self.scopes = self.scopes, []
        value = self.value(self.parts[name].checked.parsed.root)
        self.scopes = scopes
        local = self.hold(name, value)
        self.assign(local, value)
        if is_guarded:
            self.indent -= 1
            self.computed = computed
        self.computed |= {name}
        return local

    def hold(self, name: str, value: Expression) -> Expression:
        """The local of a variable, of the kind of its value."""
        local_name = self.locals.get(name) or source.name(f"x{len(self.locals) + 1}")
        local = self.locals[name] = local_name.of_kind(value.kind)
        if self.is_plain(self.parts[name].checked.parsed.root):
            self.plain_variables.add(name)
        return local


_VARIABLES_NAME: Final = "variables"


def _together(parts: Sequence[Checked]) -> Checked:
    """Returns the checks' findings about the nodes of all expressions, in one."""
    together = Checked(parts[0].parsed, {}, {}, {}, {})
    for part in parts:
        together.types.update(part.types)
        together.names.update(part.names)
        together.functions.update(part.functions)
        together.overloads.update(part.overloads)
    return together


def _read_by(checked: Checked) -> set[str]:
    """The composed variables that an expression reads."""
    names: set[str] = set()
    waiting: list[Expr] = [checked.parsed.root]
    while waiting:
        node = waiting.pop()
        # The operand of a name with a dot, as `authorizer.requestResource`, has no type of its own.
        operand = checked.types.get(node.operand) if isinstance(node, Select) else None
        if isinstance(node, Select) and operand is not None and operand.name == VARIABLES:
            names.add(node.field)
        else:
            waiting.extend(children(node))
    return names


def _of_parameters(variables: Mapping[str, Part]) -> tuple[str, ...]:
    """Returns the variables that read only parameters."""
    names: dict[str, None] = {}
    for name, variable in variables.items():
        checked = variable.checked
        reads = {
            meaning
            for node, meaning in checked.names.items()
            if meaning.startswith(".") and isinstance(node, Name | Select)
        }
        composed = _read_by(checked)
        if reads <= {".params", ".variables"} and composed <= {KNOWN[1], *names}:
            names[name] = None
    return tuple(names)
