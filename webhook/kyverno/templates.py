"""Conditions of Kyverno (``deny``, ``preconditions``) as expressions of CEL."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from webhook.kyverno.patterns import Unwritable, text_matches, written

if TYPE_CHECKING:
    from webhook.api.shapes import Json

_VARIABLE: Final = re.compile(r"\{\{\s*(.+?)\s*\}\}")
_PATH: Final = re.compile(
    r"request\.(?P<root>object|oldObject)(?P<rest>(?:\.[A-Za-z_]\w*|\.\"[^\"]+\"|\[\])*)"
)
_STEP: Final = re.compile(r"\.([A-Za-z_]\w*)|\.\"([^\"]+)\"|(\[\])")
_DEFAULT: Final = re.compile(r"(.+?)\s*\|\|\s*(`.*?`|'.*?')")
_OTHERS: Final = {
    "request.operation": "request.operation",
    "request.userInfo.username": "request.userInfo.?username.orValue('')",
    "request.namespace": "request.?namespace.orValue('')",
    "request.name": "request.?name.orValue('')",
}
_COMPARED: Final = {
    "GreaterThan": ">",
    "GreaterThanOrEquals": ">=",
    "LessThan": "<",
    "LessThanOrEquals": "<=",
}


def condition_of(condition: Json, where: str) -> str:
    """A condition; raises :class:`~webhook.kyverno.patterns.Unwritable`."""
    operator = str(condition.get("operator") or "")
    is_list, key = _key(condition.get("key"), where)
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
        held = _is_one(key, [value])
        return held if operator.startswith("Equal") else f"!({held})"
    if operator in {"In", "AnyIn"}:
        return f"{key}.exists(e, {_is_one('e', values)})" if is_list else _is_one(key, values)
    if operator == "AllIn":
        return f"{key}.all(e, {_is_one('e', values)})" if is_list else _is_one(key, values)
    if operator in {"NotIn", "AllNotIn"}:
        within = f"{key}.exists(e, {_is_one('e', values)})" if is_list else _is_one(key, values)
        return f"!({within})"
    if operator == "AnyNotIn":
        if is_list:
            return f"{key}.exists(e, !({_is_one('e', values)}))"
        return f"!({_is_one(key, values)})"
    raise Unwritable(f"{where}: operator {operator}")


def _is_one(key: str, values: list[Any]) -> str:
    parts = []
    for value in values:
        if type(value) is str:
            parts.append(f"({text_matches(f'string({key})', value)})")
        elif type(value) in {bool, int, float} or value is None:
            parts.append(f"({key} == {written(value)})")
        else:
            raise Unwritable("a value that is neither text, number nor boolean")
    return f"({' || '.join(parts)})" if parts else "false"


def _key(key: Any, where: str) -> tuple[bool, str]:
    """Whether a key is a list, and the expression of it."""
    match = _VARIABLE.fullmatch(str(key).strip()) if type(key) is str else None
    if match is None:
        raise Unwritable(f"{where}: the key {key!r} is no variable")
    text, default = match[1].strip(), None
    if with_default := _DEFAULT.fullmatch(text):
        text, default = with_default[1].strip(), _literal(with_default[2], where)
    if text in _OTHERS:
        return False, _OTHERS[text]
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


def _walked(root: str, rest: str, default: str | None) -> tuple[bool, str]:
    """The way to a value: the first step is certain, each other may lead nowhere."""
    at, is_first, is_list = root, True, False
    steps = list(_STEP.finditer(rest))
    for number, step in enumerate(steps):
        if step[3]:
            inner = "".join(one[0] for one in steps[number + 1 :])
            items = at if is_first else f"{at}.orValue([])"
            if not inner:
                return True, items
            nested, value = _walked("e", inner, None)
            if nested:
                raise Unwritable("a list within a list")
            return True, f"{items}.filter(e, {_there(inner)}).map(e, {value})"
        name = step[1] or step[2]
        if is_first and step[1] and root != "e":
            at, is_first = f"{at}.{name}", False
            continue
        at = f"{at}.?{name}" if step[1] else f"{at}[?{written(name)}]"
        is_first, is_list = False, True
    if not is_list:
        return False, at
    return False, f"{at}.orValue({default if default is not None else 'null'})"


def _there(inner: str) -> str:
    names = [step[1] or step[2] for step in _STEP.finditer(inner)]
    return f"e.?{'.?'.join(names)}.hasValue()" if all(map(str.isidentifier, names)) else "true"
