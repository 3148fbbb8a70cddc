"""Rego's own unit tests: found, run and judged as OPA's runner does (v1/tester/runner.go).

A test is a rule whose name begins with ``test_``; its cases are the keys of a rule such as
``test_concat[case.name]``. ``todo_test_`` is reported and not run.
"""

from __future__ import annotations

import time
from dataclasses import field, replace
from typing import TYPE_CHECKING, Any, Final

from webhook.rego.builtins.registry import Context, make_builtin
from webhook.rego.check.scope import declared_in
from webhook.rego.check.strict import nodes
from webhook.rego.engine import CompileOptions, Entrypoint, EvaluationContext, compile_modules
from webhook.rego.errors import EvaluationError
from webhook.rego.location import Location
from webhook.rego.run.limits import UNBOUNDED_STEPS
from webhook.rego.run.text import json_text, to_json
from webhook.rego.run.values import UNDEFINED, Value
from webhook.rego.syntax import ast
from webhook.rego.syntax.unparse import unparse
from webhook.rego.types import ANY, array_of
from webhook.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from webhook.rego.trace.events import StepTracer
    from webhook.rego.trace.query import TracedProgram

PREFIX: Final = "test_"
SKIPPED_PREFIX: Final = "todo_test_"
RULER: Final = "-" * 80
"""Between the parts of a report."""

_TEST_CASE: Final = "internal.test_case"
_CASES: Final = "test_cases"


@dataclass(frozen=True, slots=True)
class RegoCaseResult:
    """One case of a test, by its key; ``cases`` are the cases below it."""

    name: str
    failed: bool
    cases: Mapping[str, RegoCaseResult] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RegoTestResult:
    """The result of one test. ``output`` is the printed text."""

    location: Location
    package: str
    name: str
    seconds: float = 0.0
    failed: bool = False
    skipped: bool = False
    error: EvaluationError | None = None
    output: str = ""
    cases: Mapping[str, RegoCaseResult] = field(default_factory=dict)

    @property
    def passed(self) -> bool:
        """Whether all of it held."""
        return not (self.failed or self.skipped or self.error)


@dataclass(frozen=True, slots=True)
class UnitTest:
    """A test that may be run: ``path`` stands below ``data``; ``has_cases`` where a key is open."""

    location: Location
    package: str
    name: str
    path: tuple[str, ...]
    has_cases: bool
    skipped: bool

    @property
    def full_name(self) -> str:
        """Returns the name that a filter is matched against."""
        return f"{self.package}.{self.name}"


class UnitTests:
    """The tests of modules that belong together, compiled once.

    ``data`` holds the base documents; ``selects`` says of a test's full name whether to run it.
    Raises :class:`~webhook.rego.errors.RegoErrors`.
    """

    def __init__(
        self,
        modules: Sequence[ast.Module],
        data: dict[str, Value],
        *,
        selects: Callable[[str], bool] = bool,
        options: CompileOptions | None = None,
    ) -> None:
        self._data = data
        options = options or CompileOptions()
        numbered = [_with_cases(module) for module in _numbered(modules)]
        builtins = {**options.builtins, _TEST_CASE: _NAMED_CASE}
        program = compile_modules(numbered, options=replace(options, builtins=builtins))
        program.check_data(data)
        self._program = program
        self._traced: TracedProgram | None = None
        self.tests = [
            test for module in numbered for test in tests_of(module) if selects(test.full_name)
        ]
        run = [test.path for test in self.tests if not test.skipped]
        rules = program.documents(run)
        self._entries = {path: rule.entry for path, rule in zip(run, rules, strict=True)}

    def run(
        self,
        seconds_max: float,
        *,
        runtime: dict[str, Any] | None = None,
        services: Mapping[str, Any] | None = None,
        strict: bool = False,
    ) -> Iterator[RegoTestResult]:
        """Yields each test's result in the order of the sources; each has its own time limit.

        ``runtime`` is the result of ``opa.runtime()``, ``services`` are external services, and
        ``strict`` turns a built-in's error into the test's error.
        """
        for test in self.tests:
            if test.skipped:
                yield RegoTestResult(test.location, test.package, test.name, skipped=True)
                continue
            printed: list[str] = []
            named: list[list[str]] = []
            context = EvaluationContext(
                deadline=time.monotonic() + seconds_max,
                steps=UNBOUNDED_STEPS,
                print_=_sink(printed),
                strict=strict,
                services={**(services or {}), _CASES: named},
                runtime=runtime,
            )
            result = _run(test, self._entries[test.path], self._data, context, named)
            yield replace(result, output="".join(printed))

    def follow(  # one for each part of the world around a test
        self,
        test: UnitTest,
        tracer: StepTracer,
        seconds_max: float,
        *,
        runtime: dict[str, Any] | None = None,
        indexing: bool = True,
        early_exit: bool = True,
        compared: bool = False,
    ) -> None:
        """Runs a test again, and passes each step to the tracer.

        With ``compared`` the steps include the values of the terms that the test compares.
        """
        # Only explanations of a test and its coverage need a second evaluator.
        from webhook.rego.trace.query import TracedProgram  # noqa: PLC0415

        if self._traced is None:
            self._traced = TracedProgram(self._program.compiled, tests=compared)
        place = Location("", 1, 1)
        ref = ast.Ref(ast.Var("data"), tuple(map(ast.String, test.path)), location=place)
        context = EvaluationContext(
            deadline=time.monotonic() + seconds_max, steps=UNBOUNDED_STEPS, runtime=runtime
        )
        self._traced.query((ast.Expr(ref, location=place),))(
            UNDEFINED, self._data, context, tracer, indexing=indexing, early_exit=early_exit
        )


