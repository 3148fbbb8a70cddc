"""CEL's own cases, Kubernetes' and ours, against our engine: ``python -m tests.conformance.cel DIR``.

DIR has the layout of ``conformance/cel``: ``spec/*.json`` with ``verdicts.jsonl``,
``kubernetes.jsonl``, ``probes.jsonl`` with ``probe-vars.json``. What is wanted is the verdict of
Kubernetes' environment, which is not always the one that a case of the specification wants.
"""

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tests.conformance.cel_values import (
    UnreadableError,
    opened,
    read_type,
    read_value,
    same,
    text_of,
)
from webhook.cel.check import types
from webhook.cel.check.checker import check
from webhook.cel.check.environment import Environment, Overload, functions
from webhook.cel.check.types import DYN, Type
from webhook.cel.engine import Expression, compile_expression
from webhook.cel.errors import CompileError, EvaluationError, InstantiationError, ParseError
from webhook.cel.exact.evaluator import exact_form
from webhook.cel.kubernetes import admission
from webhook.cel.run.meter import Meter
from webhook.cel.syntax.parser import parse

SENTINEL = {"stringValue": "an expectation that nothing meets"}

NEEDS_MESSAGES = "needs protobuf message types"
NO_OVERLOAD = "no such overload"
NOT_PLANNED = "unchecked, and refused by cel-go's planner: Kubernetes checks every expression"


@dataclass(frozen=True, slots=True)
class Case:
    """A case: where it is from, its content, and what the oracle says of it."""

    name: str
    content: dict[str, Any]
    expected: dict[str, Any]
    variables: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of a case: ``passed``, ``failed`` or ``skipped``, with the reason."""

    case: Case
    status: str
    reason: str = ""


def _lines(file: Path) -> list[dict[str, Any]]:
    if not file.exists():
        return []
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


def load(folder: Path) -> Iterator[Case]:
    """All cases of a folder."""
    verdicts = {
        (v["file"], v["section"], v["name"], v["expr"]): v
        for v in _lines(folder / "verdicts.jsonl")
    }
    for file in sorted((folder / "spec").glob("*.json")):
        for test in json.loads(file.read_text(encoding="utf-8"))["tests"]:
            key = (file.name, test["section"], test["name"], test["expr"])
            if key in verdicts:
                yield Case(f"{file.stem}/{test['section']}/{test['name']}", test, verdicts[key], {})
    for name, variables in (("kubernetes", None), ("probes", folder / "probe-vars.json")):
        given = (
            {} if variables is None or not variables.exists() else json.loads(variables.read_text())
        )
        for index, line in enumerate(_lines(folder / f"{name}.jsonl")):
            yield Case(f"{name}/{index}", {"expr": line["expr"]}, line, given)


# --- cases of the specification -------------------------------------------------------------------


def _environment(test: dict[str, Any]) -> Environment:
    variables: dict[str, Type] = {}
    table = functions()
    for declaration in test.get("typeEnv", ()):
        if "ident" in declaration:
            variables[declaration["name"]] = read_type(declaration["ident"]["type"])
        else:
            overloads = [_overload(one) for one in declaration["function"]["overloads"]]
            table = {**table, declaration["name"]: tuple(overloads)}
    if test.get("disableCheck"):
        variables |= {name: types.DYN for name in test.get("bindings", {}) if name not in variables}
    return Environment(variables, {}, test.get("container", ""), table)


def _overload(written: dict[str, Any]) -> Overload:
    args = tuple(read_type(one) for one in written.get("params", ()))
    result = read_type(written["resultType"])
    free = tuple({part for of in (*args, result) for part in _free(of)})
    return Overload(bool(written.get("isInstanceFunction")), args, result, free)


def _free(of: Type) -> set[Type]:
    return {of} if of.free else {found for part in of.parts for found in _free(part)}


def _unchecked(source: str, environment: Environment) -> Expression:
    """Compile an expression and look up its names alone; Waddle checks all others."""
    checked, _ = check(parse(source), environment)
    return Expression(source, DYN, exact_form(checked))


_EARLY = (ParseError, InstantiationError)
"""Errors of the text, or of a constant, and not of types."""


def _verdict(test: dict[str, Any]) -> tuple[str, str]:
    """Returns our engine's verdict of a case, by the rules of the oracle's runner."""
    environment = _environment(test)
    bindings = {name: read_value(one["value"]) for name, one in test.get("bindings", {}).items()}
    unchecked = bool(test.get("disableCheck"))
    make = _unchecked if unchecked else compile_expression
    try:
        expression = make(test["expr"], environment)
    except CompileError as error:
        return ("pass" if isinstance(error, _EARLY) and "evalError" in test else "compile"), str(
            error
        )
    deduced = test.get("typedResult", {}).get("deducedType")
    if deduced is not None and read_type(deduced) != expression.type:
        return "fail", f"type {expression.type}"
    if test.get("checkOnly"):
        return "pass", ""
    try:
        got = expression.evaluate(bindings, Meter(10**9))
    except EvaluationError as error:
        return ("pass" if "evalError" in test else "error"), error.text
    if "evalError" in test:
        return "value", repr(got)
    written = test.get("value") or test.get("typedResult", {}).get("result") or {"boolValue": True}
    return ("pass" if same(got, read_value(written)) else "fail"), repr(got)


def _judge_spec(case: Case) -> Outcome:
    expected = case.expected["verdict"]
    try:
        verdict, detail = _verdict(case.content)
    except UnreadableError as error:
        return Outcome(case, "skipped", f"{NEEDS_MESSAGES}: {error}")
    if verdict == expected:
        return Outcome(case, "passed")
    if expected != "compile" and _names_messages(case.content):
        return Outcome(case, "skipped", NEEDS_MESSAGES)
    if case.content.get("disableCheck") and case.expected["detail"].startswith(NO_OVERLOAD):
        return Outcome(case, "skipped", NOT_PLANNED)
    return Outcome(
        case, "failed", f"{verdict} ({detail}) instead of {expected} ({case.expected['detail']})"
    )


def _names_messages(content: dict[str, Any]) -> bool:
    """Whether a case is about protobuf's messages, those of google.protobuf among them."""
    text = content["expr"] + content.get("container", "")
    return "google.protobuf" in text or "TestAllTypes" in text


