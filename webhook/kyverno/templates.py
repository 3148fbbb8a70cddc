"""Conditions of Kyverno (``deny``, ``preconditions``) as expressions of CEL."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from webhook.kyverno.patterns import Unwritable, is_range, scalar_matches, text_matches, written

if TYPE_CHECKING:
    from collections.abc import Callable

    from webhook.api.shapes import Json

_VARIABLE: Final = re.compile(r"\{\{\s*(.+?)\s*\}\}")
_PATH: Final = re.compile(
    r"request\.(?P<root>object|oldObject)"
    r"(?P<rest>(?:\.[A-Za-z_]\w*|\.\"[^\"]+\"|\[\]|\.\[[\w, ]+\]\[\])*(?:\.keys\(@\)\[\])?)"
)
_KEYS: Final = ".keys(@)[]"
_STEP: Final = re.compile(r"\.([A-Za-z_]\w*)|\.\"([^\"]+)\"|(\[\])|\.\[([\w, ]+)\]\[\]")
_DEFAULT: Final = re.compile(r"(.+?)\s*\|\|\s*(`.*?`|'.*?')")
_OTHERS: Final = {
    "request.operation": "request.operation",
    "request.userInfo.username": "request.userInfo.?username.orValue('')",
    "request.namespace": "request.?namespace.orValue('')",
    "request.name": "request.?name.orValue('')",
}
_WITHIN: Final = frozenset(("In", "AnyIn", "AllIn", "NotIn", "AnyNotIn", "AllNotIn"))
_COMPARED: Final = {
    "GreaterThan": ">",
    "GreaterThanOrEquals": ">=",
    "LessThan": "<",
    "LessThanOrEquals": "<=",
}


class _Key(NamedTuple):
    """What a condition asks: a value, or those of a list, or of a list in each item of one.

    ``inner`` is the list in an item ``e``. ``default`` is asked where there are no values.
    """

    value: str
    is_list: bool = False
    inner: str = ""
    default: str | None = None

    def some(self, test: Callable[[str], str]) -> str:
        """Whether a test holds of a value."""
        if not self.is_list:
            return test(self.value)
        if self.inner:
            held = f"{self.value}.exists(e, {self.inner}.exists(f, {test('f')}))"
            known = f"{self.value}.exists(e, size({self.inner}) > 0)"
        else:
            held, known = f"{self.value}.exists(e, {test('e')})", f"size({self.value}) > 0"
        return held if self.default is None else f"({known} ? {held} : {test(self.default)})"


def condition_of(condition: Json, where: str) -> str:
    """A condition; raises :class:`~webhook.kyverno.patterns.Unwritable`."""
    operator = str(condition.get("operator") or "")
    asked = _key(condition.get("key"), where)
    is_list, key = asked.is_list, asked.value
    value = condition.get("value")
    if isinstance(value, str | list) and "{{" in str(value):
        raise Unwritable(f"{where}: a value with variables")
    values = value if type(value) is list else [value]
    if operator in _COMPARED:
        if is_list or isinstance(value, bool) or not isinstance(value, int | float):
            raise Unwritable(f"{where}: {operator} of what is no number")
        return f"double({key}) {_COMPARED[operator]} {float(value)}"
    if operator in {"Equal", "Equals", "NotEqual", "NotEquals"}:
        if type(value) is list or is_list:
            raise Unwritable(f"{where}: {operator} of a list")
        is_text = type(value) is str and is_range(value)  # Kyverno reads no range there
        held = f"string({key}) == {written(value)}" if is_text else _is_one(key, [value])
        return held if operator.startswith("Equal") else f"!({held})"
    ranges = [one for one in values if type(one) is str and is_range(one)]
    if operator in _WITHIN and ranges and ranges != [value]:
        raise Unwritable(f"{where}: {operator} of a range in a list")
    if operator in {"In", "AnyIn", "NotIn", "AllNotIn"}:
        within = asked.some(lambda at: _is_one(at, values))
        return within if operator in {"In", "AnyIn"} else f"!({within})"
    if operator in {"AllIn", "AnyNotIn"}:
        outside = asked.some(lambda at: f"!({_is_one(at, values)})")
        return f"!({outside})" if operator == "AllIn" else outside
    raise Unwritable(f"{where}: operator {operator}")


def _is_one(key: str, values: list[Any]) -> str:
    parts = []
    for value in values:
        if type(value) is str and is_range(value):
            parts.append(scalar_matches(key, value))
        elif type(value) is str:
            parts.append(f"({text_matches(f'string({key})', value)})")
        elif type(value) in {bool, int, float} or value is None:
            parts.append(f"({key} == {written(value)})")
        else:
            raise Unwritable("a value that is neither text, number nor boolean")
    return f"({' || '.join(parts)})" if parts else "false"


def _key(key: Any, where: str) -> _Key:
    """What a key asks."""
    match = _VARIABLE.fullmatch(str(key).strip()) if type(key) is str else None
    if match is None:
        raise Unwritable(f"{where}: the key {key!r} is no variable")
    text, default = match[1].strip(), None
    if with_default := _DEFAULT.fullmatch(text):
        text, default = with_default[1].strip(), _literal(with_default[2], where)
    if text in _OTHERS:
        return _Key(_OTHERS[text])
    path = _PATH.fullmatch(text)
    if path is None:
        raise Unwritable(f"{where}: the variable {match[0]}")
    return _walked(path["root"], path["rest"], default)


def _literal(text: str, where: str) -> str:
    inner = text[1:-1]
    if text.startswith("'"):
        return written(inner)
    if not re.fullmatch(r"-?[0-9]+|true|false|null|\"[^\"]*\"|\[\]|\{\}", inner):
        raise Unwritable(f"{where}: the default {text}")
    return inner


def _walked(root: str, rest: str, default: str | None) -> _Key:
    """The way to a value: the first step is certain, each other may lead nowhere."""
    at, is_first, is_list = root, True, False
    for step in _STEP.finditer(rest):
        if step[3] or step[4]:
            items = at if is_first else f"{at}.orValue([])"
            if step[4]:
                lists = [f"{at}.?{one.strip()}.orValue([])" for one in step[4].split(",")]
                items = f"({' + '.join(lists)})"
            return _listed(items, rest[step.end() :], default)
        name = step[1] or step[2]
        if is_first and step[1] and root != "e":
            at, is_first = f"{at}.{name}", False
            continue
        at = f"{at}.?{name}" if step[1] else f"{at}[?{written(name)}]"
        is_first, is_list = False, True
    if not is_list:
        return _Key(at)
    return _Key(f"{at}.orValue({default if default is not None else 'null'})")


def _listed(items: str, inner: str, default: str | None) -> _Key:
    """The values of a list, by the way from each item to them."""
    if not inner:
        return _Key(items, is_list=True, default=default)
    if inner == _KEYS:
        return _Key(items, True, "e", default)
    if _KEYS in inner:
        raise Unwritable("the keys of what is no item of a list")
    value = _walked("e", inner, None)
    if value.inner or (value.is_list and value.value.startswith("(")):
        raise Unwritable("a list within a list within a list")
    if value.is_list:
        return _Key(items, True, value.value, default)
    return _Key(f"{items}.filter(e, {_there(inner)}).map(e, {value.value})", True, "", default)


def _there(inner: str) -> str:
    names = [step[1] or step[2] for step in _STEP.finditer(inner)]
    return f"e.?{'.?'.join(names)}.hasValue()" if all(map(str.isidentifier, names)) else "true"
