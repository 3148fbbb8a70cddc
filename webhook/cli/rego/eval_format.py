"""The result of a query in the formats of ``opa eval``.

:data:`FORMATS` has one function for each ``--format``; it returns the text of a
:class:`QueryOutcome`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from webhook import duration
from webhook.cli.rego.report import coverage_document
from webhook.cli.table import framed
from webhook.printable import printable
from webhook.rego.run.text import OrderedFields, indented, json_of_affordable, laid_out
from webhook.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from webhook.rego.results import Solution
    from webhook.rego.trace.profile import LineProfile


@dataclass(slots=True)
class QueryOutcome:
    """The solutions of a query and the reports that flags request; None without the flag."""

    solutions: list[Solution]
    explanation: Sequence[str] | None = None
    metrics: dict[str, int] | None = None
    profile: Sequence[LineProfile] | None = None
    coverage: dict[str, Any] | None = None


def _json(outcome: QueryOutcome) -> str:
    return indented(_document(outcome))


def _document(outcome: QueryOutcome) -> dict[str, Any]:
    result = []
    for solution in outcome.solutions:
        shown = OrderedFields(
            expressions=[
                OrderedFields(
                    value=expression.value,
                    text=expression.text,
                    location=OrderedFields(
                        row=expression.location.row, col=expression.location.col
                    ),
                )
                for expression in solution.expressions
            ]
        )
        if solution.bindings:
            shown["bindings"] = solution.bindings
        result.append(shown)
    document = OrderedFields(result=result) if result else OrderedFields()
    if outcome.metrics is not None:
        document["metrics"] = outcome.metrics
    if outcome.explanation is not None:
        document["explanation"] = list(outcome.explanation)
    if outcome.profile is not None:
        document["profile"] = [
            OrderedFields({**line, "location": OrderedFields(line["location"])})
            for line in (profiled.document() for profiled in outcome.profile)
        ]
    if outcome.coverage is not None:
        document["coverage"] = coverage_document(outcome.coverage)
    return document


def _discard(outcome: QueryOutcome) -> str:
    """Returns the JSON with the result left out, for measurements."""
    document = _document(outcome)
    if "result" in document:
        document["result"] = "discarded"
    return indented(OrderedFields(sorted(document.items())))


def _values(outcome: QueryOutcome) -> str:
    return "\n".join(
        laid_out([expression.value for expression in solution.expressions], "", "  ")
        for solution in outcome.solutions
    )


def _bindings(outcome: QueryOutcome) -> str:
    return "\n".join(laid_out(solution.bindings, "", "  ") for solution in outcome.solutions)


def _raw(outcome: QueryOutcome) -> str:
    return printable(
        "\n".join(
            " ".join(
                expression.value
                if isinstance(expression.value, str)
                else json_of_affordable(expression.value)
                for expression in solution.expressions
            )
            for solution in outcome.solutions
        )
    )


def _pretty(outcome: QueryOutcome) -> str:
    lines = [printable(line) for line in outcome.explanation or ()]
    lines.append(_result_text(outcome.solutions))
    if outcome.metrics:
        rows = [[name, str(value)] for name, value in outcome.metrics.items()]
        lines += framed(["Metric", "Value"], rows)
    if outcome.profile:
        lines += framed(
            ["Time", "Num Eval", "Num Redo", "Num Gen Expr", "Location"],
            [_profile_row(line) for line in outcome.profile],
        )
    if outcome.coverage is not None:
        cells = ["Overall Coverage", f"{outcome.coverage['coverage']:.2f}"]
        lines += _boxed(cells)
    return "\n".join(lines)


def _profile_row(line: LineProfile) -> list[str]:
    place = line.location
    where = f"{place.file}:{place.row}" if place.file else place.text or f"{place.row}:{place.col}"
    counts = [str(line.num_eval), str(line.num_redo), str(line.num_gen_expr)]
    return [duration.shown(line.total_time_ns), *counts, where]


def _boxed(cells: Sequence[str]) -> list[str]:
    """Returns the lines of a table with one row and no header."""
    top, _, _, *rest = framed(cells, [cells])
    return [top, *rest]


def _result_text(solutions: list[Solution]) -> str:
    """Returns the result for ``--format pretty``.

    - ``undefined`` without a solution.
    - The value alone, for one solution without variables that has one expression, or tests only.
    - Else a table.
    """
    if not solutions:
        return "undefined"
    first = solutions[0]
    if (
        len(solutions) == 1
        and not first.bindings
        and (
            len(first.expressions) == 1
            or all(isinstance(expression.value, bool) for expression in first.expressions)
        )
    ):
        return laid_out(first.expressions[0].value, "", "  ")
    columns = _columns(solutions)
    rows = [[get(solution) for get in columns.values()] for solution in solutions]
    return "\n".join(framed(list(columns), rows))


def _columns(solutions: list[Solution]) -> dict[str, Any]:
    """Returns the table's columns and the functions that read their cells; variables come last.

    A test beside variables has no column: it is true in every row.
    """
    getters: dict[str, Any] = {}
    for number, expression in enumerate(solutions[0].expressions):
        if not isinstance(expression.value, bool) or not solutions[0].bindings:
            getters[expression.text] = lambda s, n=number: json_of_affordable(
                s.expressions[n].value
            )
    for name in sorted(solutions[0].bindings):
        getters[name] = lambda s, n=name: json_of_affordable(s.bindings.get(n))
    return getters


FORMATS: Final[dict[str, Callable[[QueryOutcome], str]]] = {
    "json": _json,
    "values": _values,
    "bindings": _bindings,
    "pretty": _pretty,
    "raw": _raw,
    "discard": _discard,
}