# --- Kubernetes' cases and ours -------------------------------------------------------------------

_VARIABLES = ("object", "oldObject", "request", "namespaceObject", "params")


def _judge_line(case: Case) -> Outcome:
    fault = difference(found_of(case.expected["expr"], case.variables), case.expected)
    return Outcome(case, "failed" if fault else "passed", fault or "")


def found_of(text: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """Returns our engine's answer about an expression in the oracle's form, with a value of CEL."""
    found: dict[str, Any] = {}
    try:
        expression = compile_expression(text, admission({}, params=True))
        found["type"] = expression.type.text
        found["value"] = expression.evaluate({**dict.fromkeys(_VARIABLES), **given}, Meter())
    except CompileError as error:
        message = str(error)
        prefix = "" if message.startswith("program instantiation") else "compilation failed: "
        found = {"stage": "compile", "error": prefix + message}
    except EvaluationError as error:
        found |= {"stage": "eval", "error": error.text}
    return found


def difference(found: dict[str, Any], expected: dict[str, Any]) -> str | None:
    """Returns the difference between our answer and the oracle's; None if they are equal."""
    for name in ("stage", "error", "type"):
        if (found.get(name) or "") != (expected.get(name) or ""):
            return f"{name}: {found.get(name)!r} instead of {expected.get(name)!r}"
    if expected.get("stage"):
        return None
    value = found["value"]
    if expected.get("text") is not None:
        text = text_of(value)
        return None if text == expected["text"] else f"{text} instead of {expected['text']}"
    text = read_value(expected["value"])
    if same(value, text) or same(opened(value), text):
        return None
    return f"{value!r} instead of {expected['value']}"


def judge(case: Case) -> Outcome:
    """Returns the outcome of a case."""
    return _judge_spec(case) if "verdict" in case.expected else _judge_line(case)


def planted(case: Case) -> Case:
    """The case with an expectation that nothing meets."""
    if "verdict" in case.expected:
        return replace(case, expected={"verdict": "none", "detail": ""})
    return replace(case, expected={**case.expected, "type": "none", "stage": "none"})


def run(folder: Path, *, mutate: bool = False) -> list[Outcome]:
    """Returns the outcomes of a folder's cases; ``mutate`` plants a wrong expectation in each."""
    return [judge(planted(case) if mutate else case) for case in load(folder)]


def main() -> int:
    """Print what failed, why others were skipped, and how many there were of each."""
    parser = argparse.ArgumentParser(prog="python -m tests.conformance.cel", description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--mutate", action="store_true")
    options = parser.parse_args()
    outcomes = run(options.folder, mutate=options.mutate)
    for outcome in outcomes:
        if outcome.status == "failed":
            print(
                f"FAILED {outcome.case.name}: {outcome.case.content['expr']}\n    {outcome.reason}"
            )
    for reason, count in Counter(
        o.reason.partition(":")[0] for o in outcomes if o.status == "skipped"
    ).items():
        print(f"skipped {count}: {reason}")
    counts = Counter(outcome.status for outcome in outcomes)
    print(f"{counts['passed']} passed, {counts['failed']} failed, {counts['skipped']} skipped")
    return 1 if counts["failed"] or not outcomes else 0


if __name__ == "__main__":
    sys.exit(main())
