"""Built-ins on values that are known while policies are read: their results are known, too."""

from __future__ import annotations

import operator
from itertools import product
from typing import TYPE_CHECKING, Any, Final

from webhook.reads.abstract import EMPTY, Abstract, scalar, united
from webhook.rego.errors import BuiltinError
from webhook.rego.run.patterns import Pattern, pattern

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

CHOICES_MAX: Final = 32
"""The most known texts of a call. Of more, texts are read whole: a new text is tested by all."""

_TEXTS: Final[dict[str, Callable[[str, str], Any]]] = {
    "contains": operator.contains,
    "endswith": str.endswith,
    "startswith": str.startswith,
    "trim_prefix": str.removeprefix,
    "trim_suffix": str.removesuffix,
}
"""Built-ins of two texts, done while policies are read."""

_ORDERED: Final[dict[str, Callable[[Any, Any], bool]]] = {
    "gt": operator.gt,
    "gte": operator.ge,
    "lt": operator.lt,
    "lte": operator.le,
}
_CASES: Final[dict[str, Callable[[str], str]]] = {"lower": str.lower, "upper": str.upper}
PATTERNS: Final = frozenset({"re_match", "regex.match"})
_KINDS: Final = {"NoneType": "null", "bool": "boolean", "number": "number", "str": "string"}
_KIND_TESTS: Final = frozenset(
    f"is_{kind}" for kind in ("array", "object", "set", *_KINDS.values())
)


def of_known(name: str, args: tuple[Abstract, ...]) -> Abstract | None:
    """Returns the result of a built-in of known texts or values; None for others."""
    if name not in _TEXTS:
        return _of_values(name, args)
    operands = [known_texts(arg) for arg in args]
    return _each_of(operands, lambda texts: _TEXTS[name](*texts))


def joined(separator: Abstract, items: Iterable[Abstract]) -> Abstract | None:
    """Returns the result of ``concat`` with an array of these items; None if a text is unknown."""
    operands = [known_texts(part) for part in (separator, *items)]
    return _each_of(operands, lambda texts: texts[0].join(texts[1:]))


def _each_of(
    operands: list[list[str] | None], result: Callable[[tuple[str, ...]], Any]
) -> Abstract | None:
    known = [texts for texts in operands if texts]
    if len(known) < len(operands):
        return None
    count = 1
    for texts in known:
        count *= len(texts)
    if count > CHOICES_MAX:
        return None
    return united(scalar(result(texts)) for texts in product(*known))


def known_texts(value: Abstract) -> list[str] | None:
    """Returns the possible texts; None if it may be another value, or one of too many."""
    known = value.known
    if not known or len(known) > CHOICES_MAX or any(kind != "str" for kind, _ in known):
        return None
    return sorted(text for _, text in known)


def _of_values(name: str, args: tuple[Abstract, ...]) -> Abstract | None:
    """Returns the result of a built-in of values that are each known; None for others."""
    if name == "count" and args[0] == EMPTY:
        return scalar(0)
    known = [arg.only for arg in args]
    if None in known:
        return None
    kinds, values = [value[0] for value in known if value], [value[1] for value in known if value]
    if name in _KIND_TESTS:
        return scalar(f"is_{_KINDS.get(kinds[0])}" == name)
    if name in _ORDERED and (kinds == ["str", "str"] or {type(value) for value in values} == {int}):
        return scalar(_ORDERED[name](*values))
    if set(kinds) != {"str"}:
        return None
    if name == "count":
        return scalar(len(values[0]))
    if name in _CASES and values[0].isascii():
        return scalar(_CASES[name](values[0]))
    if name in PATTERNS and len(values) == len(("pattern", "text")):
        return _matched(*values)
    return None


def _matched(text: str, subject: str) -> Abstract | None:
    compiled = simple_pattern(text)
    return None if compiled is None else scalar(compiled.found_in(subject))


def simple_pattern(text: str) -> Pattern | None:
    """Returns a pattern; None if its matches must be paid for."""
    try:
        compiled = pattern(text)
    except BuiltinError:
        return None
    return None if compiled.instructions else compiled
