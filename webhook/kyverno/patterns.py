"""Translates Kyverno's patterns (``validate.pattern``) to CEL expressions."""

from __future__ import annotations

import json
import re
from dataclasses import field
from typing import Any, Final

from webhook.cel.syntax.identifiers import is_identifier
from webhook.values import dataclass


class Unwritable(Exception):
    """A part of a rule that cannot be translated to CEL; the message names it."""


@dataclass(frozen=True, slots=True)
class HeldPattern:
    """A condition that must hold, and the conditions without which the rule is skipped."""

    expression: str
    conditions: list[str] = field(default_factory=list)


_ANCHOR: Final = re.compile(r"([=X^<+]?)\((.+)\)")
_QUANTITY: Final = re.compile(r"-?[0-9]+(\.[0-9]+)?([kMGTPE]i?|m|Ki)")
_NUMBER: Final = re.compile(r"-?[0-9]+(\.[0-9]+)?")
_DURATION: Final = re.compile(r"([0-9]+(\.[0-9]+)?(h|m|s|ms|us|ns))+")
RANGE: Final = re.compile(r"(-?[0-9]+(?:\.[0-9]+)?[A-Za-z]*)(!?)-(-?[0-9]+(?:\.[0-9]+)?[A-Za-z]*)")
_NEVER_LISTS: Final = ("replicas", "seconds", "class")
_OPERATORS: Final = (">=", "<=", ">", "<", "!")


def written(value: Any) -> str:
    """Returns a value as a CEL literal."""
    return json.dumps(value, ensure_ascii=False)


def pattern_of(pattern: dict[str, Any], at: str = "object") -> HeldPattern:
    """Translates the pattern of an object or of a named value; raises :class:`Unwritable`."""
    writer = _Writer()
    expression = writer.mapping(pattern, at, is_plain=True)
    return HeldPattern(expression, writer.conditions)


class _Writer:
    def __init__(self) -> None:
        self.conditions: list[str] = []
        """The conditions of anchors outside of lists; the rule is skipped unless all hold."""
        self._names = 0

    def mapping(
        self, pattern: dict[str, Any], at: str, *, is_plain: bool, is_asked: bool = False
    ) -> str:
        """Translates the pattern of a map.

        ``is_plain``: no list and no condition is above it. ``is_asked``: it is within a condition,
        and conditions below it are parts of that condition.
        """

        def value_at(value: Any, place: str) -> str:
            return self._value(value, place, is_plain=is_plain, is_asked=is_asked)

        conditions, checks = [], []
        for key, value in pattern.items():
            match = _ANCHOR.fullmatch(str(key))
            anchor, name = (match[1] or "()", match[2]) if match else ("", str(key))
            if any(mark in name for mark in "*?"):
                raise Unwritable(f"a pattern of keys: {key}")
            there, part = _member(at, name)
            outer = len(self.conditions)
            if anchor == "":
                if value is None:
                    checks.append(f"(!{there} || {part} == null)")
                else:
                    checks.append(f"{there} && {value_at(value, part)}")
            elif anchor == "=":
                checks.append(f"(!{there} || {value_at(value, part)})")
            elif anchor == "X":
                checks.append(f"!{there}")
            elif anchor == "^":
                checks.append(f"{there} && {self._some(value, part, key)}")
            elif anchor == "()":
                condition = self._value(value, part, is_plain=False, is_asked=True)
                conditions.append(f"{there} && {condition}")
            else:
                raise Unwritable(f"the anchor {anchor} of {key}")
            # A condition below an absent key skips nothing.
            inner = self.conditions[outer:]
            self.conditions[outer:] = [f"(!{there} || ({text}))" for text in inner]
        held = " && ".join(f"({check})" for check in checks) or "true"
        if not conditions:
            return held
        condition = " && ".join(f"({text})" for text in conditions)
        if is_asked:
            return f"(({condition}) && ({held}))"
        if is_plain:
            self.conditions.append(condition)
            return held
        return f"(!({condition}) || ({held}))"

    def _value(self, value: Any, at: str, *, is_plain: bool, is_asked: bool = False) -> str:
        if type(value) is dict:
            return self.mapping(value, at, is_plain=is_plain, is_asked=is_asked)
        if type(value) is list:
            if len(value) != 1:
                raise Unwritable("a list of several patterns")
            variable = self._variable()
            conditional = self._anchored(value[0], at) if is_plain or is_asked else ""
            if conditional and is_plain and not any(self.conditions):
                self.conditions.append(f"{_reached(at)} && {conditional}")
            every = f"{at}.all({variable}, {self._value(value[0], variable, is_plain=False)})"
            return f"({conditional} && {every})" if conditional and is_asked else every
        name = at.rpartition(".")[2]
        if type(value) is str and name.endswith("s") and not name.lower().endswith(_NEVER_LISTS):
            # Kyverno tests each item of a list against a scalar pattern. Names of possible lists
            # end in s.
            variable = self._variable()
            every = f"{at}.all({variable}, {scalar_matches(variable, value)})"
            return f"(type({at}) == list ? {every} : {scalar_matches(at, value)})"
        return scalar_matches(at, value)

    def _anchored(self, pattern: Any, at: str) -> str:
        """Returns the condition that an item meets the anchors of a list's pattern.

        Without such an item the rule is skipped. Empty if the pattern has no anchors.
        """
        anchors = {
            match[2]: value
            for key, value in (pattern.items() if type(pattern) is dict else ())
            if (match := _ANCHOR.fullmatch(str(key))) and not match[1]
        }
        if not anchors:
            return ""
        variable = self._variable()
        parts = []
        for name, value in anchors.items():
            there, part = _member(variable, name)
            parts.append(f"{there} && {self._value(value, part, is_plain=False, is_asked=True)}")
        return f"{at}.exists({variable}, {' && '.join(f'({part})' for part in parts)})"

    def _some(self, value: Any, at: str, key: Any) -> str:
        if type(value) is not list or len(value) != 1:
            raise Unwritable(f"{key} without a list of one pattern")
        variable = self._variable()
        return f"{at}.exists({variable}, {self._value(value[0], variable, is_plain=False)})"

    def _variable(self) -> str:
        self._names += 1
        return f"e{self._names}"


