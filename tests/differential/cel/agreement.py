"""What both say of an expression, and whether it is the same."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from tests.conformance.cel import difference, found_of
from tests.conformance.cel_values import UnreadableError
from tests.differential.cel.oracle import CelOracle
from tests.differential.cel.values import VARIABLES
from webhook.cel.run.values import Optional

AT_ONCE = 200

AGAIN = 120
"""Asked again where both differ: of a map of two, one order comes up once in eight times in Go."""

_OPAQUE = ("net.", "kubernetes.")

_OF_SYNTAX = ("Syntax error", "unsupported syntax", "unable to unescape", "reserved identifier")

NO_OVERLOAD = "no such overload"

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
    """Ask both; ``report`` gets each difference. ``counted`` gets what was asked, by its outcome."""
    for batch in _batches(questions):
        answers = oracle.ask([{"expr": one.expression, "vars": one.variables} for one in batch])
        for question, answer in zip(batch, answers, strict=True):
            wanted = _unnumbered(answer)
            found = _unnumbered(found_of(question.expression, question.variables))
            why = passed_over(found, wanted)
            if why:
                counted[f"passed over: {why}"] += 1
                continue
            try:
                told = difference(found, wanted)
            except UnreadableError:
                counted[
                    "passed over: an optional, of which the oracle tells what it holds alone"
                ] += 1
                continue
            if told and _is_by_chance(oracle, question, found, wanted):
                counted["passed over: the order in which Go goes through a map"] += 1
                continue
            if told:
                report(question, told)
            counted[wanted.get("stage") or "value"] += 1


def _unnumbered(answer: dict[str, Any]) -> dict[str, Any]:
    """Without the numbers of types that are not known yet, for which Go goes through a map."""
    if answer.get("stage") != "compile":
        return answer
    return {**answer, "error": re.sub(r"_var\d+", "_var", answer["error"])}


def shown(told: str) -> str:
    """A difference without the lines that show an expression and point into it."""
    return "\\n".join(line for line in told.split("\\n") if not line.startswith(" | "))


def _batches(questions: Iterable[Question]) -> Iterator[list[Question]]:
    asked = iter(questions)
    while batch := list(islice(asked, AT_ONCE)):
        yield batch


def _is_by_chance(
    oracle: CelOracle, question: Question, found: dict[str, Any], wanted: dict[str, Any]
) -> bool:
    """Whether the oracle says something else when it is asked again, or what we say."""
    if wanted.get("stage") == "compile":
        return False
    asked = [{"expr": question.expression, "vars": question.variables}] * AGAIN
    for again in map(_unnumbered, oracle.ask(asked)):
        told = {name: again.get(name) for name in ("error", "value", "text")}
        if told != {name: wanted.get(name) for name in told} or not difference(found, again):
            return True
    return False


def passed_over(found: dict[str, Any], wanted: dict[str, Any]) -> str:
    """Why a difference is none; see docs/compatibility.md."""
    if wanted.get("stage") == "panic":
        return "the oracle's own panic"
    text = str(wanted.get("text") or "")
    if text and ("NamedFormat" in text or not text.startswith(_OPAQUE)):
        return "values that the oracle cannot show"
    mine, real = str(found.get("error", "")), str(wanted.get("error", ""))
    if re.search(r"\{\w+ 0x[0-9a-f]+ \d+\}", real):  # a format, by where it lies in memory
        return "values that the oracle cannot show"
    if (EXCEEDED in mine) or (EXCEEDED in real):
        return "cost, which each counts by its own measure"
    of = str(wanted.get("type")).startswith("optional_type(")
    if (of or isinstance(found.get("value"), Optional)) and not real:
        return "an optional, of which the oracle tells what it holds alone"
    if NO_OVERLOAD in real and not mine:
        return "a type that the checker takes for known and that is another"
    if "*types.mutable" in real or "*types.concatList" in real:
        return (
            "the type in Go of a list that was put together, or of what optMap names and is empty"
        )
    if "recursion limit" in mine or "nested too deeply" in mine:
        return "nested deeper than Waddle reads"
    if "Syntax error" in real and any(words in mine for words in _OF_SYNTAX):
        return "words of syntax errors"
    return ""
