"""Compares the answers of both engines about an expression."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from tests.conformance.cel import difference, found_of
from tests.conformance.cel_values import UnreadableError, read_value, same
from tests.differential.cel.oracle import CelOracle
from tests.differential.cel.parts import is_shown, parts_of
from tests.differential.cel.values import VARIABLES
from webhook.cel.check.checker import check
from webhook.cel.errors import CompileError
from webhook.cel.kubernetes import admission
from webhook.cel.run.values import Timestamp
from webhook.cel.syntax.ast import Expr, ListOf, MapOf, children
from webhook.cel.syntax.parser import parse

AT_ONCE = 200

AGAIN = 120
"""Asked again where both differ: of a map of two, one order comes up once in eight times in Go."""

_MUTABLE, _CONCATENATED = "*types.mutable", "*types.concatList"

EXCEEDED = "actual cost limit exceeded"


@dataclass(frozen=True, slots=True)
class Question:
    """An expression and the variables that it may read."""

    expression: str
    variables: dict[str, Any] = field(default_factory=lambda: VARIABLES)


Report = Callable[[Question, str], Any]


def compare(
    oracle: CelOracle,
    questions: Iterable[Question],
    report: Report,
    counted: Counter[str],
) -> None:
    """Ask both; ``report`` gets each difference. ``counted`` gets what was asked, by its outcome.

    Of a value that the oracle cannot show each part is asked for.
    """
    for batch in _batches(questions):
        pending = batch
        while pending:
            pending = _compared(oracle, pending, report, counted)


def _compared(
    oracle: CelOracle, batch: list[Question], report: Report, counted: Counter[str]
) -> list[Question]:
    """Compare one batch; gives what is to be asked next, for parts of values."""
    answers = oracle.ask([{"expr": one.expression, "vars": one.variables} for one in batch])
    further: list[Question] = []
    for question, answer in zip(batch, answers, strict=True):
        expected = _by_itself(answer)
        found = _by_itself(found_of(question.expression, question.variables))
        why = passed_over(question.expression, found, expected)
        if why:
            counted[f"passed over: {why}"] += 1
            continue
        difference, parts = _difference_or_parts(question, found, expected)
        further += parts
        if difference and _is_by_chance(oracle, question, found, expected):
            counted["passed over: the order in which Go goes through a map"] += 1
            continue
        if difference:
            report(question, difference)
        counted["asked for its parts" if parts else expected.get("stage") or "value"] += 1
    return further


def _difference_or_parts(
    question: Question, found: dict[str, Any], expected: dict[str, Any]
) -> tuple[str | None, list[Question]]:
    """Returns the difference, or questions about the parts that show it."""
    if "stage" in expected or "stage" in found or is_shown(found["value"]):
        return _difference(found, expected), []
    if found["type"] != expected["type"]:
        return f"type: {found['type']!r} instead of {expected['type']!r}", []
    parts = parts_of(question.expression, found["value"])
    return None, [Question(part, question.variables) for part in parts]


def _difference(found: dict[str, Any], expected: dict[str, Any]) -> str | None:
    """Returns the difference; a value that the oracle only describes differs from any shown."""
    try:
        return difference(found, expected)
    except UnreadableError:
        return f"{found['value']!r} instead of {expected['value']}"


def _by_itself(answer: dict[str, Any]) -> dict[str, Any]:
    """Without what is chance in its texts."""
    texts = {name: answer[name] for name in ("error", "text") if answer.get(name)}
    return {**answer, **{name: unnumbered(text) for name, text in texts.items()}}


def unnumbered(text: str) -> str:
    """Without the numbers of types that are not known yet, for which Go goes through a map.

    And without where in memory the pattern of a format lies.
    """
    return re.sub(r"_var\d+", "_var", re.sub(r"\{(\w+) 0x[0-9a-f]+ \d+\}", r"\1", text))


def shown(text: str) -> str:
    """A difference without the lines that show an expression and point into it."""
    return "\\n".join(line for line in text.split("\\n") if not line.startswith(" | "))


def _batches(questions: Iterable[Question]) -> Iterator[list[Question]]:
    remaining = iter(questions)
    while batch := list(islice(remaining, AT_ONCE)):
        yield batch


def _is_by_chance(
    oracle: CelOracle, question: Question, found: dict[str, Any], expected: dict[str, Any]
) -> bool:
    """Whether the oracle says what we say when it is asked again, or each time the same items."""
    if expected.get("stage") == "compile":
        return False
    questions = [{"expr": question.expression, "vars": question.variables}] * AGAIN
    answers = [_by_itself(again) for again in oracle.ask(questions)]
    if any(_difference(found, again) is None for again in answers):
        return True
    # Of a large map no order comes up twice.
    is_certain = all(_content(again) == _content(expected) for again in answers)
    return not is_certain and all(_is_reordered(found, again) for again in answers)


def _content(answer: dict[str, Any]) -> tuple[Any, Any]:
    return answer.get("value"), answer.get("error")


def _is_reordered(found: dict[str, Any], expected: dict[str, Any]) -> bool:
    """Whether it is an error of the same characters, or a list of the same items."""
    if found.get("error") or expected.get("error"):
        return sorted(found.get("error", "")) == sorted(expected.get("error", ""))
    items = _in_order(found["value"])
    return items is not None and same(items, _in_order(_read(expected.get("value"))))


def _read(written: dict[str, Any] | None) -> Any:
    try:
        return None if written is None else read_value(written)
    except UnreadableError:
        return None


def _in_order(value: Any) -> list[Any] | None:
    return sorted(value, key=repr) if type(value) is list else None


def passed_over(expression: str, found: dict[str, Any], expected: dict[str, Any]) -> str:
    """Returns the reason why a difference does not count; see docs/compatibility/cel.md."""
    mine, real = str(found.get("error", "")), str(expected.get("error", ""))
    text = str(expected.get("text", ""))
    if expected.get("stage") == "panic" and (
        has_unsure_item(expression)
        or _instantiated(mine) == real.removeprefix("panic: ")
        or _is_copied_after_a_syntax_error(expression, mine, real)
    ):
        return "the oracle's own panic"
    if mine and mine in text:
        return "a list that holds an error, which is one where it is what an expression gives"
    if mine == "no such attribute(s): variables" and not expected.get("stage"):
        return "variables, which an expression by itself has there alone"
    if text and isinstance(found.get("value"), Timestamp):
        return "times beyond the years that protobuf's JSON has"
    if EXCEEDED in mine or EXCEEDED in real:
        return "cost, which each counts by its own measure"
    if any(name in answer for name in (_MUTABLE, _CONCATENATED) for answer in (real, text)):
        return (
            "the type in Go of a list that was put together, or of what optMap names and is empty"
        )
    if "recursion limit" in mine or "nested too deeply" in mine:
        return "nested deeper than Waddle reads"
    if "Syntax error" in real and _place_of_syntax(mine) == _place_of_syntax(real):
        return "words of syntax errors"
    return ""


def _is_copied_after_a_syntax_error(expression: str, mine: str, real: str) -> bool:
    """Whether cel-go's parser copied the target of optMap, in which a field has no name."""
    is_nil = real.endswith("nil pointer dereference")
    return is_nil and "Syntax error" in mine and bool(re.search(r"\.opt(Flat)?Map\(", expression))


def _instantiated(text: str) -> str:
    return text.removeprefix("program instantiation failed: ")


def _place_of_syntax(text: str) -> str:
    """Returns the place of the first token that cannot stand there."""
    found = re.search(r"<input>:(\d+:\d+): Syntax error", text)
    return found[1] if found else ""


def has_unsure_item(expression: str) -> bool:
    """Whether a list or map has an item behind a question mark that is dyn to the checker.

    Of which cel-go's validator of literals asks for a parameter that the type has not.
    """
    try:
        checked, _ = check(parse(expression), admission({}, params=True))
    except CompileError:
        return False
    waiting: list[Expr] = [checked.parsed.root]
    while waiting:
        node = waiting.pop()
        items: list[Expr] = []
        if isinstance(node, ListOf):
            items = [node.items[at] for at in node.optional]
        elif isinstance(node, MapOf):
            items = [entry.value for entry in node.entries if entry.optional]
        if any(checked.types[item].name != "optional_type" for item in items):
            return True
        waiting.extend(children(node))
    return False
