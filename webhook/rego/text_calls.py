"""Built-ins on texts as abstract values: of known texts the result, of others tests.

A test of a text at a place is not recorded before something looks at its result. So of
``parts := split(image, "/"); not contains(parts[count(parts) - 1], ":")`` only this is read: how many
parts there are, and which of them have a colon.
"""

from __future__ import annotations

import operator
from itertools import product
from operator import methodcaller
from typing import TYPE_CHECKING, Any, Final

from webhook.reads.abstract import Abstract, AbstractReader, scalar, tested_text, united
from webhook.reads.read_set import EVERY_KEY
from webhook.reads.text_tests import COUNT, TextStep, kind_after
from webhook.rego.errors import BuiltinError
from webhook.rego.run.patterns import Pattern, pattern

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

CHOICES_MAX: Final = 32
"""The most known texts of a call. Of more, texts are read whole: a new text is tested by all."""

_KNOWN: Final[dict[str, Callable[[str, str], Any]]] = {
    "contains": operator.contains,
    "endswith": str.endswith,
    "startswith": str.startswith,
    "trim_prefix": str.removeprefix,
    "trim_suffix": str.removesuffix,
}
"""Built-ins of two texts, done while policies are read."""

_AFFIXES: Final = {
    "strings.any_prefix_match": "startswith",
    "strings.any_suffix_match": "endswith",
}
_PATTERNS: Final = frozenset({"re_match", "regex.match"})


def of_known(name: str, args: tuple[Abstract, ...]) -> Abstract | None:
    """Returns the result of a built-in of known texts; None for others."""
    if name not in _KNOWN:
        return None
    operands = [_known_texts(arg) for arg in args]
    return _each_of(operands, lambda texts: _KNOWN[name](*texts))


def joined(separator: Abstract, items: Iterable[Abstract]) -> Abstract | None:
    """Returns the result of ``concat`` with an array of these items; None if a text is unknown."""
    operands = [_known_texts(part) for part in (separator, *items)]
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


def of_texts(reader: AbstractReader, name: str, args: tuple[Abstract, ...]) -> Abstract | None:
    """Returns the result of a built-in that tests texts at places; None if these are read whole."""
    if name == "count":
        return _tested(args[0], [COUNT]) if args[0].tested and not args[0].places else None
    if name in _AFFIXES:
        return _of_affixes(reader, _AFFIXES[name], *args)
    if name in ("equal", "neq"):
        return _of_equal(reader, *args) or _of_equal(reader, *reversed(args))
    at = 1 if name in _PATTERNS else 0
    steps = _steps(name, _known_texts(args[1 - at])) if len(args) == 2 else None
    return None if steps is None else _tested(args[at], steps)


def _of_affixes(
    reader: AbstractReader, called: str, value: Abstract, affixes: Abstract
) -> Abstract | None:
    """Tests each affix at once. Which of them are in the list is known, or was read before."""
    texts = _known_texts(affixes)
    is_list = affixes.container and not (affixes.places or affixes.anything or affixes.scalars)
    if texts is None and is_list:
        parts = [_known_texts(part) for part in affixes.parts]
        if None not in parts:
            texts = [text for part in parts for text in part or ()]
    steps = None if texts is None else _steps(called, texts)
    result = None if steps is None or value.tested else _tested(value, steps)
    if result is not None:
        reader.shallow(result)
        for place in value.places:  # It may be a list of texts.
            reader.record.whole((*place, EVERY_KEY))
    return result


def _of_equal(reader: AbstractReader, value: Abstract, beside: Abstract) -> Abstract | None:
    """Tests each known text at once."""
    texts = _known_texts(beside)
    result = None if texts is None else _tested(value, [_equal_to(text) for text in texts])
    if result is not None:
        reader.shallow(result)
    return result


def _tested(value: Abstract, steps: Iterable[TextStep]) -> Abstract | None:
    """Returns the results of these steps after a value; None if it is no text at a place."""
    texts = value.texts
    results = [
        tested_text(place, (*test, step))
        for place, test in texts
        for step in steps
        if kind_after(test) == step.takes and place[0] == "input"
    ]
    if not results or len(results) < len(texts):
        return None
    return united(results)


def _known_texts(value: Abstract) -> list[str] | None:
    """Returns the possible texts; None if it may be another value, or one of too many."""
    known = value.known
    if not known or len(known) > CHOICES_MAX or any(kind != "str" for kind, _ in known):
        return None
    return sorted(text for _, text in known)


def _steps(name: str, operands: list[str] | None) -> list[TextStep] | None:
    """Returns the steps of a call with each of these operands; None if it is no test."""
    if operands is None:
        return None
    if name in _PATTERNS:
        patterns = [_simple(text) for text in operands]
        return [_matches(each) for each in patterns if each] if all(patterns) else None
    if name == "split" and all(operands):
        return [_split_at(text) for text in operands]
    if name in ("contains", "endswith", "startswith"):
        return [_with_operand(name, text) for text in operands]
    return None


def _simple(text: str) -> Pattern | None:
    """Returns a pattern; None if its matches must be paid for."""
    try:
        compiled = pattern(text)
    except BuiltinError:
        return None
    return None if compiled.instructions else compiled


def _matches(compiled: Pattern) -> TextStep:
    return TextStep("regex.match", compiled.text, "text", "scalar", compiled.found_in)


def _split_at(separator: str) -> TextStep:
    return TextStep("split", separator, "text", "texts", methodcaller("split", separator))


def _with_operand(name: str, operand: str) -> TextStep:
    called = "__contains__" if name == "contains" else name
    return TextStep(name, operand, "text", "scalar", methodcaller(called, operand))


def _equal_to(operand: str) -> TextStep:
    return TextStep("equal", operand, "text", "scalar", operand.__eq__)
