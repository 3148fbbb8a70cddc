"""Regular expressions with RE2's syntax and meaning, compiled once and kept.

Every pattern is RE2's: linear time, no backtracking. A search through the
binding costs about 12 µs, though, where Python's ``re`` needs 1 µs, so a
pattern from a small sublanguage that means the same to both is also given to
``re``, for subjects so short that even the worst backtracking is bounded.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any, Final

import re2

from webhook.golang.strings import from_utf8, utf8
from webhook.rego.errors import BuiltinError
from webhook.rego.run.weight import charge
from webhook.values import dataclass

CACHED: Final = 512
"""Patterns kept; OPA keeps 100 for each process."""

MAX_NESTING: Final = 1000
"""Groups within groups: regexp/syntax's maxHeight."""

MAX_TEXT: Final = 1_000_000
"""Characters of a pattern: of more parts RE2 writes thousands of lines to stderr."""

STEPS_AN_INSTRUCTION: Final = 6
"""Of compiling, which is 0.1 to 0.35 µs for each instruction that comes of it."""

TOO_LARGE_STEPS: Final = 700_000
"""Until RE2 gives up on a pattern that is too large: 35 ms, of nine characters, too."""

SHORT: Final = 256
"""Longest subject for ``re``: its square is the worst case, 65,536 steps or half a millisecond."""

LARGE: Final = 2000
"""Instructions of RE2's from which on its automaton may not fit into the memory that it has (of
5,000 it did not): each byte of a subject is then held against all instructions."""

LOOKS_A_STEP: Final = 20
"""RE2 holds a byte against so many instructions in a step of 50 ns."""

GROUPS_A_LOOK: Final = 4
"""A search for the spans of groups copies the spans found so far at each look. With 900 optional
groups, 3,600 instructions, a byte took 580 ns for each instruction, which is 230 times 2.5.
"""

_OPTIONS: Final = re2.Options()
_OPTIONS.log_errors = False

_WITHOUT_GROUPS: Final = re2.Options()
_WITHOUT_GROUPS.log_errors = False
_WITHOUT_GROUPS.never_capture = True

MAX_CHOICES: Final = 16
"""Most ways through alternatives and optional parts for ``re``, which may try them all."""

# RE2 and Go name the same faults differently.
_FAULTS: Final = {
    "missing ]": "missing closing ]",
    "missing )": "missing closing )",
    "unexpected )": "unexpected )",
    "trailing \\": "trailing backslash at end of expression",
    "no argument for repetition operator": "missing argument to repetition operator",
    "invalid repetition size": "invalid repeat count",
    "bad repetition operator": "invalid nested repetition operator",
    "invalid perl operator": "invalid or unsupported Perl syntax",
    "invalid named capture group": "invalid named capture",
    "pattern too large - compile failed": "expression too large",
}


@dataclass(frozen=True, slots=True)
class Pattern:
    """A compiled pattern. ``simple`` searches a subject of at most :data:`SHORT` characters."""

    text: str
    compiled: Any
    simple: Callable[[str], Any] | None
    instructions: int
    """RE2's, where they are more than :data:`LARGE`; else 0."""
    searcher: Any
    """The compiled pattern without groups; with groups, a large pattern would log an error for
    nothing."""

    def steps_in(self, size: int, *, spans: bool = False) -> int:
        """Returns the steps of a search in ``size`` bytes, from the number of instructions.

        With ``spans`` the search also finds the spans of groups.
        """
        groups = 1 + self.compiled.groups // GROUPS_A_LOOK if spans and self.instructions else 1
        return size * self.instructions * groups // LOOKS_A_STEP

    def found_in(self, subject: str) -> bool:
        """Whether some part of the subject matches."""
        if self.simple is not None and len(subject) <= SHORT:
            return self.simple(subject) is not None
        return self.searcher.search(utf8(subject)) is not None

    def all_in(self, raw: bytes, limit: int = -1) -> Iterator[list[tuple[int, int]]]:
        """Matches as spans of the whole and of each group, as Go's FindAll chooses them.

        An empty match right after another match does not count.
        """
        at, before, count = 0, -1, 0
        while count != limit and at <= len(raw):
            match = self.compiled.search(raw, at)
            if match is None:
                return
            start, end = match.span()
            accepted = True
            if end == at:
                accepted = start != before
                at += _rune_width(raw, at)
            else:
                at = end
            before = end
            if accepted:
                count += 1
                yield [match.span(group) for group in range(self.compiled.groups + 1)]


def _rune_width(raw: bytes, at: int) -> int:
    width = 1
    while at + width < len(raw) and width < 4 and raw[at + width] & 0xC0 == 0x80:
        width += 1
    return width


@lru_cache(maxsize=CACHED)
def pattern(text: str) -> Pattern:
    """Compile; raises BuiltinError with Go's message for a pattern that is none.

    The evaluation that needs a large pattern first pays for compiling it: eight characters may take
    40 ms.
    """
    if len(text) > MAX_TEXT:
        raise BuiltinError("error parsing regexp: expression too large")
    simple = _simple(text)
    if text.count("(") > MAX_NESTING and _nesting(text) > MAX_NESTING:
        raise BuiltinError(f"error parsing regexp: expression nests too deeply: `{text}`")
    if re.search(r"(?<!\\)(?:\\\\)*\\C", text):  # one byte of a character: RE2 only
        raise BuiltinError("error parsing regexp: invalid escape sequence: `\\C`")
    try:
        compiled = re2.compile(utf8(text), _OPTIONS)
    except re2.error as error:
        fault = _go_fault(text, error)
        if fault.startswith("expression too large"):
            charge(TOO_LARGE_STEPS)
        raise BuiltinError(f"error parsing regexp: {fault}") from None
    instructions = compiled.programsize if compiled.programsize > LARGE else 0
    has_groups = instructions and compiled.groups
    if instructions:
        charge(instructions * STEPS_AN_INSTRUCTION)
    return Pattern(
        text,
        compiled,
        None if simple is None else re.compile(simple, re.ASCII).search,
        instructions,
        re2.compile(utf8(text), _WITHOUT_GROUPS) if has_groups else compiled,
    )


