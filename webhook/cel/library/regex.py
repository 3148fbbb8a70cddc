"""Regular expressions: RE2's, as everywhere in Kubernetes' CEL."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from webhook.cel.errors import EvaluationError
from webhook.cel.library.registry import form
from webhook.golang.strings import from_utf8, utf8
from webhook.rego.errors import BuiltinError
from webhook.rego.run.patterns import GROUPS_A_LOOK, Pattern, pattern

if TYPE_CHECKING:
    from webhook.cel.run.meter import Meter

LOOKS_A_UNIT: Final = 40
"""Of Kubernetes' own cost of a match: a tenth for each character by a quarter for each one of the
pattern. Asked for large patterns alone, of others RE2 has an automaton."""

MAX_PATTERN = 10_000
"""Characters of a pattern: RE2 compiles larger ones for too long."""


def compiled(text: str, prefix: str = "") -> Pattern:
    """A pattern; raises :class:`~webhook.cel.errors.EvaluationError` with Go's words."""
    if len(text) > MAX_PATTERN:
        raise EvaluationError(f"{prefix}error parsing regexp: expression too large")
    try:
        return pattern(text)
    except BuiltinError as error:
        raise EvaluationError(f"{prefix}{error}") from None


def paid(
    meter: Meter, text: str, expression: str, prefix: str = "", *, spans: bool = True
) -> Pattern:
    """Compile a pattern, and pay for a search of the text that finds ``spans`` of groups."""
    meter.charge(1 + len(text) // 10 + len(expression) // 4)
    try:
        regex = compiled(expression, prefix)
    except EvaluationError:
        meter.check()  # RE2 takes 35 ms to find some too large.
        raise
    if regex.instructions:
        meter.check()  # Perhaps it was compiled just now: of eight characters that may take 40 ms.
        groups = 1 + regex.compiled.groups // GROUPS_A_LOOK if spans else 1
        meter.charge(len(text) * regex.instructions * groups // LOOKS_A_UNIT)
    return regex


@form("matches", str, str, charges=True)
def matches(meter: Meter, text: str, expression: str) -> bool:
    """Whether some part of a text matches."""
    return paid(meter, text, expression, spans=False).found_in(text)


@form("find", str, str, charges=True)
def find(meter: Meter, text: str, expression: str) -> str:
    """The first part that matches; empty where none does."""
    searched = paid(meter, text, expression, "Illegal regex: ")
    raw = utf8(text)
    spans = next(searched.all_in(raw, 1), None)
    return "" if spans is None else from_utf8(raw[slice(*spans[0])])


@form("findAll", str, str, charges=True)
@form("findAll", str, str, int, charges=True)
def find_all(meter: Meter, text: str, expression: str, limit: int = -1) -> list[str]:
    """All parts that match, at most so many."""
    searched = paid(meter, text, expression, "Illegal regex: ")
    raw = utf8(text)
    texts = []
    spans = searched.all_in(raw, limit if limit >= 0 else -1)
    for span in spans:
        meter.charge(1)
        texts.append(from_utf8(raw[slice(*span[0])]))
    return texts
