"""Validates a document against a prepared schema, with gojsonschema's order and messages.

If all branches of ``anyOf``, ``oneOf`` or ``contains`` fail, only the faults of the branch with the
highest ``score`` are shown, as in gojsonschema.
"""

from __future__ import annotations

from dataclasses import field
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

from webhook.rego.builtins.json_schema.formats import is_format
from webhook.rego.builtins.json_schema.keywords import canonical
from webhook.rego.builtins.json_schema.nodes import Schema
from webhook.rego.run import numbers
from webhook.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable
    from fractions import Fraction

    from webhook.rego.builtins.registry import Context

_STEPS_A_VISIT: Final = 60  # about 3 µs, at 50 ns a step
_ROOT: Final = "(Root)"


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault: its type, its place and its message."""

    kind: str
    field: str
    description: str

    def json(self) -> dict[str, str]:
        """Returns the fault as OPA shows it."""
        return {
            "error": f"{self.field}: {self.description}",
            "type": self.kind,
            "field": self.field,
            "desc": self.description,
        }


@dataclass(slots=True)
class _Result:
    """The faults of one attempt, and its score."""

    faults: list[Fault] = field(default_factory=list)
    score: int = 0

    def add(self, kind: str, place: str, description: str) -> None:
        self.faults.append(Fault(kind, _field(place), description))
        self.score -= 2

    def merge(self, other: _Result) -> None:
        self.faults += other.faults
        self.score += other.score


def _field(place: str) -> str:
    return place.removeprefix(f"{_ROOT}.")


def validate(schema: Schema, document: Any, context: Context) -> list[Fault]:
    """Returns all faults of the document; an empty list if it matches."""
    result = _Result()
    _Validation(context).visit(schema, document, result, _ROOT)
    return result.faults


class _Validation:
    """One validation; its work is charged."""

    def __init__(self, context: Context) -> None:
        self._context = context

    def _attempt(self, schema: Schema, value: Any, place: str) -> _Result:
        result = _Result()
        self.visit(schema, value, result, place)
        return result

    def visit(self, schema: Schema, value: Any, result: _Result, place: str) -> None:
        """Adds the faults of ``value`` under ``schema``."""
        self._context.charge(_STEPS_A_VISIT)
        if schema.accepts is not None:
            if not schema.accepts:
                result.add("false", place, "False always fails validation")
            return
        if schema.reference is not None:
            self.visit(schema.reference, value, result, place)
            return
        kind = _kind(value)
        if schema.types and not _has_type(schema.types, kind):
            expected = schema.types[0]
            if len(schema.types) > 1:
                expected = f"[{','.join(schema.types)}]"
            result.add("invalid_type", place, f"Invalid type. Expected: {expected}, given: {kind}")
            return
        self._combinations(schema, value, result, place)
        if kind == "array":
            self._array(schema, value, result, place)
            self._common(schema, value, result, place)
        elif kind == "object":
            self._object(schema, value, result, place)
            self._common(schema, value, result, place)
            for name, child in schema.properties.items():
                if name in value:
                    self.visit(child, value[name], result, f"{place}.{name}")
        else:
            if kind in ("integer", "number"):
                _number(schema, value, result, place)
            self._common(schema, value, result, place)
            if kind == "string":
                _string(schema, value, result, place)
        result.score += 1

    # --- combinations -----------------------------------------------------------------------

    def _combinations(self, schema: Schema, value: Any, result: _Result, place: str) -> None:
        if schema.any_of:
            self._any_of(schema, value, result, place)
        if schema.one_of:
            self._one_of(schema, value, result, place)
        if schema.all_of:
            attempts = [self._attempt(member, value, place) for member in schema.all_of]
            for attempt in attempts:
                result.merge(attempt)
            if any(attempt.faults for attempt in attempts):
                result.add("number_all_of", place, "Must validate all the schemas (allOf)")
        if schema.not_ is not None and not self._attempt(schema.not_, value, place).faults:
            result.add("number_not", place, "Must not validate the schema (not)")
        if schema.dependencies and isinstance(value, dict):
            self._dependencies(schema, value, result, place)
        if schema.if_ is not None:
            self._condition(schema, value, result, place)
        result.score += 1

    def _any_of(self, schema: Schema, value: Any, result: _Result, place: str) -> None:
        attempts = []
        for member in schema.any_of:
            attempt = self._attempt(member, value, place)
            if not attempt.faults:
                return
            attempts.append(attempt)
        result.add("number_any_of", place, "Must validate at least one schema (anyOf)")
        result.merge(_best(attempts))

    def _one_of(self, schema: Schema, value: Any, result: _Result, place: str) -> None:
        attempts = [self._attempt(member, value, place) for member in schema.one_of]
        matched = sum(not attempt.faults for attempt in attempts)
        if matched == 1:
            return
        result.add("number_one_of", place, "Must validate one and only one schema (oneOf)")
        if not matched:
            result.merge(_best(attempts))

    def _dependencies(
        self, schema: Schema, value: dict[str, Any], result: _Result, place: str
    ) -> None:
        for name in sorted(value):
            dependency = schema.dependencies.get(name)
            if isinstance(dependency, Schema):
                self.visit(dependency, value, result, place)
            elif dependency is not None:
                for other in dependency:
                    if other not in value:
                        result.add("missing_dependency", place, f"Has a dependency on {other}")

    def _condition(self, schema: Schema, value: Any, result: _Result, place: str) -> None:
        assert schema.if_ is not None
        holds = not self._attempt(schema.if_, value, place).faults
        branch = schema.then if holds else schema.else_
        if branch is None:
            return
        attempt = self._attempt(branch, value, place)
        if attempt.faults:
            if holds:
                description = 'Must validate "then" as "if" was valid'
            else:
                description = 'Must validate "else" as "if" was not valid'
            result.add(f"condition_{'then' if holds else 'else'}", place, description)
            result.merge(attempt)

    # --- values -----------------------------------------------------------------------------

    def _common(self, schema: Schema, value: Any, result: _Result, place: str) -> None:
        if schema.const is not None and canonical(value) != schema.const:
            result.add("const", place, f"{_field(place)} does not match: {schema.const}")
        if schema.enum is not None and canonical(value) not in schema.enum:
            allowed = ", ".join(schema.enum)
            description = f"{_field(place)} must be one of the following: {allowed}"
            result.add("enum", place, description)
        if schema.format and isinstance(value, str) and not is_format(schema.format, value):
            result.add("format", place, f"Does not match format '{schema.format}'")
        result.score += 1

    def _array(self, schema: Schema, value: list[Any], result: _Result, place: str) -> None:
        for index, item in enumerate(value):
            child = self._item_schema(schema, index)
            if child is not None:
                result.merge(self._attempt(child, item, f"{place}.{index}"))
        if (
            not schema.items_is_single
            and 0 < len(schema.items) < len(value)
            and schema.additional_items is False
        ):
            description = "No additional items allowed on array"
            result.add("array_no_additional_items", place, description)
        sizes = schema.sizes
        if len(value) < sizes.get("minItems", 0):
            description = f"Array must have at least {sizes['minItems']} items"
            result.add("array_min_items", place, description)
        if len(value) > sizes.get("maxItems", len(value)):
            description = f"Array must have at most {sizes['maxItems']} items"
            result.add("array_max_items", place, description)
        if schema.unique_items:
            self._unique(value, result, place)
        if schema.contains is not None:
            self._contains(schema.contains, value, result, place)
        result.score += 1

    def _item_schema(self, schema: Schema, index: int) -> Schema | None:
        if schema.items_is_single:
            return schema.items[0]
        if index < len(schema.items):
            return schema.items[index]
        extra = schema.additional_items
        return extra if schema.items and isinstance(extra, Schema) else None

    def _unique(self, value: list[Any], result: _Result, place: str) -> None:
        seen: dict[str, int] = {}
        for index, item in enumerate(value):
            text = canonical(item)
            self._context.charge(len(text))
            if text in seen:
                description = f"array items[{seen[text]},{index}] must be unique"
                result.add("unique", place, description)
            seen[text] = index

    def _contains(self, schema: Schema, value: list[Any], result: _Result, place: str) -> None:
        attempts = []
        for index, item in enumerate(value):
            attempt = self._attempt(schema, item, f"{place}.{index}")
            if not attempt.faults:
                return
            attempts.append(attempt)
        result.add("contains", place, "At least one of the items must match")
        if attempts:
            result.merge(_best(attempts))

    def _object(self, schema: Schema, value: dict[str, Any], result: _Result, place: str) -> None:
        sizes = schema.sizes
        if len(value) < sizes.get("minProperties", 0):
            description = f"Must have at least {sizes['minProperties']} properties"
            result.add("array_min_properties", place, description)
        if len(value) > sizes.get("maxProperties", len(value)):
            description = f"Must have at most {sizes['maxProperties']} properties"
            result.add("array_max_properties", place, description)
        for name in schema.required:
            if name in value:
                result.score += 1
            else:
                result.add("required", place, f"{name} is required")
        for name in sorted(value):
            self._property(schema, name, value[name], result, place)
        if schema.property_names is not None:
            for name in sorted(value):
                attempt = self._attempt(schema.property_names, name, place)
                if attempt.faults:
                    description = f'Property name of "{name}" does not match'
                    result.add("invalid_property_name", place, description)
                    result.merge(attempt)
        result.score += 1

    def _property(self, schema: Schema, name: str, value: Any, result: _Result, place: str) -> None:
        """Validates by ``patternProperties``; by ``additionalProperties`` if nothing else matches."""
        matched = False
        for pattern, child in schema.pattern_properties:
            if pattern.found_in(name):
                matched = True
                result.merge(self._attempt(child, value, f"{place}.{name}"))
        result.score += matched
        if matched or name in schema.properties:
            return
        extra = schema.additional_properties
        if extra is False:
            description = f"Additional property {name} is not allowed"
            result.add("additional_property_not_allowed", place, description)
        elif isinstance(extra, Schema):
            result.merge(self._attempt(extra, value, f"{place}.{name}"))


def _best(attempts: list[_Result]) -> _Result:
    return max(attempts, key=lambda attempt: attempt.score)


def _kind(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, str):
        return "string"
    if isinstance(value, list):
        return "array"
    if isinstance(value, dict):
        return "object"
    return "integer" if numbers.exact(value).denominator == 1 else "number"


def _has_type(types: list[str], kind: str) -> bool:
    return kind in types or (kind == "integer" and "number" in types)


def _string(schema: Schema, value: str, result: _Result, place: str) -> None:
    sizes = schema.sizes
    if len(value) < sizes.get("minLength", 0):
        description = f"String length must be greater than or equal to {sizes['minLength']}"
        result.add("string_gte", place, description)
    if len(value) > sizes.get("maxLength", len(value)):
        description = f"String length must be less than or equal to {sizes['maxLength']}"
        result.add("string_lte", place, description)
    if schema.pattern is not None and not schema.pattern.found_in(value):
        result.add("pattern", place, f"Does not match pattern '{schema.pattern_text}'")
    result.score += 1


def _number(schema: Schema, value: float, result: _Result, place: str) -> None:
    limits = schema.numbers
    exact = numbers.exact(value)
    multiple = limits.get("multipleOf")
    if multiple is not None and (exact / multiple).denominator != 1:
        result.add("multiple_of", place, f"Must be a multiple of {_limit_text(multiple)}")
    for name, kind, words, breaks in _LIMITS:
        limit = limits.get(name)
        if limit is not None and breaks(exact, limit):
            result.add(kind, place, f"Must be {words} {_limit_text(limit)}")
    result.score += 1


_LIMITS: Final[tuple[tuple[str, str, str, Callable[[Fraction, Fraction], bool]], ...]] = (
    ("maximum", "number_lte", "less than or equal to", lambda a, b: a > b),
    ("exclusiveMaximum", "number_lt", "less than", lambda a, b: a >= b),
    ("minimum", "number_gte", "greater than or equal to", lambda a, b: a < b),
    ("exclusiveMinimum", "number_gt", "greater than", lambda a, b: a <= b),
)

# A big.Float made of a fraction keeps at least 64 bits: 19 digits and a bit.
_LIMIT_DIGITS: Final = 20


def _limit_text(limit: Fraction) -> str:
    """The limit as Go prints a ``big.Float``: like ``%g``, an exponent from a million on."""
    if limit.denominator == 1 and abs(limit) < 1_000_000:
        return str(limit.numerator)
    exact = Decimal(limit.numerator) / Decimal(limit.denominator)
    sign, digits, exponent = exact.normalize().as_tuple()
    assert isinstance(exponent, int)
    text = "".join(map(str, digits))[:_LIMIT_DIGITS]
    point = len(digits) + exponent
    minus = "-" if sign else ""
    # strconv's %g: an exponent below -4, or from 6 digits (21 with a fraction of them) on.
    threshold = max(len(text), 6) if len(text) > point else 6
    if point - 1 < -4 or point - 1 >= (threshold if len(text) >= point else 6):
        mantissa = text[0] + (f".{text[1:]}" if len(text) > 1 else "")
        return f"{minus}{mantissa}e{'-' if point < 1 else '+'}{abs(point - 1):02d}"
    if point <= 0:
        return f"{minus}0.{'0' * -point}{text}"
    padded = text.ljust(point, "0")
    return minus + padded[:point] + (f".{padded[point:]}" if len(padded) > point else "")