def _member(at: str, name: str) -> tuple[str, str]:
    """Returns the condition that a map has a key, and the expression of its value."""
    if is_identifier(name):
        return f"has({at}.{name})", f"{at}.{name}"
    return f"({written(name)} in {at})", f"{at}[{written(name)}]"


def _reached(at: str) -> str:
    """Returns the condition that every map on the path to a place is present."""
    names = at.split(".")
    steps = [f"has({'.'.join(names[:end])})" for end in range(2, len(names) + 1)]
    if "[" in at:
        raise Unwritable("a condition of a list below a name that CEL has to quote")
    return " && ".join(steps) or "true"


def scalar_matches(at: str, pattern: Any) -> str:
    """Returns the condition that a value matches a scalar pattern."""
    if type(pattern) is bool:
        return f"{at} == {written(pattern)}"
    if type(pattern) in {int, float}:
        return f"string({at}) == {written(str(pattern))}"
    if pattern is None:
        return f"{at} == null"
    alternatives = []
    for text in str(pattern).split("|"):
        parts = [_one_matches(at, part.strip()) for part in text.strip().split("&")]
        alternatives.append(" && ".join(parts))
    if len(alternatives) == 1:
        return alternatives[0]
    return f"({' || '.join(f'({alternative})' for alternative in alternatives)})"


def _one_matches(at: str, text: str) -> str:
    if match := RANGE.fullmatch(text):
        low, high = _compared(at, ">=", match[1]), _compared(at, "<=", match[3])
        return f"!({low} && {high})" if match[2] else f"({low} && {high})"
    for operator in _OPERATORS:
        if text.startswith(operator):
            rest = text.removeprefix(operator).strip()
            if operator == "!":
                return f"!({text_matches(f'string({at})', rest)})"
            return _compared(at, operator, rest)
    return text_matches(f"string({at})", text)


def _compared(at: str, operator: str, text: str) -> str:
    if _NUMBER.fullmatch(text):
        if re.fullmatch(r"-?[0-9]+", text):
            return f"quantity(string({at})).compareTo(quantity({written(text)})) {operator} 0"
        return f"double({at}) {operator} {float(text)}"
    if _QUANTITY.fullmatch(text):
        return f"quantity(string({at})).compareTo(quantity({written(text)})) {operator} 0"
    if _DURATION.fullmatch(text):
        return f"duration({at}) {operator} duration({written(text)})"
    raise Unwritable(f"{operator}{text} is compared as neither number, quantity nor duration")


def text_matches(at: str, pattern: str) -> str:
    """Returns the condition that a text matches a pattern with ``*`` and ``?``."""
    if "{{" in pattern or "$(" in pattern:
        raise Unwritable(f"a variable: {pattern}")
    if pattern == "*":
        return "true"
    if pattern == "?*":
        return f"{at} != ''"
    if not any(mark in pattern for mark in "*?"):
        return f"{at} == {written(pattern)}"
    if re.fullmatch(r"[^*?]+\*", pattern):
        return f"{at}.startsWith({written(pattern[:-1])})"
    if re.fullmatch(r"\*[^*?]+", pattern):
        return f"{at}.endsWith({written(pattern[1:])})"
    if re.fullmatch(r"\*[^*?]+\*", pattern):
        return f"{at}.contains({written(pattern[1:-1])})"
    # CEL's regular expressions are RE2: each special character is escaped.
    text = "".join(
        ".*" if mark == "*" else "." if mark == "?" else re.sub(r"([^\w\s/:@-])", r"\\\1", mark)
        for mark in pattern
    )
    return f"{at}.matches({written(f'^{text}$')})"