def _sink(printed: list[str]) -> Callable[[Location, str], None]:
    return lambda _, line: printed.append(f"{line}\n")


def _run(
    test: UnitTest,
    entry: Entrypoint,
    data: dict[str, Value],
    context: EvaluationContext,
    named: list[list[str]],
) -> RegoTestResult:
    begun = time.monotonic()
    value: Value = UNDEFINED
    error: EvaluationError | None = None
    try:
        value = entry(UNDEFINED, data, context)
    except EvaluationError as raised:
        error = raised
    seconds = time.monotonic() - begun
    cases: dict[str, RegoCaseResult] = {}
    failed = False
    if error is None and value is UNDEFINED:
        failed = True
    elif error is None and test.has_cases:
        failed, cases = _cases(to_json(value), named)
    elif error is None:
        failed = value is not True
    return RegoTestResult(
        test.location,
        test.package,
        test.name,
        seconds,
        failed=failed,
        error=error,
        cases=cases,
    )


# --- found -----------------------------------------------------------------------------------


def tests_of(module: ast.Module) -> Iterator[UnitTest]:
    """Yields the tests of a module, in order."""
    package = tuple(part.value for part in module.package.path if isinstance(part, ast.String))
    for rule in module.rules:
        steps = _test_steps(rule.head)
        if steps is None:
            continue
        name = unparse(_reference(steps))
        path = (*package, *steps)
        skipped = steps[-1].startswith(SKIPPED_PREFIX)
        yield UnitTest(
            rule.location, unparse(module.package), name, path, _has_cases(rule.head), skipped
        )


def _test_steps(head: ast.Head) -> tuple[str, ...] | None:
    """The constant steps of a rule's reference up to the test's name; None for another rule."""
    steps: list[str] = []
    for part in (head.ref.head, *head.ref.path):
        if isinstance(part, ast.Var) and not steps:
            steps.append(part.name)
        elif isinstance(part, ast.String):
            steps.append(part.value)
        else:
            return None
        if steps[-1].startswith((PREFIX, SKIPPED_PREFIX)):
            return tuple(steps)
    return None


def _reference(steps: Sequence[str]) -> ast.Term:
    first = ast.Var(steps[0])
    return ast.Ref(first, tuple(map(ast.String, steps[1:]))) if len(steps) > 1 else first


def _has_cases(head: ast.Head) -> bool:
    """Whether the rule makes an object with keys of its own (OPA's Head.DocKind)."""
    return head.key is None and any(
        not isinstance(part, ast.String | ast.Number | ast.Boolean | ast.Null)
        for part in head.ref.path
    )


# --- names of their own ----------------------------------------------------------------------


def _numbered(modules: Iterable[ast.Module]) -> Iterator[ast.Module]:
    """Numbers the tests of one name in a package: ``test_x``, ``test_x#01``."""
    seen: dict[str, int] = {}
    for module in modules:
        rules = tuple(_renamed(module, rule, seen) for rule in module.rules)
        yield replace(module, rules=rules)


