"""Checks a schema's rules (``x-kubernetes-validations``) as the API server checks those of a CRD.

Fields of rules are validated as apiextensions does, and expressions are compiled with the schema's
types. Estimated costs have a limit for each rule and one for all rules.
"""

from __future__ import annotations

import base64
import re
from dataclasses import field, replace
from typing import TYPE_CHECKING, Any, Final

from webhook.constraint.errors import invalid, shown
from webhook.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from webhook.cel.check.environment import Environment
    from webhook.cel.check.objects import Declared
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
_STEP: Final = re.compile(r"\.([^.\[\]']+)|\['((?:[^'\\]|\\[abfnrtv'\\])*)'\]")
_ESCAPE: Final = re.compile(r"\\(.)")
_ESCAPED: Final = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}


COST_MAX: Final = 10_000_000
"""The highest estimated cost of a rule, over all its evaluations for one object."""

TOTAL_COST_MAX: Final = 100_000_000
"""The highest estimated cost of all rules of a CRD."""

_COST_OVERFLOWN: Final = 2**64 - 1
_CONTRIBUTORS_MAX: Final = 4


@dataclass(slots=True)
class RuleCosts:
    """The estimated cost of all rules of one schema, and the most expensive rules."""

    total: int = 0
    dearest: list[tuple[int, str]] = field(default_factory=list)

    def fault(self, path: str, subject: str, cost: int) -> Iterator[str]:
        """Counts an expression; yields a fault if its cost exceeds the limit."""
        self.total = min(self.total + cost, _COST_OVERFLOWN)
        if cost >= TOTAL_COST_MAX // 100:
            self.dearest = sorted([*self.dearest, (cost, path)], reverse=True)[:_CONTRIBUTORS_MAX]
        if cost > COST_MAX:
            yield _too_much(path, subject, cost, COST_MAX)

    def faults(self, root: str) -> Iterator[str]:
        """Yields a fault if the total cost exceeds the limit, with the most expensive rules."""
        if self.total <= TOTAL_COST_MAX:
            return
        for _, path in self.dearest:
            yield (
                f"{path}: Forbidden: contributed to estimated rule cost total exceeding cost "
                "limit for entire OpenAPIv3 schema"
            )
        subject = "x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema"
        yield _too_much(root, subject, self.total, TOTAL_COST_MAX)


def _too_much(path: str, subject: str, cost: int, limit: int) -> str:
    factor = cost / limit
    if factor > 100:
        times = "more than 100x"
    else:
        times = f"{factor:.6f}x" if factor < 1.5 else f"{factor:.1f}x"
    return (
        f"{path}: Forbidden: {subject} exceeds budget by factor of {times} (try simplifying the rule, "
        "or adding maxItems, maxProperties, and maxLength where arrays, maps, and strings are "
        "declared)"
    )


def rule_faults(schema: Schema, path: str) -> Iterator[str]:
    """Yields the faults in the fields of one level's rules."""
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
        allowed = ", ".join(f'"{known_reason}"' for known_reason in _REASONS)
        yield f'{path}.reason: Unsupported value: "{reason}": supported values: {allowed}'
    where = rule.get("fieldPath") or ""
    if where and not where.strip():
        yield invalid(f"{path}.fieldPath", where, "must be non-empty if specified")
    if _NEWLINES.search(where):
        yield invalid(f"{path}.fieldPath", where, "must not contain line breaks")
    if where and not _leads_somewhere(schema, where):
        yield invalid(f"{path}.fieldPath", where, "must be a valid path")


def _leads_somewhere(schema: Schema, path: str) -> bool:
    """Whether a path such as ``.a['b'].c`` names a field of the schema."""
    level, at = schema, 0
    while at < len(path):
        step = _STEP.match(path, at)
        if step is None:
            return False
        name, at = step[1] or _ESCAPE.sub(_unescaped, step[2]), step.end()
        more = level.get("additionalProperties")
        properties = level.get("properties")
        known = properties.get(name) if properties else more
        if type(known) is not dict:
            return False
        level = known
    return True


def _unescaped(escape: re.Match[str]) -> str:
    return _ESCAPED.get(escape[1], escape[1])


