"""Reports the lines of modules that an evaluation reached, as OPA does (v1/cover)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Literal, TypeAlias

from webhook.rego.check import ir
from webhook.rego.check.strict import nodes
from webhook.rego.location import Location
from webhook.rego.syntax import ast
from webhook.rego.trace.events import TraceEvent, is_literal
from webhook.rego.trace.places import branches, implied_place, whole_place

Range: TypeAlias = tuple[int, int, int, int]
"""Row and column of the beginning and of the first character after the end."""
CoverageKind = Literal["index_excluded", "early_exit"]


class Coverage:
    """A tracer that keeps the places of rules that held and of literals that were evaluated."""

    unifications = False
    values = False

    def __init__(self) -> None:
        self._covered: dict[str, set[Range]] = {}

    def __call__(self, event: TraceEvent) -> None:
        """Takes a step."""
        if event.step == "Exit" and isinstance(event.node, ir.Rule):
            self._cover(_head_place(event.node))
        elif event.step == "Eval" and is_literal(event.node):
            self._cover(event.location)

    def _cover(self, place: Location) -> None:
        if place.file:
            self._covered.setdefault(place.file, set()).add(range_of(place))

    def covers(self, file: str, range_: Range) -> bool:
        """Whether a range was reached."""
        return any(
            begin[:2] <= range_[:2] and begin[2:] >= range_[2:]
            for begin in self._covered.get(file, ())
        )

    def report(
        self, modules: Iterable[ast.Module], others: Sequence[tuple[CoverageKind, Coverage]] = ()
    ) -> dict[str, Any]:
        """Returns covered and uncovered ranges by file; ``others`` has the reasons."""
        files = {module.file: self._missing(module) for module in modules}
        for file in self._covered:
            files.setdefault(file, set())
        shown: dict[str, Any] = {}
        covered_lines = missing_lines = 0
        for file in sorted(files):
            covered, missing = sorted(self._covered.get(file, ())), sorted(files[file])
            inside, outside = len(_rows(covered)), len(_rows(missing))
            covered_lines, missing_lines = covered_lines + inside, missing_lines + outside
            report: dict[str, Any] = {
                "covered": [_shown(range_) for range_ in covered],
                "not_covered": [
                    _shown(range_, [kind for kind, other in others if other.covers(file, range_)])
                    for range_ in missing
                ],
                "covered_lines": inside,
                "not_covered_lines": outside,
                "coverage": percentage(inside, outside),
            }
            shown[file] = {name: value for name, value in report.items() if value}
        return {
            "files": shown,
            "covered_lines": covered_lines,
            "not_covered_lines": missing_lines,
            "coverage": percentage(covered_lines, missing_lines),
        }

    def _missing(self, module: ast.Module) -> set[Range]:
        ranges = {range_of(place) for place in _places(module) if place.file}
        return {range_ for range_ in ranges if not self.covers(module.file, range_)}


def percentage(inside: int, outside: int) -> float:
    """How much of all lines that count is covered."""
    share = 100.0 * inside / (inside + outside) if inside + outside else 0.0
    return int(share) if share == int(share) else share


def range_of(place: Location) -> Range:
    """Where a place begins and ends."""
    *before, last = place.text.split("\n")
    begin = place.col if not before else 1
    return place.row, place.col, place.row + len(before), begin + len(last)


def spans(report: dict[str, Any]) -> Iterator[str]:
    """The lines that no test reached: ``policy.rego:3-5``."""
    for file, lines in report["files"].items():
        spanned = [(span["start"], span["end"]) for span in lines.get("not_covered", ())]
        rows = sorted({row for a, b in spanned for row in range(a["row"], b["row"] + 1)})
        while rows:
            length = 1
            while length < len(rows) and rows[length] == rows[0] + length:
                length += 1
            end = "" if length == 1 else f"-{rows[length - 1]}"
            yield f"{file}:{rows[0]}{end}"
            rows = rows[length:]


def _rows(ranges: Iterable[Range]) -> set[int]:
    return {row for range_ in ranges for row in range(range_[0], range_[2] + 1)}


def _shown(range_: Range, kinds: Sequence[CoverageKind] = ()) -> dict[str, Any]:
    shown: dict[str, Any] = {
        "start": {"row": range_[0], "col": range_[1]},
        "end": {"row": range_[2], "col": range_[3]},
    }
    if kinds:
        shown["kinds"] = list(kinds)
    return shown


def _head_place(rule: ir.Rule) -> Location:
    place: Location = rule.location if rule.head is None else rule.head.location
    return place


def _places(module: ast.Module) -> Iterator[Location]:
    """Where heads and literals stand; declarations do nothing."""
    for rule, is_else in branches(module):
        yield rule.head.location
        whole = whole_place(rule, is_else=is_else)
        if whole is not None or not rule.body:
            yield whole or implied_place(rule, is_else=is_else)
        for literal in rule.body:
            for node in nodes(literal):
                if isinstance(node, ast.Expr | ast.Every | ast.Not | ast.Logic) and (
                    whole is None or node is not literal
                ):
                    yield node.location
                elif isinstance(node, ast.TemplateString):
                    # A part of a template string is a literal to OPA.
                    for part in node.parts:
                        if not isinstance(part, str):
                            yield part.location