def _renamed(module: ast.Module, rule: ast.Rule, seen: dict[str, int]) -> ast.Rule:
    steps = _test_steps(rule.head)
    if steps is None or not steps[-1].startswith(PREFIX):
        return rule
    name = f"{unparse(module.package)}.{unparse(_reference(steps))}"
    count = seen[name] = seen.get(name, -1) + 1
    if not count:
        return rule
    return _with_head(rule, lambda head: _head_named(head, len(steps), f"{steps[-1]}#{count:02d}"))


def _with_head(rule: ast.Rule, change: Callable[[ast.Head], ast.Head]) -> ast.Rule:
    else_ = None if rule.else_ is None else _with_head(rule.else_, change)
    return replace(rule, head=change(rule.head), else_=else_)


def _head_named(head: ast.Head, at: int, name: str) -> ast.Head:
    ref = head.ref
    if at == 1:
        return replace(head, ref=replace(ref, head=ast.Var(name, location=ref.head.location)))
    path = list(ref.path)
    path[at - 2] = ast.String(name, location=path[at - 2].location)
    return replace(head, ref=replace(ref, path=tuple(path)))


# --- cases -----------------------------------------------------------------------------------


def _with_cases(module: ast.Module) -> ast.Module:
    """Rules with open keys name their case as soon as the key is known, so that none is lost."""
    rules = tuple(
        _naming(rule) if _has_cases(rule.head) and _test_steps(rule.head) else rule
        for rule in module.rules
    )
    return replace(module, rules=rules)


def _naming(rule: ast.Rule) -> ast.Rule:
    steps = _test_steps(rule.head)
    assert steps is not None
    if not steps[-1].startswith(PREFIX) or _names_cases(rule):
        return rule
    keys = rule.head.ref.path[len(steps) - 1 :]
    place = rule.location
    operator = ast.Ref(ast.Var("internal"), (ast.String("test_case"),), location=place)
    call = ast.Call(operator, (ast.Array(keys, location=place),), location=place)
    at = _declared_by(
        rule.body, {node.name for key in keys for node in nodes(key) if isinstance(node, ast.Var)}
    )
    # It is evaluated as soon as the variables of its key have values.
    return replace(rule, body=(*rule.body[:at], ast.Expr(call, location=place), *rule.body[at:]))


def _declared_by(body: ast.Body, names: set[str]) -> int:
    """Returns how many literals of the body come before all of these names are declared."""
    declaring = [i for i, literal in enumerate(body) if declared_in([literal]) & names]
    return max(declaring, default=-1) + 1


def _names_cases(rule: ast.Rule) -> bool:
    return any(
        isinstance(literal, ast.Expr)
        and isinstance(literal.term, ast.Call)
        and literal.term.operator == ast.Ref(ast.Var("internal"), (ast.String("test_case"),))
        for literal in rule.body
    )


def _name_case(context: Context, keys: list[Value]) -> bool:
    context.services[_CASES].append([_key_text(key) for key in keys])
    return True


_NAMED_CASE: Final = make_builtin(
    _TEST_CASE, [array_of(ANY)], None, _name_case, context=True, deterministic=False
)


def _key_text(key: Value) -> str:
    return key if isinstance(key, str) else json_text(key)


def _cases(value: Any, named: Iterable[Sequence[str]]) -> tuple[bool, dict[str, RegoCaseResult]]:
    """Returns whether a case failed, and all cases: with and without a value."""
    cases = {name: _case(name, outcome) for name, outcome in value.items()}
    for path in named:
        cases = _with_missing(cases, path)
    return any(case.failed for case in cases.values()), cases


def _case(name: str, value: Any) -> RegoCaseResult:
    if not isinstance(value, dict):
        return RegoCaseResult(name, failed=value is not True)
    below = {key: _case(key, inner) for key, inner in value.items()}
    return RegoCaseResult(name, any(case.failed for case in below.values()), below)


def _with_missing(
    cases: Mapping[str, RegoCaseResult], path: Sequence[str]
) -> dict[str, RegoCaseResult]:
    """Returns the cases with that of this path, failed where it is not there yet."""
    name, *rest = path
    case = cases.get(name, RegoCaseResult(name, failed=True))
    if rest:
        below = _with_missing(case.cases, rest)
        failed = case.failed or any(inner.failed for inner in below.values())
        case = RegoCaseResult(name, failed, below)
    return {**cases, name: case}
