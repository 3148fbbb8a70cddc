"""Regular expressions: RE2's, as everywhere in Kubernetes' CEL."""

from __future__ import annotations

from typing import Final

from webhook.cel.errors import EvaluationError
from webhook.cel.library.registry import form
from webhook.cel.run.meter import Meter
from webhook.golang.strings import from_utf8, utf8
from webhook.rego.errors import BuiltinError
from webhook.rego.run.patterns import GROUPS_A_LOOK, Pattern, pattern

LOOKS_A_UNIT: Final = 40
"""The divisor of a search's cost. Kubernetes' own cost is a tenth for each character, times a
quarter for each character of the pattern. Only large patterns cost more: for others RE2 has an
automaton."""

MAX_PATTERN = 10_000
"""The longest pattern, in characters: RE2 takes too long to compile larger ones."""


def compiled(text: str, prefix: str = "") -> Pattern:
    """Returns a pattern; raises :class:`~webhook.cel.errors.EvaluationError` with Go's message."""
    if len(text) > MAX_PATTERN:
        raise EvaluationError(f"{prefix}error parsing regexp: expression too large")
    try:
        return pattern(text)
    except BuiltinError as error:
        raise EvaluationError(f"{prefix}{error}") from None


def charged_pattern(
    meter: Meter, text: str, expression: str, prefix: str = "", *, spans: bool = True
) -> Pattern:
    """Returns a compiled pattern, and charges a search of the text.

    ``spans`` is whether the search needs the spans of groups.
    """
    meter.charge(1 + len(text) // 10 + len(expression) // 4)
    try:
        regex = compiled(expression, prefix)
    except EvaluationError:
        meter.check()  # RE2 takes 35 ms to reject some patterns as too large.
        raise
    if regex.instructions:
        meter.check()  # A compilation may have taken 40 ms, even of eight characters.
        groups = 1 + regex.compiled.groups // GROUPS_A_LOOK if spans else 1
        meter.charge(len(text) * regex.instructions * groups // LOOKS_A_UNIT)
    return regex


@form("matches", str, str, charges=True)
def matches(meter: Meter, text: str, expression: str) -> bool:
    """Returns whether a part of a text matches."""
    return charged_pattern(meter, text, expression, spans=False).found_in(text)


@form("find", str, str, charges=True)
def find(meter: Meter, text: str, expression: str) -> str:
    """Returns the first match; an empty text if there is none."""
    regex = charged_pattern(meter, text, expression, "Illegal regex: ")
    raw = utf8(text)
    spans = next(regex.all_in(raw, 1), None)
    return "" if spans is None else from_utf8(raw[slice(*spans[0])])


@form("findAll", str, str, charges=True)
@form("findAll", str, str, int, charges=True)
def find_all(meter: Meter, text: str, expression: str, limit: int = -1) -> list[str]:
    """Returns the matches, at most ``limit``."""
    regex = charged_pattern(meter, text, expression, "Illegal regex: ")
    raw = utf8(text)
    texts = []
    spans = regex.all_in(raw, limit if limit >= 0 else -1)
    for span in spans:
        meter.charge(1)
        texts.append(from_utf8(raw[slice(*span[0])]))
    return texts