def _nesting(text: str) -> int:
    """The deepest nesting of groups; brackets in classes may count too much, never too little."""
    depth = deepest = 0
    for part in re.findall(r"\\.|[()]", text, re.DOTALL):
        depth += (part == "(") - (part == ")")
        deepest = max(deepest, depth)
    return deepest


def _go_fault(text: str, error: Exception) -> str:
    raw = error.args[0]
    message = from_utf8(raw) if isinstance(raw, bytes) else str(raw)
    for fault, name in _FAULTS.items():
        if message.startswith(fault):
            part = message[len(fault) :].removeprefix(": ")
            if fault == "invalid perl operator" and re.fullmatch(r"\(\?[a-zA-Z]*", part):
                return f"missing closing ): `{text}`"  # flags without an end
            return f"{name}: `{part}`"
    name, _, part = message.partition(": ")
    return f"{name}: `{part}`"


def quote_meta(text: str) -> str:
    """Returns the pattern that matches exactly this text: Go's ``regexp.QuoteMeta``."""
    return re.sub(r"[\\.+*?()|\[\]{}^$]", lambda match: "\\" + match[0], text)


# --- the sublanguage that `re` may take ------------------------------------------------------

# One character or class. Classes have ASCII members and ranges, no nested brackets, and no
# escapes but of punctuation and \d \w, which mean the same under re.ASCII.
_ATOM: Final = re.compile(
    r"""(?P<one> [A-Za-z0-9 _/:;,@=<>~%&'"!\#\-] | \\[.\-/+*?()|\[\]{}^$_:,@=] | \\[dw] | \.
        | \(\?s:\.\)
        | \[\^?(?:[A-Za-z0-9](?:-[A-Za-z0-9])? | [ _/:;,@=<>%'"!\#.+*?()}$] | \\[.\-/\]\[\\^dw]
            )+-?\] )
    (?P<times> [*+?](?!\?) | \{\d{1,3}\} | )""",
    re.VERBOSE | re.ASCII,
)
_NO_REPEAT: Final = re.compile(r"[*+?{]")
_OPENING: Final = re.compile(r"\((?:\?:)?(?!\?)")
_UNBOUNDED: Final = re.compile(r"(?<![\\(])[*+]")
_WORD: Final = r"(?:[A-Za-z0-9_/:,@=.\-]|\\[.\-/])+"
_WORDS: Final = re.compile(rf"\((?:\?:)?{_WORD}(?:\|{_WORD}){{0,15}}\)")


def _simple(text: str) -> str | None:
    """Returns the pattern for ``re``; None if it is outside the sublanguage."""
    if len(text) > SHORT or not text.isascii():
        return None
    at, unbounded, choices, parts = 0, 0, 1, []
    body = text
    anchored = body.startswith("^")
    if anchored:
        parts.append("^")
        at = 1
    end = len(body)
    closed = body.endswith("$") and not body.endswith("\\$")
    if closed:
        end -= 1
    while at < end:
        match = _ATOM.match(body, at, end)
        if match is None:
            group = _alternatives(body, at, end) or _optional(body, at, end)
            if group is None:
                return None
            unbounded += len(_UNBOUNDED.findall(group))
            choices *= (1 + group.count("|")) * 2 ** group.count("?")
            parts.append(group)
            at += len(group)
        else:
            unbounded += match["times"] in {"*", "+"}
            choices *= 2 if match["times"] == "?" else 1
            parts.append(match[0])
            at = match.end()
        if _NO_REPEAT.match(body, at, end):
            return None
    # Starting anywhere costs one power of the subject's length, each unbounded run another, and
    # alternatives multiply: twenty of `a?` would be a million ways.
    if unbounded + (not anchored) > 2 or choices > MAX_CHOICES or _reversed_range(text):
        return None
    return "".join(parts) + (r"\Z" if closed else "")


def _alternatives(body: str, at: int, end: int) -> str | None:
    """Returns a group ``(one|two)`` of plain words and dots, not repeated."""
    match = _WORDS.match(body, at, end)
    return match[0] if match else None


def _optional(body: str, at: int, end: int) -> str | None:
    r"""``(\.[0-9]+)?``: a group without groups that occurs once or not at all."""
    opening = _OPENING.match(body, at, end)
    if opening is None:
        return None
    at = start = opening.end()
    while at < end and body[at] != ")":
        match = _ATOM.match(body, at, end)
        if match is None:
            return None
        at = match.end()
    if at == start or body[at : at + 2] != ")?":
        return None
    return f"{opening[0]}{body[start:at]})?"


def _reversed_range(text: str) -> bool:
    return any(low > high for low, high in re.findall(r"([A-Za-z0-9])-([A-Za-z0-9])", text))
