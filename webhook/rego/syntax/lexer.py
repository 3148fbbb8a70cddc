"""Stage 1: source text to tokens: one pass of one compiled pattern, in time linear in the text.

The result is four parallel lists, which the parser indexes; a token is an integer position in them.
A :class:`SourceLocation` computes its row and column only at their first use.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from typing import Final

from webhook.rego.location import Location
from webhook.rego.syntax import tokens as t

# Quantifiers are possessive throughout, so that a mismatch never backtracks. The preceding
# character decides whether punctuation continues a reference. The last group catches characters
# that start no token, and `\Z` ends the iteration.
_TOKEN: Final = re.compile(
    r"""[ \t\r]*+(?:
      (\n[ \t\r\n]*+)
    | ([A-Za-z_][A-Za-z_\d]*+)
    | ((?<=\S)[.(\[])
    | ([=:!<>]=|[-+*/%&|=<>{}()\[\],:;.])
    | ("[^"\\\n]*+(?:\\[^\n][^"\\\n]*+)*+")
    | ((?>[0-9]++(?:\.[0-9]++)?+(?:[eE][+-]?+[0-9]++)?+)(?![A-Za-z_.]))
    | (`[^`]*+`)
    | (\#[^\n]*+)
    | (\$["`])
    | (.)
    | \Z)""",
    re.VERBOSE | re.DOTALL,
)
_NEWLINE, _IDENT, _ATTACHED, _PUNCTUATION, _STRING, _NUMBER, _RAW, _COMMENT, _TEMPLATE = range(
    1, 10
)

_NUMBER_LIKE: Final = re.compile(
    r"[0-9]++(\.[0-9]*+)?+([eE][+-]?+[0-9]*+)?+([A-Za-z_][A-Za-z_\d]*+)?+"
)
_TEMPLATE_TEXT: Final = re.compile(r'[^"\\\n{]*+(?:\\[^\n][^"\\\n{]*+)*+')
_RAW_TEMPLATE_TEXT: Final = re.compile(r"[^`\\{]*+(?:\\\{?+[^`\\{]*+)*+")
_BAD_ESCAPE: Final = re.compile(r'\\[^\\"/bfnrtu]')
_NO_CHARACTER: Final = re.compile("[\0\ufeff\ud800-\udfff]")
"""A character that no text of Rego has, nor a comment; half a surrogate is a byte of no UTF-8."""

_BAD_TEMPLATE_ESCAPE: Final = re.compile(r'\\[^\\"/bfnrtu{]')


class Source:
    """A text with its file name, and where its lines begin."""

    __slots__ = ("_starts", "file", "text")

    def __init__(self, file: str, text: str) -> None:
        self.file = file
        self.text = text
        self._starts: list[int] | None = None

    def row_and_column(self, offset: int) -> tuple[int, int]:
        """Both counted from 1."""
        starts = self._starts
        if starts is None:
            starts = self._starts = [0]
            find = self.text.find
            at = find("\n")
            while at >= 0:
                starts.append(at + 1)
                at = find("\n", at + 1)
        row = bisect_right(starts, offset)
        at_end = offset >= len(self.text)  # like OPA, the end is where the last character is
        return row, offset - starts[row - 1] + (0 if at_end else 1)


class SourceLocation(Location):
    """A location that computes its row, column and text at first use; most are never used."""

    __slots__ = ("_end", "_source", "_start")
    _source: Source
    _start: int
    _end: int

    # There is one for nearly each token: the base's refusal to change costs as much as the rest of
    # making one. CPython writes slots directly only where both are object's own.
    __setattr__ = object.__setattr__
    __delattr__ = object.__delattr__

    def __init__(self, source: Source, start: int, end: int) -> None:
        self._source = source
        self._start = start
        self._end = end

    def position(self) -> tuple[str, int, int]:
        """Returns the file, row and column."""
        return self._source.file, *self._source.row_and_column(self._start)

    @property
    def file(self) -> str:
        """The name of the source file."""
        return self._source.file

    @property
    def row(self) -> int:
        """The line, from 1."""
        return self._source.row_and_column(self._start)[0]

    @property
    def col(self) -> int:
        """The column in characters, from 1."""
        return self._source.row_and_column(self._start)[1]

    @property
    def offset(self) -> int:
        """The place in the text in characters, from 0."""
        return self._start

    @property
    def text(self) -> str:
        """Returns the text of the token."""
        return self._source.text[self._start : self._end]

    @property
    def end(self) -> int:
        """The offset just after the text."""
        return self._end

    @property
    def source(self) -> Source:
        """Where it stands."""
        return self._source

    def __repr__(self) -> str:
        return f"SourceLocation({self.file!r}, {self.row}, {self.col})"


class Tokens:
    """The tokens of a source in parallel lists; the last token has the kind EOF.

    ``texts`` holds the source text of each token. For an illegal token it holds the error message
    (or an empty string), for a part of a template string its text without delimiters. ``newlines``
    holds the positions of tokens that begin a line, and ``comments`` the comments with their
    locations, the ``#`` excluded.
    """

    __slots__ = ("comments", "ends", "kinds", "newlines", "source", "starts", "texts")

    def __init__(self, source: Source) -> None:
        self.source = source
        self.kinds: list[int] = []
        self.texts: list[str] = []
        self.starts: list[int] = []
        self.ends: list[int] = []
        self.newlines: set[int] = set()
        self.comments: list[tuple[Location, str]] = []


def tokenize(source: Source, keywords: dict[str, int]) -> Tokens:
    """Returns the tokens of ``source`` where these are the keywords; never raises."""
    tokens = Tokens(source)
    text = source.text
    position = 1 if text.startswith("\ufeff") else 0
    open_braces: list[tuple[int, bool]] = []  # of each enclosing template: depth, and whether raw
    while position >= 0:
        position = _run(tokens, position, keywords, open_braces)
    tokens.kinds.append(t.EOF)
    tokens.texts.append("")
    tokens.starts.append(len(text))
    tokens.ends.append(len(text))
    if _NO_CHARACTER.search(text, 1):
        _refuse_characters(tokens)
    return tokens


def _refuse_characters(tokens: Tokens) -> None:
    """Makes tokens, and comments, illegal that hold characters which no text of Rego may have."""
    text, kinds = tokens.source.text, tokens.kinds
    for at, kind in enumerate(kinds):
        faults = _NO_CHARACTER.findall(text, tokens.starts[at], tokens.ends[at])
        if faults and kind != t.ILLEGAL:
            kinds[at], tokens.texts[at] = t.ILLEGAL, "\n".join(map(_complaint, faults))
    for location, comment in tokens.comments:
        faults = _NO_CHARACTER.findall(comment)
        if faults:
            start = location.offset
            at = bisect_right(tokens.starts, start)
            kinds.insert(at, t.ILLEGAL)
            tokens.texts.insert(at, "\n".join(map(_complaint, faults)))
            tokens.starts.insert(at, start)
            tokens.ends.insert(at, start + 1)
            tokens.newlines = {place + (place >= at) for place in tokens.newlines} | {at}


def _run(  # noqa: PLR0912  # the hot loop: one branch for each kind of token
    tokens: Tokens, position: int, keywords: dict[str, int], open_braces: list[tuple[int, bool]]
) -> int:
    """Tokens from ``position`` on, up to where the pattern must start anew, or -1 at the end."""
    source, text = tokens.source, tokens.source.text
    kinds, texts, starts, ends = tokens.kinds, tokens.texts, tokens.starts, tokens.ends
    add_kind, add_text, add_start, add_end = kinds.append, texts.append, starts.append, ends.append
    keyword, punctuation, attached = keywords.get, t.PUNCTUATION, t.ATTACHED
    for match in _TOKEN.finditer(text, position):
        group = match.lastindex
        if group is None:
            return -1
        if group == _NEWLINE:
            tokens.newlines.add(len(kinds))
            continue
        start, end = match.span(group)
        lexeme = text[start:end]
        if group == _IDENT:
            add_kind(keyword(lexeme, t.IDENT))
        elif group == _ATTACHED:
            add_kind(attached[lexeme])
        elif group == _PUNCTUATION:
            kind = punctuation.get(lexeme, t.NEQ)
            if open_braces and (kind in t.BRACES):
                depth, raw = open_braces[-1]
                depth += 1 if kind == t.LBRACE else -1
                if depth == 0:
                    open_braces.pop()
                    add_kind(kind)
                    add_text(lexeme)
                    add_start(start)
                    add_end(end)
                    return _template(tokens, start, end, raw, open_braces)
                open_braces[-1] = (depth, raw)
            add_kind(kind)
        elif group == _STRING:
            if "\\" in lexeme and _BAD_ESCAPE.search(lexeme.replace("\\\\", "")):
                add_kind(t.ILLEGAL)
                lexeme = "illegal escape sequence"
            else:
                add_kind(t.STRING)
        elif group in {_NUMBER, _RAW}:
            add_kind(t.NUMBER if group == _NUMBER else t.RAW_STRING)
        elif group == _COMMENT:
            tokens.comments.append((SourceLocation(source, start, end), lexeme[1:].rstrip("\r")))
            continue
        elif group == _TEMPLATE:
            return _template(tokens, start, end, lexeme == "$`", open_braces)
        else:
            lexeme, end = _illegal(text, start)
            add_kind(t.ILLEGAL)
            add_text(lexeme)
            add_start(start)
            add_end(end)
            return end if end < len(text) else -1
        add_text(lexeme)
        add_start(start)
        add_end(end)
    return -1


def _template(
    tokens: Tokens, start: int, position: int, raw: bool, open_braces: list[tuple[int, bool]]
) -> int:
    """Returns the text of a template string from ``position`` to its next expression or its end."""
    text = tokens.source.text
    match = (_RAW_TEMPLATE_TEXT if raw else _TEMPLATE_TEXT).match(text, position)
    assert match is not None  # it matches the empty text
    lexeme, end = match.group(), match.end()
    closing = text[end : end + 1]
    if closing == "{":
        open_braces.append((1, raw))
        kind = t.RAW_TEMPLATE_PART if raw else t.TEMPLATE_PART
    elif closing and closing in '"`':
        kind = t.RAW_TEMPLATE_END if raw else t.TEMPLATE_END
    else:
        kind, lexeme = t.ILLEGAL, "non-terminated string"
    if not raw and _BAD_TEMPLATE_ESCAPE.search(lexeme.replace("\\\\", "")):
        kind, lexeme = t.ILLEGAL, "illegal escape sequence"
    tokens.kinds.append(kind)
    tokens.texts.append(lexeme)
    tokens.starts.append(start)
    tokens.ends.append(end + 1)
    return end + 1


def _illegal(text: str, start: int) -> tuple[str, int]:
    """Returns the fault of the text at ``start``, which begins no token, and where to go on.

    Complaints are lines; there may be none, for a character that no token has.
    """
    first = text[start]
    if first == '"':
        end = text.find("\n", start)
        return "non-terminated string", len(text) if end < 0 else end
    if first == "`":
        return "non-terminated string", len(text)
    number = _NUMBER_LIKE.match(text, start)
    if number is not None:
        fraction, exponent, letters = number.groups()
        faults = ["expected fraction"] if fraction == "." else []
        if exponent and not exponent[-1].isdigit():
            faults.append("expected exponent")
        if letters:
            faults.append("illegal number format")
        return "\n".join(faults), number.end()
    return _complaint(first), start + 1


def _complaint(character: str) -> str:
    """Returns the fault of a character that no token has, or no text."""
    if "\ud800" <= character <= "\udfff":
        return "illegal utf-8 character"
    complaints = {
        "!": "illegal ! character",
        "$": "illegal $ character",
        "\0": "illegal null character",
        "\ufeff": "illegal byte-order mark",
        "\xa0": "illegal non-breaking space character, use a regular space instead",
    }
    return complaints.get(character, "")
