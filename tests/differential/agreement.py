"""One question to both engines, and in what their answers differ.

Values are compared exactly, types included: a set is no array. Of an error, the
code and the message are compared where both engines raise one.
"""

import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import MAX_EMAX, MIN_EMIN, Context, DecimalException
from typing import Any, Literal

from tests.differential.oracle import NumberText, Oracle
from webhook.rego.engine import CompileOptions, compile_modules
from webhook.rego.errors import EvaluationError, RegoErrors
from webhook.rego.run.limits import EvaluationContext
from webhook.rego.run.values import UNDEFINED, RegoObject, RegoSet
from webhook.rego.syntax.parser import parse_module, parse_query

EXACT = Context(prec=10_000, Emax=MAX_EMAX, Emin=MIN_EMIN)
NOW_NS = time.time_ns()
"""The clock of both engines; OPA verifies certificates by the wall clock."""


@dataclass(frozen=True, slots=True)
class Question:
    """Modules, a query, and what they see."""

    modules: tuple[str, ...]
    query: str
    version: Literal["v0", "v1"] = "v1"
    input: Any = None
    has_input: bool = False
    input_term: str | None = None
    data: dict[str, Any] = field(default_factory=dict)
    strict: bool = False
    level: str = "1.22"


Answer = tuple[str, Any]
"""``("results", counted bindings)`` or ``(stage, errors)``; bindings in a form that can be hashed."""


def ours(question: Question) -> Answer:
    """Returns our engine's answer."""
    try:
        modules = [
            parse_module(source, f"test-{number}.rego", question.version)
            for number, source in enumerate(question.modules)
        ]
        program = compile_modules(modules, options=CompileOptions(level=question.level))
        query = program.query(parse_query(question.query))
        input_value = question.input if question.has_input else UNDEFINED
        if question.input_term is not None:
            body = parse_query(f"x = {question.input_term}")
            (bindings,) = compile_modules([]).query(body)(UNDEFINED, {}, EvaluationContext())
            input_value = bindings["x"]
    except RegoErrors as errors:
        return "load", [(error.code, error.message) for error in errors.errors]
    context = EvaluationContext(strict=question.strict, now_ns=NOW_NS)
    try:
        found = query(input_value, question.data, context)
    except EvaluationError as error:
        return "eval", [(error.code, error.message)]
    return "results", Counter(frozen_value(bindings) for bindings in found)


def theirs(oracle: Oracle, question: Question) -> Answer:
    """Returns the real OPA's answer."""
    request: dict[str, Any] = {
        "op": "eval",
        "modules": list(question.modules),
        "version": question.version,
        "query": question.query,
        "data": question.data,
        "strict": question.strict,
        "time_ns": NOW_NS,
    }
    if question.input_term is not None:
        request["input_term"] = question.input_term
    elif question.has_input:
        request["input"] = question.input
    found = oracle.ask(**request)
    if "results" in found:
        return "results", Counter(frozen_tagged(bindings) for bindings in found["results"])
    stage = found["stage"]
    errors = [(error["code"], error["message"]) for error in found.get("errors", [])]
    return ("load" if stage in ("parse", "compile", "query") else stage), errors


def frozen_value(value: Any) -> Any:
    """Returns one of our values as nested tuples that name the type."""
    if value is None or isinstance(value, bool | str):
        return value if value is None or isinstance(value, str) else ("bool", value)
    if isinstance(value, list):
        return ("array", tuple(map(frozen_value, value)))
    if isinstance(value, RegoSet):
        return ("set", frozenset(map(frozen_value, value)))
    if isinstance(value, dict | RegoObject):
        pairs = ((frozen_value(name), frozen_value(item)) for name, item in value.items())
        return ("object", frozenset(pairs))
    return ("number", _decimal(getattr(value, "text", None) or str(value)))


def frozen_tagged(value: Any) -> Any:
    """A value of the oracle's in the same form."""
    if isinstance(value, NumberText):
        return ("number", _decimal(str(value)))
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return ("bool", value)
    if isinstance(value, list):
        return ("array", tuple(map(frozen_tagged, value)))
    if set(value) == {"$set"}:
        return ("set", frozenset(map(frozen_tagged, value["$set"])))
    pairs = value["$object"] if set(value) == {"$object"} else value.items()
    return ("object", frozenset((frozen_tagged(name), frozen_tagged(item)) for name, item in pairs))


def _decimal(text: str) -> Any:
    try:
        return EXACT.create_decimal(text).normalize(EXACT)
    except DecimalException:
        return text


def difference(question: Question, mine: Answer, real: Answer) -> str:
    """In what the answers differ; empty where they agree."""
    if mine[0] != real[0]:
        return f"{_shown(mine)} but OPA {_shown(real)}"
    if mine[0] == "results":
        return "" if set(mine[1]) == set(real[1]) else f"{_shown(mine)} but OPA {_shown(real)}"
    if mine[0] == "load":
        return ""  # one fault may hide another; tests of their own compare what is refused and why
    same = _comparable(mine[1]) == _comparable(real[1])
    return "" if same else f"{_shown(mine)} but OPA {_shown(real)}"


def _comparable(errors: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """Codes and messages; of a conflict, without the values and places that OPA lists below."""
    return [(code, message.partition(":\n")[0]) for code, message in errors]


def _shown(answer: Answer) -> str:
    stage, found = answer
    return f"{stage}: {list(found) if isinstance(found, Counter) else found}"[:700]
