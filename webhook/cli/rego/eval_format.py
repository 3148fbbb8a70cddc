"""What an evaluated query came to, in the formats of ``opa eval``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from webhook import duration
from webhook.cli.rego.json import OrderedFields, indented
from webhook.cli.rego.report import coverage_document
from webhook.cli.table import framed
from webhook.printable import printable
from webhook.rego.run.text import json_of_affordable, laid_out
from webhook.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from webhook.rego.results import Solution
    from webhook.rego.trace.profile import LineProfile


@dataclass(slots=True)
class QueryOutcome:
    """The solutions of a query, and what was asked of how they were found."""

    solutions: list[Solution]
    explanation: Sequence[str] | None = None
    metrics: dict[str, int] | None = None
    profile: Sequence[LineProfile] | None = None
    coverage: dict[str, Any] | None = None


def _as_json(told: QueryOutcome) -> str:
    return indented(_document(told))


def _document(told: QueryOutcome) -> dict[str, Any]:
    result = []
    for solution in told.solutions:
        shown = OrderedFields(
            expressions=[
                OrderedFields(
                    value=one.value,
                    text=one.text,
                    location=OrderedFields(row=one.location.row, col=one.location.col),
                )
                for one in solution.expressions
            ]
        )
        if solution.bindings:
            shown["bindings"] = solution.bindings
        result.append(shown)
    document = OrderedFields(result=result) if result else OrderedFields()
    if told.metrics is not None:
        document["metrics"] = told.metrics
    if told.explanation is not None:
        document["explanation"] = list(told.explanation)
    if told.profile is not None:
        document["profile"] = [
            OrderedFields({**one.document(), "location": OrderedFields(one.document()["location"])})
            for one in told.profile
        ]
    if told.coverage is not None:
        document["coverage"] = coverage_document(told.coverage)
    return document


def _discarded(told: QueryOutcome) -> str:
    document = _document(told)
    if "result" in document:
        document["result"] = "discarded"
    return indented(OrderedFields(sorted(document.items())))


def _as_values(told: QueryOutcome) -> str:
    return "\n".join(
        laid_out([one.value for one in solution.expressions], "", "  ")
        for solution in told.solutions
    )


def _as_bindings(told: QueryOutcome) -> str:
    return "\n".join(laid_out(solution.bindings, "", "  ") for solution in told.solutions)


def _as_raw(told: QueryOutcome) -> str:
    return printable(
        "\n".join(
            " ".join(
                one.value if isinstance(one.value, str) else json_of_affordable(one.value)
                for one in solution.expressions
            )
            for solution in told.solutions
        )
    )


def _as_text(told: QueryOutcome) -> str:
    lines = [printable(line) for line in told.explanation or ()]
    lines.append(_result_text(told.solutions))
    if told.metrics:
        rows = [[name, str(value)] for name, value in told.metrics.items()]
        lines += framed(["Metric", "Value"], rows)
    if told.profile:
        lines += framed(
            ["Time", "Num Eval", "Num Redo", "Num Gen Expr", "Location"],
            [_profile_row(one) for one in told.profile],
        )
    if told.coverage is not None:
        cells = ["Overall Coverage", f"{told.coverage['coverage']:.2f}"]
        lines += _boxed(cells)
    return "\n".join(lines)


def _profile_row(one: LineProfile) -> list[str]:
    place = one.location
    where = f"{place.file}:{place.row}" if place.file else place.text or f"{place.row}:{place.col}"
    counts = [str(one.num_eval), str(one.num_redo), str(one.num_gen_expr)]
    return [duration.shown(one.total_time_ns), *counts, where]


def _boxed(cells: Sequence[str]) -> list[str]:
    """A table of one row without a head."""
    top, _, _, *rest = framed(cells, [cells])
    return [top, *rest]


def _result_text(solutions: list[Solution]) -> str:
    if not solutions:
        return "undefined"
    first = solutions[0]
    plain = len(solutions) == 1 and not first.bindings
    if plain and (
        len(first.expressions) == 1 or all(isinstance(one.value, bool) for one in first.expressions)
    ):
        return laid_out(first.expressions[0].value, "", "  ")
    columns = _columns(solutions)
    rows = [[get(solution) for get in columns.values()] for solution in solutions]
    return "\n".join(framed(list(columns), rows))


def _columns(solutions: list[Solution]) -> dict[str, Any]:
    """Expressions that have values of their own, then variables."""
    getters: dict[str, Any] = {}
    for number, one in enumerate(solutions[0].expressions):
        if not isinstance(one.value, bool) or not solutions[0].bindings:
            getters[one.text] = lambda s, n=number: json_of_affordable(s.expressions[n].value)
    for name in sorted(solutions[0].bindings):
        getters[name] = lambda s, n=name: json_of_affordable(s.bindings.get(n))
    return getters


FORMATS: Final[dict[str, Callable[[QueryOutcome], str]]] = {
    "json": _as_json,
    "values": _as_values,
    "bindings": _as_bindings,
    "pretty": _as_text,
    "raw": _as_raw,
    "discard": _discarded,
}
