"""Conditions of attestations, in CEL or Rego, over a verified statement.

===========  ==============================================================================
CEL          ``statement``, ``predicate``, ``image`` and ``now`` (a text of RFC 3339); true is met
Rego         the same below ``input``; each message of ``deny`` in package ``verification`` refuses
===========  ==============================================================================
"""

from __future__ import annotations

import functools
import time
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from webhook.api import timestamp

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from webhook.images.policy import Condition

SECONDS_MAX: Final = 1.0
"""The time of one condition at most; an SBOM of some MiB takes less than a tenth of it."""

_CONDITIONS_KEPT: Final = 256
"""The number of compiled conditions in the cache; ten policies may have as many."""

_Ask: TypeAlias = "Callable[[dict[str, Any]], str | None]"

_RULE: Final = "data.verification.deny"


class InvalidCondition(ValueError):
    """A condition that cannot be used; the message says why."""


def fault_of(
    condition: Condition, statement: Mapping[str, Any], image: Mapping[str, str], now: float
) -> str | None:
    """Returns why a statement does not satisfy a condition; None if it does."""
    given = {
        "statement": statement,
        "predicate": statement.get("predicate"),
        "image": image,
        "now": timestamp.text_of(now),
    }
    try:
        return compiled(condition)(given)
    except InvalidCondition as error:
        return str(error)


@functools.lru_cache(_CONDITIONS_KEPT)
def compiled(condition: Condition) -> _Ask:
    """Compiles a condition; raises :class:`InvalidCondition`."""
    return _cel(condition) if condition.language == "cel" else _rego(condition)


def _cel(condition: Condition) -> _Ask:
    from webhook.cel.check.environment import Environment  # noqa: PLC0415  # 0.2 s, for these alone
    from webhook.cel.check.types import BOOL, DYN, STRING, map_of  # noqa: PLC0415
    from webhook.cel.engine import compile_expression  # noqa: PLC0415
    from webhook.cel.errors import CompileError, EvaluationError, TimeUp  # noqa: PLC0415
    from webhook.cel.run.meter import Meter  # noqa: PLC0415

    variables = {
        "statement": DYN,
        "predicate": DYN,
        "image": map_of(STRING, STRING),
        "now": STRING,
    }
    try:
        expression = compile_expression(condition.source, Environment(variables))
    except CompileError as error:
        raise InvalidCondition(f"its condition in CEL cannot be used: {error}") from None
    if expression.type not in {BOOL, DYN}:
        raise InvalidCondition(f"its condition in CEL is not a boolean: {condition.source}")
    message = condition.message or f"it does not satisfy {condition.source}"

    def ask(given: dict[str, Any]) -> str | None:
        deadline = time.monotonic() + SECONDS_MAX

        def look() -> None:
            if time.monotonic() > deadline:
                raise TimeUp(f"it takes longer than {SECONDS_MAX:g} s")

        try:
            value = expression.evaluate(given, Meter(look=look))
        except EvaluationError as error:
            return f"its condition has no value: {error.text}"
        return None if value is True else message

    return ask


def _rego(condition: Condition) -> _Ask:
    from webhook.rego.engine import (  # noqa: PLC0415  # 0.1 s, for these alone
        CompileOptions,
        EvaluationContext,
        compile_modules,
    )
    from webhook.rego.errors import EvaluationError, RegoErrors  # noqa: PLC0415
    from webhook.rego.run.text import to_json  # noqa: PLC0415
    from webhook.rego.syntax.parser import parse_module  # noqa: PLC0415

    try:
        module = parse_module(condition.source, "condition.rego", "v1")
        options = CompileOptions(disabled_builtins=frozenset({"http.send", "opa.runtime"}))
        program = compile_modules([module], options=options)
    except RegoErrors as error:
        raise InvalidCondition(f"its condition in Rego cannot be used: {error}") from None
    if not program.has_rule(_RULE):
        raise InvalidCondition(
            "its condition in Rego has no rule deny in package verification: nothing is asked"
        )
    rule = program.rule(_RULE)

    def ask(given: dict[str, Any]) -> str | None:
        context = EvaluationContext(time.monotonic() + SECONDS_MAX, strict=True)
        try:
            denials = to_json(rule(given, {}, context))
        except EvaluationError as error:
            return f"its condition has no value: {error}"
        if type(denials) is not list:
            return "its condition has no value: deny is not a set of messages"
        if not denials:
            return None
        return condition.message or "; ".join(str(denial) for denial in denials[:3])

    return ask
