"""Rego that reports each step of an evaluation: for people at a terminal, many times slower."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from webhook.api.encoding import encode
from webhook.api.gvk import name_of, text
from webhook.constraint.drivers import external_data
from webhook.constraint.drivers.budget import ReviewContext
from webhook.constraint.drivers.rego import VIOLATION, modules_of
from webhook.constraint.errors import PolicyError
from webhook.printable import printable_name
from webhook.rego.engine import CompileOptions, compile_modules
from webhook.rego.errors import EvaluationError
from webhook.rego.syntax.parser import parse_query
from webhook.rego.trace.events import StepRecorder, shown
from webhook.rego.trace.pretty import table
from webhook.rego.trace.query import TracedProgram, TracedQuery

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from webhook.constraint.driver import Driver, DriverViolation, Evaluator
    from webhook.constraint.limits import Limits
    from webhook.constraint.template import Code, Template


class RegoTrace(NamedTuple):
    """The steps of one evaluation, with its template, parameters and review."""

    template: str
    parameters: Any
    review: Mapping[str, Any]
    steps: Sequence[str]

    def lines(self) -> Iterator[str]:
        """Yields a title for the evaluated query, and then the steps."""
        obj = self.review.get("object") or {}
        about = f"{text(obj, 'kind')} {name_of(obj)}"
        parameters = encode(self.parameters).decode()
        yield printable_name(f"trace of {self.template} {parameters} on {about}:")
        yield from map(printable_name, self.steps)


class TracingDriver:
    """Wraps another driver, and calls ``notify`` with each evaluation's steps."""

    def __init__(
        self, driver: Driver, options: CompileOptions, notify: Callable[[RegoTrace], None]
    ) -> None:
        self._driver = driver
        self._options = options
        self._notify = notify

    @property
    def name(self) -> str:
        """Returns the engine's name in templates, which is that of the wrapped driver."""
        return self._driver.name

    def compile(self, template: Template, code: Code) -> Evaluator:
        """Compile; raises :class:`~webhook.constraint.errors.InvalidTemplate`."""
        evaluator = self._driver.compile(template, code)
        program = compile_modules(modules_of(code.source), options=self._options)
        query = TracedProgram(program.compiled).query(parse_query(VIOLATION))
        return _TracingEvaluator(evaluator, template.kind, query, self._notify)


class _TracingEvaluator:
    """Wraps another evaluator, and evaluates once more step by step."""

    reads_constraint = False

    def __init__(
        self,
        evaluator: Evaluator,
        kind: str,
        query: TracedQuery,
        notify: Callable[[RegoTrace], None],
    ) -> None:
        self._evaluator = evaluator
        self._kind = kind
        self._query = query
        self._notify = notify

    def begin(
        self, limits: Limits, inventory: Mapping[str, Any], shared: dict[str, Any] | None = None
    ) -> tuple[Mapping[str, Any], Limits, Any]:
        """Begins the other evaluator's review; the steps read the inventory and the limits."""
        return inventory, limits, self._evaluator.begin(limits, inventory, shared)

    def evaluate(self, given: Any, review: Any, state: Any) -> Sequence[DriverViolation]:
        """Returns the other evaluator's violations; reports the steps, up to an error that ends them."""
        inventory, limits, other_state = state
        parameters = {} if given is None else given
        try:
            violations = self._evaluator.evaluate(given, review, other_state)
        except PolicyError:
            self._follow(parameters, review, inventory, limits)
            raise
        self._follow(parameters, review, inventory, limits)
        return violations

    def _follow(
        self, parameters: Any, review: Any, inventory: Mapping[str, Any], limits: Limits
    ) -> None:
        context = ReviewContext()
        context.shared, context.asking = None, external_data.Asking(limits.known)
        recorder = StepRecorder()
        with suppress(EvaluationError):  # It ended the evaluation, too, and is reported.
            self._query(
                {"review": review, "parameters": parameters},
                {"inventory": inventory},
                context,
                recorder,
            )
        steps = table(shown(recorder.events, "full"))
        self._notify(RegoTrace(self._kind, parameters, review, steps))
