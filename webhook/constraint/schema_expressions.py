"""The rules of a schema (``x-kubernetes-validations``), checked as the API server checks a CRD's.

Apiextensions' validation of a rule's fields, and the compilation of its expressions with the types that
the schema gives. What the API server estimates an expression to cost is not estimated here.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from webhook.constraint.field import invalid, shown

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from webhook.cel.check.environment import Environment
    from webhook.cel.engine import Expression

    Schema = Mapping[str, Any]

KEYWORD: Final = "x-kubernetes-validations"

_REASONS: Final = (
    "FieldValueDuplicate",
    "FieldValueForbidden",
    "FieldValueInvalid",
    "FieldValueRequired",
)
_NEWLINES: Final = re.compile(r"[\n\r]+")
_STEP: Final = re.compile(r"\.([A-Za-z_][A-Za-z0-9_]*)|\['((?:[^'\\]|\\.)*)'\]", re.ASCII)


def rule_faults(schema: Schema, path: str) -> Iterator[str]:
    """What is wrong with the fields of the rules of one level."""
    for index, rule in enumerate(schema.get(KEYWORD) or ()):
        yield from _field_faults(schema, rule or {}, f"{path}.{KEYWORD}[{index}]")


def _field_faults(schema: Schema, rule: Mapping[str, Any], path: str) -> Iterator[str]:
    text, message = rule.get("rule") or "", rule.get("message") or ""
    if not text.strip():
        yield f"{path}.rule: Required value: rule is not specified"
    elif message and not message.strip():
        yield invalid(f"{path}.message", message, "must be non-empty if specified")
    elif _NEWLINES.search(message.strip()):
        yield invalid(f"{path}.message", message, "must not contain line breaks")
    elif _NEWLINES.search(text.strip()) and not message.strip():
        why = "message must be specified if rule contains line breaks"
        yield f"{path}.message: Required value: {why}"
    expression = rule.get("messageExpression") or ""
    if expression and not expression.strip():
        why = "messageExpression must be non-empty if specified"
        yield f"{path}.messageExpression: Required value: {why}"
    reason = rule.get("reason")
    if reason is not None and reason not in _REASONS:
        allowed = ", ".join(f'"{one}"' for one in _REASONS)
        yield f'{path}.reason: Unsupported value: "{reason}": supported values: {allowed}'
    where = rule.get("fieldPath") or ""
    if where and not where.strip():
        yield invalid(f"{path}.fieldPath", where, "must be non-empty if specified")
    if _NEWLINES.search(where):
        yield invalid(f"{path}.fieldPath", where, "must not contain line breaks")
    if where and not _leads_somewhere(schema, where):
        yield invalid(f"{path}.fieldPath", where, "must be a valid path")


def _leads_somewhere(schema: Schema, path: str) -> bool:
    """Whether a path as ``.a['b'].c`` names a field of the schema."""
    level, at = schema, 0
    while at < len(path):
        step = _STEP.match(path, at)
        if step is None:
            return False
        name, at = step[1] or step[2], step.end()
        more = level.get("additionalProperties")
        known = (level.get("properties") or {}).get(name)
        if known is None and type(more) is dict:
            known = more
        if known is None:
            return False
        level = known
    return True


def expression_faults(
    schema: Schema,
    path: str,
    uncorrelatable: str,
    defaults: Sequence[tuple[str, Any]],
    *,
    is_root: bool,
) -> Iterator[str]:
    """What is wrong with the expressions of one level, whose schema is sound.

    ``uncorrelatable`` is where above it an old value stops being known as that of a new one;
    ``defaults`` are the values that defaults give this level, and where they stand.
    """
    rules: Sequence[Any] = schema.get(KEYWORD) or ()
    if not rules:
        return
    # Here and not above: few schemas have rules, and CEL is large.
    from webhook.cel.check.environment import Environment  # noqa: PLC0415
    from webhook.cel.check.objects import schema_type  # noqa: PLC0415
    from webhook.cel.check.types import BOOL, optional_of  # noqa: PLC0415
    from webhook.cel.engine import compile_checked  # noqa: PLC0415
    from webhook.cel.errors import CompileError  # noqa: PLC0415

    declared = schema_type(schema, is_root=is_root)
    if declared is None:
        why = "failed to retrieve type information for x-kubernetes-validations"
        yield f"{path}.{KEYWORD}: Internal error: internal error: {why}"
        return
    for index, rule in enumerate(rules):
        at = f"{path}.{KEYWORD}[{index}]"
        old = optional_of(declared.type) if rule.get("optionalOldSelf") else declared.type
        environment = Environment({"self": declared.type, "oldSelf": old}, declared.messages)
        try:
            expression, checked = compile_checked(rule["rule"], environment)
        except CompileError as error:
            yield invalid(f"{at}.rule", rule, f"compilation failed: {error}")
            continue
        if expression.type != BOOL:
            yield invalid(f"{at}.rule", rule, "cel expression must evaluate to a bool")
            continue
        yield from _message_faults(rule, at, environment)
        is_transition = not {"oldSelf", ".oldSelf"}.isdisjoint(checked.names.values())
        if is_transition and uncorrelatable:
            why = "oldSelf cannot be used on the uncorrelatable portion of the schema within"
            yield invalid(f"{at}.rule", rule["rule"], f"{why} {uncorrelatable}")
        elif not is_transition and rule.get("optionalOldSelf") is not None:
            value, why = rule["optionalOldSelf"], "may not be set if oldSelf is not used in rule"
            yield f"{at}.optionalOldSelf: Invalid value: {shown(value)}: {why}"
        if not is_transition and not _has_formats(schema):
            for where, value in defaults:
                if not _holds(expression, value):
                    why = rule.get("message") or f"failed rule: {rule['rule']}"
                    yield invalid(where, value, why)


def _message_faults(rule: Mapping[str, Any], path: str, environment: Environment) -> Iterator[str]:
    """What is wrong with the expression that tells of a rule which does not hold."""
    from webhook.cel.check.types import STRING  # noqa: PLC0415  # as above
    from webhook.cel.engine import compile_checked  # noqa: PLC0415
    from webhook.cel.errors import CompileError  # noqa: PLC0415

    message = rule.get("messageExpression")
    if not message:
        return
    where = f"{path}.messageExpression"
    try:
        told, _ = compile_checked(message, environment)
    except CompileError as error:
        yield invalid(where, rule, f"messageExpression compilation failed: {error}")
    else:
        if told.type != STRING:
            yield invalid(where, rule, "messageExpression must evaluate to a string")


def _holds(expression: Expression, value: Any) -> bool:
    """Whether a rule holds for a default; one that cannot be evaluated does not."""
    from webhook.cel.errors import EvaluationError  # noqa: PLC0415  # as above
    from webhook.cel.run.meter import Meter  # noqa: PLC0415

    try:
        return expression.evaluate({"self": value}, Meter()) is not False
    except EvaluationError:
        return False


def _has_formats(schema: Schema) -> bool:
    """Whether texts within are moments or bytes to a rule, which the decoded value has as texts."""
    inner = [schema.get("items"), schema.get("additionalProperties")]
    inner += (schema.get("properties") or {}).values()
    return bool(schema.get("format")) or any(
        _has_formats(item) for item in inner if type(item) is dict
    )
