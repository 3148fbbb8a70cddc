"""Calls built-ins as the engine does, and puts their operands into words for OPA."""

import json
import subprocess
from typing import Any

from tests.patience import PATIENCE_SECONDS
from webhook.rego.builtins.go_json import decode
from webhook.rego.builtins.registry import BUILTINS
from webhook.rego.errors import BuiltinError
from webhook.rego.run.limits import EvaluationContext
from webhook.rego.run.text import json_text
from webhook.rego.run.values import UNDEFINED, RegoSet, make_object


def call(name: str, *operands: Any, context: EvaluationContext | None = None) -> Any:
    """The built-in's answer, a value or UNDEFINED."""
    builtin = BUILTINS[name]
    lent = context or EvaluationContext(seed=1)
    return builtin.function(*([lent] if builtin.context else []), *operands)


def fault(name: str, *operands: Any) -> str:
    """The built-in's complaint, with its kind in front."""
    try:
        answer = call(name, *operands)
    except BuiltinError as error:
        return f"{error.kind}: {error.message}"
    raise AssertionError(f"{name} answered {answer!r}")


def members(*items: Any) -> RegoSet:
    """A set."""
    return RegoSet(items)


def value_of(text: str) -> Any:
    """A value from JSON; ``{"$set": [...]}`` is a set, ``{"$object": [[k, v]]}`` an object."""
    return _value(decode(text))


def _value(value: Any) -> Any:
    if isinstance(value, dict) and set(value) == {"$set"}:
        return RegoSet(map(_value, value["$set"]))
    if isinstance(value, dict) and set(value) == {"$object"}:
        return make_object((_value(k), _value(v)) for k, v in value["$object"])
    if isinstance(value, dict):
        return {name: _value(item) for name, item in value.items()}
    return [_value(item) for item in value] if isinstance(value, list) else value


def _source(value: Any) -> str:
    if isinstance(value, dict) and set(value) == {"$set"}:
        return f"{{{', '.join(map(_source, value['$set']))}}}" if value["$set"] else "set()"
    if isinstance(value, dict) and set(value) == {"$object"}:
        return f"{{{', '.join(f'{_source(k)}: {_source(v)}' for k, v in value['$object'])}}}"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{json.dumps(k)}: {_source(v)}' for k, v in value.items())}}}"
    if isinstance(value, list):
        return f"[{', '.join(map(_source, value))}]"
    return json.dumps(value) if isinstance(value, str) else json_text(value)


Case = tuple[str, tuple[str, ...]]
"""A built-in's name, and its operands as JSON."""

Answer = tuple[str, str]
"""``ok`` and the value in JSON, an error's code and message, or ``undefined`` and nothing."""


def our_answer(case: Case) -> Answer:
    """Returns our built-in's answer to the case."""
    name, operands = case
    try:
        answer = call(name, *map(value_of, operands))
    except BuiltinError as error:
        code = "eval_type_error" if error.kind == "type" else "eval_builtin_error"
        return code, f"{name}: {error.message}"
    return ("undefined", "") if answer is UNDEFINED else ("ok", json_text(answer))


def opa_answers(opa: str, cases: list[Case], folder: Any) -> list[Answer]:
    """Returns the real OPA's answers to the cases, all in one query.

    Operands pass through ``object.get``, so that their types are known only when evaluated, and
    v0 is used because it still has the built-ins that v1 forbids.
    """
    lines = ["package p"]
    for number, (name, operands) in enumerate(cases):
        hidden = [f'object.get({{"v": {_source(decode(text))}}}, "v", 0)' for text in operands]
        lines.append(
            f"r[{number}] = y {{ x := {name}({', '.join(hidden)}); y := json.marshal(x) }}"
        )
    module = folder / "cases.rego"
    module.write_text("\n".join(lines) + "\n", encoding="utf-8")
    command = [opa, "eval", "--v0-compatible", "--show-builtin-errors", "-d", str(module)]
    done = subprocess.run(
        [*command, "data.p.r"], capture_output=True, timeout=PATIENCE_SECONDS, check=False
    )
    report = json.loads(done.stdout)
    assert "result" in report, done.stdout[:2000]
    values = report["result"][0]["expressions"][0]["value"]
    errors = {error["location"]["row"]: error for error in report.get("errors", [])}
    answers: list[Answer] = []
    for number in range(len(cases)):
        error = errors.get(number + 2)  # the package is in row 1
        if str(number) in values:
            answers.append(("ok", values[str(number)]))
        elif error is not None:
            answers.append((error["code"], error["message"]))
        else:
            answers.append(("undefined", ""))
    return answers
