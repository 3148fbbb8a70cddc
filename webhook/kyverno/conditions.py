"""Converts Kyverno's conditions (``deny``, ``preconditions``) to CEL expressions.

The meaning of an operator depends on the types of the key and of the value. These are known at
conversion, or tested in the expression. Source: Kyverno 1.19: pkg/engine/variables/operator.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from webhook.api.shapes import object_of, objects_of
from webhook.kyverno.jmespath import QueryNode, variables_of
from webhook.kyverno.patterns import RANGE, Unwritable, text_matches, written
from webhook.kyverno.queries import NUMBER, Term, both, joined, literal_of

if TYPE_CHECKING:
    from webhook.api.shapes import Json
    from webhook.kyverno.queries import Queries

_WITHIN: Final = {
    "In": ("exists", False),
    "AnyIn": ("exists", False),
    "AllIn": ("all", False),
    "NotIn": ("all", True),
    "AnyNotIn": ("exists", True),
    "AllNotIn": ("all", True),
}
"""For several keys: for how many it must hold, and whether the others must be elsewhere."""

_COMPARED: Final = {
    "GreaterThan": ">",
    "GreaterThanOrEquals": ">=",
    "LessThan": "<",
    "LessThanOrEquals": "<=",
}
_DURATION: Final = r"^[-+]?([0-9]+(\\.[0-9]*)?(ns|us|ms|s|m|h))+$"
_IS_DURATION: Final = re.compile(r"[-+]?([0-9]+(\.[0-9]*)?(ns|us|ms|s|m|h))+")
_IS_QUANTITY: Final = re.compile(
    r"[-+]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([KMGTPE]i|[numkMGTPE]|[eE][-+]?[0-9]+)?"
)
_NO_QUANTITY: Final = re.compile(r"[^-+.0-9KMGTPEinumke*?]")
_IS_NUMBER: Final = "(type({0}) == int || type({0}) == double || type({0}) == uint)"


class RequiredCondition(NamedTuple):
    """A condition, and the precondition that its inputs exist; "" is always."""

    held: str
    reached: str = ""


def conditions_of(given: Any, where: str, queries: Queries, *, skips_missing: bool = False) -> str:
    """Returns conditions in ``any`` and ``all``, in order; a bare list means ``all``.

    An error in one is an error of all, whatever the others are, because Kyverno evaluates them in
    order. With ``skips_missing`` nothing holds if a key is missing. Raises
    :class:`~webhook.kyverno.patterns.Unwritable`.
    """
    blocks = objects_of(given) if type(given) is list else [object_of(given)]

    def in_turn(conditions: list[Json], *, is_all: bool) -> str:
        written = [_condition(condition, where, queries) for condition in conditions]
        return _in_turn(written, is_all=is_all, skips_missing=skips_missing)

    parts = []
    for block in blocks:
        if "key" in block:
            parts.append(in_turn([block], is_all=True))
        if block.get("any") is not None:
            parts.append(in_turn(objects_of(block["any"]), is_all=False))
        if all_of := objects_of(block.get("all")):
            parts.append(in_turn(all_of, is_all=True))
    return _in_turn([RequiredCondition(part) for part in parts], is_all=True)


def _in_turn(parts: list[RequiredCondition], *, is_all: bool, skips_missing: bool = False) -> str:
    """Combines conditions in order; an earlier one may be an error."""
    if skips_missing:
        parts = [RequiredCondition(both(reached, f"({held})"), reached) for held, reached in parts]
    if not any(
        part.reached or "optional.none" in part.held or ".value()" in part.held for part in parts
    ):
        joint = " && " if is_all else " || "
        return joint.join(f"({part.held})" for part in parts) or ("true" if is_all else "false")
    held = f"({parts[-1].held})"
    for part in reversed(parts[:-1]):
        held = f"(({part.held}) ? {held} : false)" if is_all else f"(({part.held}) ? true : {held})"
        if skips_missing and part.reached and not is_all:
            held = f"({part.reached} && {held})"
    return held


def _condition(condition: Json, where: str, queries: Queries) -> RequiredCondition:
    """Returns a condition; raises :class:`~webhook.kyverno.patterns.Unwritable`."""
    try:
        key, value = (term_of(condition.get(name), queries) for name in ("key", "value"))
    except Unwritable as why:
        raise Unwritable(f"{where}: {why}") from None
    held = _held(condition, where, key, value, queries)
    for term, is_key in ((value, False), (key, True)):
        if not _is_evaluated(term, held, is_key=is_key):
            held = f"[dyn({term.strict})].exists({queries.name()}, {held})"
    return RequiredCondition(held, both(key.reached, value.reached))


def _is_evaluated(term: Term, held: str, *, is_key: bool) -> bool:
    """Returns whether a condition is in error wherever a term is.

    Kyverno reads keys and values before it compares them.
    """
    if term.fixed is not None or term.kind == "null" or term.strict.isidentifier():
        return True
    if term.reached:
        return is_key and not term.there and term.strict in held
    return term.text in held


def _held(condition: Json, where: str, key: Term, value: Term, queries: Queries) -> str:
    operator = str(condition.get("operator") or "")
    try:
        if operator in _WITHIN:
            return _within(operator, key, value, queries)
        if operator in {"Equal", "Equals"}:
            return _equals(key, value, queries)
        if operator in {"NotEqual", "NotEquals"}:
            there = f"{key.strict} != null" if key.kind == "any" else key.there
            return (
                both(there, f"!({_equals(key, value, queries)})") if key.kind != "null" else "false"
            )
        if operator in _COMPARED:
            return _compared(_COMPARED[operator], key, value, queries)
        if operator.startswith("Duration") and operator[8:] in _COMPARED:
            return _durations(_COMPARED[operator[8:]], key, value, queries)
    except Unwritable as why:
        raise Unwritable(f"{where}: {why}") from None
    raise Unwritable(f"{where}: operator {operator}")


def term_of(value: Any, queries: Queries) -> Term:
    """Returns a key or a value, which may contain variables; raises Unwritable."""
    if type(value) is list and "{{" in str(value):
        members = [term_of(item, queries) for item in value]
        if any(term.kind in {"list", "map", "object"} for term in members):
            raise Unwritable("a list with variables that are lists")
        kinds = {term.kind for term in members}
        kind = kinds.pop() if len(kinds) == 1 else "any"
        return Term(f"[{', '.join(f'dyn({term.strict})' for term in members)}]", "list", items=kind)
    if type(value) is dict and "{{" in str(value):
        raise Unwritable("a map with variables")
    if type(value) is not str:
        return literal_of(value)
    if "$(" in value:
        raise Unwritable(f"a reference: {value}")
    pieces = variables_of(value)
    if not any(isinstance(piece, QueryNode) for piece in pieces):
        return literal_of(value.replace("\\{{", "{{"))
    terms = [queries.term(piece) if isinstance(piece, QueryNode) else piece for piece in pieces]
    if len(terms) == 1 and isinstance(terms[0], Term):
        return terms[0]
    return joined(terms)


# --- membership
# -----------------------------------------------------------------------------------


def _within(operator: str, key: Term, value: Term, queries: Queries) -> str:
    _, is_not = _WITHIN[operator]
    is_old = operator in {"In", "NotIn"}
    if key.kind in {"map", "null", "object"}:
        return "false"
    if key.kind == "list":
        held = _each(operator, key.text, value, queries, key)
        return held if held == "false" else both(key.there, held)
    if key.kind != "any":
        text = key.text if key.kind == "string" else f"string({key.text})"
        term = _scalar(text, key, value, queries, is_old=is_old)
        return both(key.there, _not(term, is_not=is_not)) if term is not None else "false"

    def dispatched(name: str) -> str:
        condition = _scalar(f"string({name})", key, value, queries, is_old=is_old)
        each = _each(operator, name, value, queries, key)
        single = "false" if condition is None else _not(condition, is_not=is_not)
        is_none = f"{name} == null || type({name}) == map"
        return f"(type({name}) == list ? {each} : {is_none} ? false : {single})"

    return queries.bound(key.strict, dispatched)


def _not(text: str, *, is_not: bool) -> str:
    return f"!({text})" if is_not else text


def _scalar(text: str, key: Term, value: Term, queries: Queries, *, is_old: bool) -> str | None:
    """Returns whether one key is among the values; None if no value has a comparable type."""
    if value.kind == "list":
        return _among(text, key, value, queries)
    if value.kind != "string":
        if value.kind == "any":
            raise Unwritable("a value whose kind is not known")
        return None
    fixed = value.fixed
    if type(fixed) is not str or is_old:
        raise Unwritable("a value that is a computed text, or no list for In and NotIn")
    if (match := RANGE.fullmatch(fixed)) and not match[2]:
        return f"({_in_range(text, match)})"
    _refuse_json(fixed)
    return text_matches(text, fixed)


def _each(operator: str, items: str, value: Term, queries: Queries, key: Term) -> str:
    """Whether the keys of a list are among the values."""
    quantity, is_not = _WITHIN[operator]
    name = queries.name()
    text = name if key.items == "string" else f"string({name})"
    if operator in {"In", "NotIn"}:
        return _each_exactly(operator, items, value, name)
    if value.kind == "list":
        term = _among(text, key, value, queries)
    elif value.kind in {"number", "bool"}:
        if operator.startswith("All"):
            return "false"
        term = _among(text, key, literal_of([value.fixed]), queries)
    elif value.kind == "string" and type(value.fixed) is str:
        match = RANGE.fullmatch(value.fixed)
        if match and not match[2]:
            outside = operator == "AnyNotIn"
            term = _out_of_range(text, match) if outside else _in_range(text, match)
            is_not = is_not and not outside
        else:
            _refuse_json(value.fixed)
            term = _among(text, key, literal_of([value.fixed]), queries)
    elif value.kind in {"null", "map"}:
        return "false"
    else:
        raise Unwritable("a value whose kind is not known")
    return f"{items}.{quantity}({name}, {_not(term, is_not=is_not)})"


def _each_exactly(operator: str, items: str, value: Term, name: str) -> str:
    """Of the deprecated operators, which know no wildcards in lists."""
    if type(value.fixed) is not list or any(type(item) is not str for item in value.fixed):
        raise Unwritable(
            f"{operator} of what is not a list of strings; write Any{operator} or All{operator}"
        )
    if operator == "In":
        return f"{items}.all({name}, {name} in {value.text})"
    return f"{items}.exists({name}, !({name} in {value.text}))"


def _refuse_json(text: str) -> None:
    """Raises for JSON texts, which Kyverno reads as lists."""
    if re.fullmatch(r"\s*([\[{\"].*|-?[0-9].*|true|false|null)\s*", text, re.DOTALL):
        raise Unwritable(f"a value that Kyverno reads as JSON: {text}")


def _among(text: str, key: Term, value: Term, queries: Queries) -> str:
    """Returns whether a key equals one of the values; either may be a pattern."""
    if type(value.fixed) is not list:
        name = queries.name()
        other = name if value.items == "string" else f"string({name})"
        fixed_key = key.fixed if type(key.fixed) is str else None
        held = [f"{text} == {other}", _as_pattern(other, text, queries)]
        if not key.is_plain and (fixed_key is None or any(mark in fixed_key for mark in "*?")):
            held.append(_as_pattern(text, other, queries))
        there = f"{value.there} && " if value.there else ""
        return f"({there}{value.text}.exists({name}, {' || '.join(held)}))"
    values = [sprinted(item) for item in value.fixed]
    if not values:
        return "false"
    parts = []
    if texts := [pattern for pattern in values if not any(mark in pattern for mark in "*?")]:
        parts.append(
            f"{text} == {written(texts[0])}" if len(texts) == 1 else f"{text} in {written(texts)}"
        )
    parts += [f"({text_matches(text, pattern)})" for pattern in values if pattern not in texts]
    if not key.is_plain and "true" not in parts and "(true)" not in parts:
        name = queries.name()
        parts.append(
            _has_glob(text, f"{written(values)}.exists({name}, {name}.matches({_glob(text)}))")
        )
    return f"({' || '.join(parts)})"


def _has_glob(text: str, held: str) -> str:
    return f"(({text}.contains('*') || {text}.contains('?')) && {held})"


def _as_pattern(pattern: str, text: str, queries: Queries) -> str:
    """Matches a text with a pattern that is only known at evaluation."""
    del queries
    return _has_glob(pattern, f"{text}.matches({_glob(pattern)})")


def _glob(pattern: str) -> str:
    inner = f"{pattern}.replace('*', '\\\\E.*\\\\Q').replace('?', '\\\\E.\\\\Q')"
    return f"'(?s)^\\\\Q' + {inner} + '\\\\E$'"


def sprinted(value: Any) -> str:
    """Returns a value of a policy as Go prints it."""
    if type(value) is bool:
        return "true" if value else "false"
    if type(value) in {int, str}:
        return str(value)
    raise Unwritable(f"a value that is neither text, whole number nor boolean: {written(value)}")


def _in_range(text: str, match: re.Match[str]) -> str:
    low, high = _bounds(match)
    return both(
        f"isQuantity({text})",
        f"quantity({text}).compareTo({low}) >= 0",
        f"quantity({text}).compareTo({high}) <= 0",
    )


def _out_of_range(text: str, match: re.Match[str]) -> str:
    low, high = _bounds(match)
    outside = f"quantity({text}).compareTo({low}) < 0 || quantity({text}).compareTo({high}) > 0"
    return f"isQuantity({text}) && ({outside})"


def _bounds(match: re.Match[str]) -> tuple[str, str]:
    low, high = match[1], match[3]
    for bound in (low, high):
        if not _IS_QUANTITY.fullmatch(bound) or _IS_DURATION.fullmatch(bound):
            raise Unwritable(f"a range of what is not a quantity: {bound}")
    return f"quantity({written(low)})", f"quantity({written(high)})"


# --- equality and order ---------------------------------------------------------------------------


def _equals(key: Term, value: Term, queries: Queries) -> str:
    if key.kind in {"null", "object"}:
        return "false"
    if value.kind == "object":
        raise Unwritable("a whole object")
    if key.kind == "any" and value.kind == "any":
        return _equal_of_any(key, value, queries)
    if value.kind == "any":
        raise Unwritable("a value whose kind is not known")
    if key.kind not in {"any", value.kind} and {key.kind, value.kind} != {"number", "string"}:
        return "false"
    if key.kind not in {"any", "string"} or value.kind in {"bool", "null", "list", "map"}:
        if value.kind == "null":
            return "false"
        if key.kind == "number" and value.kind == "string":
            return both(key.there, _number_equals(f"dyn({key.text})", value))
        return both(key.there, value.there, f"dyn({key.strict}) == {value.strict}")
    if value.kind == "string" and type(value.fixed) is not str:
        if key.kind == "string":
            return both(key.there, _texts_equal(key.text, value.text))
        raise Unwritable("a value that is a computed text")
    if key.kind == "string":
        return both(key.there, _text_equals(key.text, value))
    return queries.bound(
        key.strict,
        lambda name: (
            f"(type({name}) == string ? {_text_equals(name, value)}"
            f" : {_number_equals(name, value)})"
        ),
    )


def _number_equals(name: str, value: Term) -> str:
    """Returns whether a non-text value equals a text or a number."""
    if value.kind == "number":
        return f"{name} == {value.text}"
    number = _number_of(value)
    return "false" if number == "null" else f"{name} == {number}"


def _number_of(value: Term) -> str:
    """Returns a text of a policy as a number."""
    if type(value.fixed) is not str:
        raise Unwritable("a value that is a computed text")
    try:
        number = float(value.fixed)
    except ValueError:
        return "null"
    return value.fixed if re.fullmatch("-?[0-9]+", value.fixed) else written(number)


def _text_equals(text: str, value: Term) -> str:
    """Returns whether a text equals a policy's value; durations and quantities by amount."""
    is_duration = f"{text}.matches('{_DURATION}')"
    if value.kind == "number":
        if type(value.fixed) is not int:
            raise Unwritable("Equals of a text and a fraction")
        return f"{is_duration} && duration({text}) == duration('{value.fixed}s')"
    fixed = str(value.fixed)
    parts = []
    if _IS_DURATION.fullmatch(fixed):
        parts.append(f"{is_duration} ? duration({text}) == duration({written(fixed)}) : ")
    if _IS_QUANTITY.fullmatch(fixed):
        same = f"quantity({text}).compareTo(quantity({written(fixed)})) == 0"
        return f"({''.join(parts)}isQuantity({text}) && {same})"
    held = text_matches(text, fixed)
    if any(mark in fixed for mark in "*?") and not _NO_QUANTITY.search(fixed):
        held = f"!isQuantity({text}) && ({held})"
    return f"({''.join(parts)}{held})"


