"""Tests of a text: what a policy finds out about a text that it does not read whole.

A policy that only asks whether an image begins with a registry has the same result for all tags. So
the results of such tests are read in place of the text.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import field
from functools import partial
from typing import Any, Final, TypeAlias

import orjson

from webhook.values import dataclass

TEXT_MAX: Final = 256
"""The longest text that is tested, in characters. A longer text is read whole: tests take time that
nobody limits. Labels and most images are shorter.
"""

TEXTS_KEPT_MAX: Final = 256
"""The most texts whose results are kept, some 100 KiB; beyond this all are dropped."""


@dataclass(frozen=True, slots=True, unsafe_hash=True)
class TextStep:
    """A function of one value with constant operands; it is known by its name and these."""

    name: str
    operand: str
    takes: str
    """The kind of its operand: ``text``, or ``texts`` for a list of these."""
    gives: str
    """The kind of its result: one of these, or ``scalar``."""
    run: Callable[[Any], Any] = field(compare=False)


TextTest: TypeAlias = tuple[TextStep, ...]
"""Steps, from a text on. The steps after :data:`EACH` are done with each item of a list."""


def _same(value: Any) -> Any:
    return value


EACH: Final = TextStep("each", "", "texts", "text", _same)
COUNT: Final = TextStep("count", "", "texts", "scalar", len)
IS_TEXT: Final = TextStep("is_string", "", "text", "scalar", lambda _: True)


def _name(test: TextTest) -> list[tuple[str, str]]:
    return [(step.name, step.operand) for step in test]


def kind_after(test: TextTest) -> str:
    """Returns the kind of a test's result."""
    return test[-1].gives if test else "text"


def outcome(test: TextTest, text: str) -> Any:
    """Returns the result of a test: JSON that a step's result after :data:`EACH` is a list of."""
    value: Any = text
    for at, step in enumerate(test):
        if step is EACH:
            return [outcome(test[at + 1 :], item) for item in value]
        value = step.run(value)
    return value


def outcomes_of(tests: Collection[TextTest]) -> tuple[dict[str, Any], Callable[[str], Any]]:
    """Returns the results that are kept, by text, and what finds those of another text.

    Two results are equal as JSON exactly if the texts give the same in all tests. The result for a
    text that is too long is this text.
    """
    runs = [
        test[0].run if len(test) == 1 else partial(outcome, test)
        for test in sorted(tests, key=_name)
    ]
    known: dict[str, Any] = {}

    def look(text: str) -> Any:
        if len(text) > TEXT_MAX:
            return text
        if len(known) >= TEXTS_KEPT_MAX:
            known.clear()
        try:
            results = orjson.dumps([run(text) for run in runs]).decode()
        except TypeError:  # a part of it is no UTF-8
            return text
        known[text] = [4, results]
        return known[text]

    return known, look