@dataclass(frozen=True, slots=True)
class _Level:
    """The position of a schema, with facts from the levels above.

    ``times`` is how often an object may contain it, None without a bound. ``uncorrelatable`` is the
    level above from which old values cannot be matched with new ones. ``defaults`` are values from
    defaults above, with their positions; its own default is tried with ``tries_own``, and not below
    additionalProperties.
    """

    path: str
    times: int | None = 1
    uncorrelatable: str = ""
    defaults: tuple[tuple[str, Any], ...] = ()
    tries_own: bool = True


def expression_faults(schema: Schema, root: str) -> Iterator[str]:
    """Yields the faults of the expressions of an otherwise valid schema."""
    costs = RuleCosts()
    yield from _faults_from(schema, _Level(root), costs, is_root=True)
    yield from costs.faults(root)


def _faults_from(
    schema: Schema, level: _Level, costs: RuleCosts, *, is_root: bool = False
) -> Iterator[str]:
    """Yields the faults of a level and of all levels below; recursive."""
    path, defaults = level.path, level.defaults
    if level.tries_own and schema.get("default") is not None:
        defaults = (*defaults, (f"{path}.default", schema["default"]))
        level = replace(level, defaults=defaults)
    is_root = is_root or bool(schema.get("x-kubernetes-embedded-resource"))
    yield from _level_faults(schema, level, costs, is_root=is_root)
    below = replace(level, times=_times_within(schema, level.times))
    for name, item in (schema.get("properties") or {}).items():
        given = [
            (f"{at}.{name}", value[name])
            for at, value in defaults
            if type(value) is dict and name in value
        ]
        inner = replace(below, path=f"{path}.properties[{name}]", defaults=tuple(given))
        yield from _faults_from(item, inner, costs)
    if type(more := schema.get("additionalProperties")) is dict:
        given = [
            (f"{at}[{name}]", inner)
            for at, value in defaults
            if type(value) is dict
            for name, inner in value.items()
        ]
        inner = replace(
            below, path=f"{path}.additionalProperties", defaults=tuple(given), tries_own=False
        )
        yield from _faults_from(more, inner, costs)
    if type(items := schema.get("items")) is dict:
        is_map = schema.get("x-kubernetes-list-type") == "map"
        given = [
            (f"{at}[{index}]", inner)
            for at, value in defaults
            if type(value) is list
            for index, inner in enumerate(value)
        ]
        inner = replace(
            below,
            path=f"{path}.items",
            uncorrelatable=level.uncorrelatable or ("" if is_map else path),
            defaults=tuple(given),
        )
        yield from _faults_from(items, inner, costs)


def _times_within(schema: Schema, times: int | None) -> int | None:
    """Returns how often an object may contain each direct child of a level.

    None without a bound. ``times`` is how often it may contain the level itself.
    """
    kind = schema.get("type")
    limit: int | None = 1
    if kind == "array":
        limit = schema.get("maxItems")
    elif kind == "object" and schema.get("additionalProperties") is not None:
        limit = schema.get("maxProperties")
    if times is None or limit is None:
        return None
    return min(times * max(0, limit), _COST_OVERFLOWN)


def _level_faults(
    schema: Schema, level: _Level, costs: RuleCosts, *, is_root: bool
) -> Iterator[str]:
    """Yields the faults of the expressions of one level."""
    rules: Sequence[Any] = schema.get(KEYWORD) or ()
    if not rules:
        return
    # Here and not above: few schemas have rules, and CEL is large.
    from webhook.cel.check.environment import Environment, accepted_functions  # noqa: PLC0415
    from webhook.cel.check.objects import REQUEST_BYTES, schema_type  # noqa: PLC0415
    from webhook.cel.check.types import BOOL, optional_of  # noqa: PLC0415
    from webhook.cel.engine import compile_checked  # noqa: PLC0415
    from webhook.cel.errors import CompileError  # noqa: PLC0415
    from webhook.cel.static_cost import static_cost  # noqa: PLC0415

    of = schema_type(schema, is_root=is_root)
    if of is None:
        why = "failed to retrieve type information for x-kubernetes-validations"
        yield f"{level.path}.{KEYWORD}: Internal error: internal error: {why}"
        return
    # As many as fit into a request, with a comma each.
    times = level.times
    times = REQUEST_BYTES // (of.declared.json_bytes + 1) if times is None else times
    for index, rule in enumerate(rules):
        at = f"{level.path}.{KEYWORD}[{index}]"
        old = optional_of(of.type) if rule.get("optionalOldSelf") else of.type
        environment = Environment(
            {"self": of.type, "oldSelf": old}, of.messages, functions=accepted_functions()
        )
        try:
            expression, checked = compile_checked(rule["rule"], environment)
        except CompileError as error:
            yield invalid(f"{at}.rule", rule, f"compilation failed: {error}")
            continue
        if expression.type != BOOL:
            yield invalid(f"{at}.rule", rule, "cel expression must evaluate to a bool")
            continue
        cost = min(static_cost(checked, of.declared) * times, _COST_OVERFLOWN)
        yield from costs.fault(f"{at}.rule", "estimated rule cost", cost)
        yield from _message_faults(rule, at, environment, of.declared, costs)
        is_transition = not {"oldSelf", ".oldSelf"}.isdisjoint(checked.names.values())
        yield from _transition_faults(rule, at, level, is_transition=is_transition)
        if not is_transition:
            for where, value in level.defaults:
                if not _holds(expression, value, schema):
                    why = rule.get("message") or f"failed rule: {rule['rule']}"
                    yield invalid(where, value, why)