def _texts_equal(text: str, other: str) -> str:
    """Returns whether two texts are equal that are only known at evaluation."""
    are_durations = f"{text}.matches('{_DURATION}') && {other}.matches('{_DURATION}')"
    same = f"isQuantity({other}) && quantity({text}).compareTo(quantity({other})) == 0"
    alike = f"({text} == {other} || {_has_glob(other, f'{text}.matches({_glob(other)})')})"
    return (
        f"({are_durations} ? duration({text}) == duration({other})"
        f" : isQuantity({text}) ? {same} : {alike})"
    )


def _equal_of_any(key: Term, value: Term, queries: Queries) -> str:
    """Returns whether two values are equal whose types are only known at evaluation."""

    def compared(name: str, other: str) -> str:
        return (
            f"(type({name}) == string && type({other}) == string ? {_texts_equal(name, other)}"
            f" : {name} != null && {name} == {other})"
        )

    return queries.bound(
        key.strict,
        lambda name: queries.bound(value.strict, lambda other: compared(name, other)),
    )


def _compared(operator: str, key: Term, value: Term, queries: Queries) -> str:
    if key.kind in {"bool", "list", "map", "null", "object"}:
        return "false"
    if key.kind == value.kind == "number" and type(value.fixed) not in {int, float}:
        return both(key.there, f"double({key.text}) {operator} double({value.text})")
    if type(value.fixed) in {int, float}:
        number = f"{float(value.fixed)}"
        if key.kind == "number":
            return both(key.there, f"double({key.text}) {operator} {number}")
        return queries.bound(
            key.strict if key.kind == "any" else key.loose,
            lambda name: (
                f"(type({name}) == string ? {_text_compared(operator, f'string({name})', value)}"
                f" : {_IS_NUMBER.format(name)} && double({name}) {operator} {number})"
            ),
        )
    if (
        type(value.fixed) is str
        and _IS_QUANTITY.fullmatch(value.fixed)
        and not _IS_DURATION.fullmatch(value.fixed)
    ):
        compared = f"quantity({{0}}).compareTo(quantity({written(value.fixed)})) {operator} 0"
        number = _number_of(value)
        other = "false" if number == "null" else f"double({{0}}) {operator} {float(number)}"
        return queries.bound(
            key.strict if key.kind == "any" else key.loose,
            lambda name: (
                f"(type({name}) == string ? isQuantity({name}) && {compared.format(name)}"
                f" : {_IS_NUMBER.format(name)} && {other.format(name)})"
            ),
        )
    raise Unwritable("an order of what is neither number nor quantity")


def _text_compared(operator: str, text: str, value: Term) -> str:
    """Compares a text with a number: the text may be a duration or a number."""
    # Go truncates fractions of a second.
    duration = f"duration({text}) {operator} duration('{int(value.fixed)}s')"
    return (
        f"({text}.matches('{_DURATION}') ? {duration}"
        f" : {text}.matches('{NUMBER}') && double({text}) {operator} {float(value.fixed)})"
    )


def _durations(operator: str, key: Term, value: Term, queries: Queries) -> str:
    if type(value.fixed) is int:
        limit = f"duration('{value.fixed}s')"
    elif type(value.fixed) is str and _IS_DURATION.fullmatch(value.fixed):
        limit = f"duration({written(value.fixed)})"
    else:
        raise Unwritable("a duration that cannot be read")
    if key.kind in {"bool", "list", "map", "null", "object"}:
        return "false"
    return queries.bound(
        key.strict if key.kind == "any" else key.loose,
        lambda name: (
            f"(type({name}) == string ? string({name}).matches('{_DURATION}') && "
            f"duration(string({name})) {operator} {limit} : {_IS_NUMBER.format(name)} && "
            f"duration(string(int({name})) + 's') {operator} {limit})"
        ),
    )
