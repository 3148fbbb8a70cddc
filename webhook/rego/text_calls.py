"""Built-ins on texts at places as abstract values: tests of the texts.

A test of a text at a place is not recorded before something looks at its result. So of
``parts := split(image, "/"); not contains(parts[count(parts) - 1], ":")`` only this is read: how many
parts there are, and which of them have a colon.
"""

from __future__ import annotations

from operator import methodcaller
from typing import TYPE_CHECKING, Final

from webhook.reads.abstract import Abstract, AbstractReader, tested_text, united
from webhook.reads.read_set import EVERY_KEY
from webhook.reads.text_tests import COUNT, IS_TEXT, TextStep, kind_after
from webhook.rego.known_calls import PATTERNS, known_texts, simple_pattern

if TYPE_CHECKING:
    from collections.abc import Iterable

    from webhook.rego.run.patterns import Pattern

_AFFIXES: Final = {
    "strings.any_prefix_match": "startswith",
    "strings.any_suffix_match": "endswith",
}


def of_texts(reader: AbstractReader, name: str, args: tuple[Abstract, ...]) -> Abstract | None:
    """Returns the result of a built-in that tests texts at places; None if these are read whole."""
    if name == "count":
        return _tested(reader, args[0], [COUNT]) if args[0].tested and not args[0].places else None
    if name in _AFFIXES:
        return _of_affixes(reader, _AFFIXES[name], *args)
    if name in ("equal", "neq"):
        return _of_equal(reader, *args) or _of_equal(reader, *reversed(args))
    at = 1 if name in PATTERNS else 0
    steps = _steps(name, known_texts(args[1 - at])) if len(args) == 2 else None
    return None if steps is None else _tested(reader, args[at], steps)


def _of_affixes(
    reader: AbstractReader, called: str, value: Abstract, affixes: Abstract
) -> Abstract | None:
    """Tests each affix at once. Which of them are in the list is known, or was read before."""
    texts = known_texts(affixes)
    is_list = affixes.container and not (affixes.places or affixes.anything or affixes.scalars)
    if texts is None and is_list:
        parts = [known_texts(part) for part in affixes.parts]
        if None not in parts:
            texts = [text for part in parts for text in part or ()]
    steps = None if texts is None else _steps(called, texts)
    result = None if steps is None or value.tested else _tested(reader, value, steps)
    if result is not None:
        reader.shallow(result)
        for place in value.places:  # It may be a list of texts.
            reader.record.whole((*place, EVERY_KEY))
    return result


def _of_equal(reader: AbstractReader, value: Abstract, beside: Abstract) -> Abstract | None:
    """Tests each known text at once."""
    texts = known_texts(beside)
    result = None if texts is None else _tested(reader, value, [_equal_to(text) for text in texts])
    if result is not None:
        reader.shallow(result)
    return result


def _tested(reader: AbstractReader, value: Abstract, steps: Iterable[TextStep]) -> Abstract | None:
    """Returns the results of these steps after a value; None if it is no text at a place.

    Only that it is a text is recorded at once: else the call has no result, looked at or not.
    """
    texts = value.texts
    results = [
        tested_text(place, (*test, step))
        for place, test in texts
        for step in steps
        if kind_after(test) == step.takes and place[0] == "input"
    ]
    if not results or len(results) < len(texts):
        return None
    for place in value.places:
        reader.tested(place, (IS_TEXT,))
    return united(results)


def _steps(name: str, operands: list[str] | None) -> list[TextStep] | None:
    """Returns the steps of a call with each of these operands; None if it is no test."""
    if operands is None:
        return None
    if name in PATTERNS:
        patterns = [simple_pattern(text) for text in operands]
        return [_matches(each) for each in patterns if each] if all(patterns) else None
    if name == "split" and all(operands):
        return [_split_at(text) for text in operands]
    if name in ("contains", "endswith", "startswith"):
        return [_with_operand(name, text) for text in operands]
    return None


def _matches(compiled: Pattern) -> TextStep:
    return TextStep("regex.match", compiled.text, "text", "scalar", compiled.found_in)


def _split_at(separator: str) -> TextStep:
    return TextStep("split", separator, "text", "texts", methodcaller("split", separator))


def _with_operand(name: str, operand: str) -> TextStep:
    called = "__contains__" if name == "contains" else name
    return TextStep(name, operand, "text", "scalar", methodcaller(called, operand))


def _equal_to(operand: str) -> TextStep:
    return TextStep("equal", operand, "text", "scalar", operand.__eq__)