def _transition_faults(
    rule: Mapping[str, Any], path: str, level: _Level, *, is_transition: bool
) -> Iterator[str]:
    """Yields the faults of a rule that reads ``oldSelf``."""
    if is_transition and level.uncorrelatable:
        why = "oldSelf cannot be used on the uncorrelatable portion of the schema within"
        yield invalid(f"{path}.rule", rule["rule"], f"{why} {level.uncorrelatable}")
    elif not is_transition and rule.get("optionalOldSelf") is not None:
        value, why = rule["optionalOldSelf"], "may not be set if oldSelf is not used in rule"
        yield f"{path}.optionalOldSelf: Invalid value: {shown(value)}: {why}"


def _message_faults(
    rule: Mapping[str, Any],
    path: str,
    environment: Environment,
    declared: Declared,
    costs: RuleCosts,
) -> Iterator[str]:
    """Yields the faults of a rule's ``messageExpression``."""
    from webhook.cel.check.types import STRING  # noqa: PLC0415  # as above
    from webhook.cel.engine import compile_checked  # noqa: PLC0415
    from webhook.cel.errors import CompileError  # noqa: PLC0415
    from webhook.cel.static_cost import static_cost  # noqa: PLC0415

    message = rule.get("messageExpression")
    if not message:
        return
    where = f"{path}.messageExpression"
    try:
        expression, checked = compile_checked(message, environment)
    except CompileError as error:
        yield invalid(where, rule, f"messageExpression compilation failed: {error}")
    else:
        if expression.type != STRING:
            yield invalid(where, rule, "messageExpression must evaluate to a string")
            return
        cost = static_cost(checked, declared)
        yield from costs.fault(where, "estimated messageExpression cost", cost)


def _holds(expression: Expression, value: Any, schema: Schema) -> bool:
    """Whether a rule holds for a default; a rule that ends in an error does not.

    A default that does not have its format counts as valid here.
    """
    from webhook.cel.errors import EvaluationError  # noqa: PLC0415  # as above
    from webhook.cel.run.meter import Meter  # noqa: PLC0415

    try:
        of = _read(value, schema)
    except EvaluationError:
        return True
    try:
        return expression.evaluate({"self": of}, Meter()) is not False
    except EvaluationError:
        return False


def _read(value: Any, schema: Schema) -> Any:
    """Returns a default as rules see it: texts of some formats become other types.

    Field names are those of expressions. Raises EvaluationError for a malformed text.
    """
    from webhook.cel.check.objects import escaped_field  # noqa: PLC0415  # as above
    from webhook.cel.run.conversions import to_duration, to_timestamp  # noqa: PLC0415

    form = schema.get("format") if schema.get("type") == "string" else None
    items, more = schema.get("items"), schema.get("additionalProperties")
    if type(value) is str:
        match form:
            case "byte":
                return base64.b64decode(value)
            case "date":
                return to_timestamp(f"{value}T00:00:00Z")
            case "date-time":
                return to_timestamp(value)
            case "duration":
                return to_duration(value)
    elif type(value) is list and type(items) is dict:
        return [_read(item, items) for item in value]
    elif type(value) is dict:
        if type(more) is dict:
            return {name: _read(item, more) for name, item in value.items()}
        properties = schema.get("properties") or {}
        fields = {name: _read(value[name], of) for name, of in properties.items() if name in value}
        escaped = {escaped_field(name): item for name, item in fields.items()}
        return value | fields | {name: item for name, item in escaped.items() if name is not None}
    return value
