"""Reads quoted texts and heredocs with ``${…}`` and ``%{…}``."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from webhook.parsers.hcl import tree
from webhook.values import dataclass

if TYPE_CHECKING:
    from webhook.parsers.errors import ParseError
    from webhook.parsers.hcl.cursor import Cursor

_ESCAPES: Final = {"n": "\n", "r": "\r", "t": "\t", '"': '"', "\\": "\\"}
_HEREDOC: Final = re.compile(r"<<(-?)([^\W\d][\w-]*)\r?\n")


@dataclass(slots=True)
class _Directive:
    """``%{if}``, ``%{else}``, ``%{endif}``, ``%{for}`` or ``%{endfor}``."""

    word: str
    start: int
    condition: tree.Expression | None = None
    names: tuple[str, ...] = ()


_Piece = str | tree.Expression | _Directive


def quoted(reader: Cursor) -> tree.Expression:
    """Reads a text in quotes."""
    start = reader.at
    reader.at += 1
    pieces: list[_Piece] = []
    trims = False
    while not reader.sees('"'):
        if reader.at >= len(reader.text) or reader.sees("\n"):
            raise reader.fault("Invalid multi-line string: missing closing quote", start)
        trims = _piece(reader, pieces, escapes=True, trims=trims)
    reader.at += 1
    return _template(reader, pieces, start)


def heredoc(reader: Cursor) -> tree.Expression:
    """Reads a text up to a line with its marker."""
    start = reader.at
    match = _HEREDOC.match(reader.text, start)
    if match is None:
        raise reader.fault("Invalid heredoc")
    end = re.compile(rf"^[ \t]*{re.escape(match[2])}[ \t]*\r?(?=\n)", re.MULTILINE).search(
        reader.text, match.end()
    )
    reader.at = match.end()
    if end is None:
        raise reader.fault("Unterminated template string", start)
    pieces: list[_Piece] = []
    trims = False
    while reader.at < end.start():
        trims = _piece(reader, pieces, escapes=False, trims=trims, end=end.start())
    reader.at = end.end() - (1 if reader.text[end.end() - 1 : end.end()] == "\r" else 0)
    if match[1]:
        pieces = _flushed(pieces)
    return _template(reader, pieces, start)


def _piece(
    reader: Cursor, pieces: list[_Piece], *, escapes: bool, trims: bool, end: int = -1
) -> bool:
    """Reads the next piece: a text of one line, or a braced expression or directive.

    ``trims`` says whether the piece before was closed by ``~}``. Returns whether this piece was.
    A trimmed text stays a piece even if it is empty: it has no indent, so nothing is flushed.
    """
    for opening in ("${", "%{"):
        if reader.sees(opening):
            return _braces(reader, pieces, opening)
    kept: list[str] = []
    text = reader.text
    end = len(text) if end < 0 else end
    while reader.at < end:
        character = text[reader.at]
        if reader.sees("${") or reader.sees("%{") or (escapes and character in '"\n'):
            break
        if reader.sees("$${") or reader.sees("%%{"):
            kept.append(text[reader.at + 1 : reader.at + 3])
            reader.at += 3
        elif escapes and character == "\\":
            kept.append(_escape(reader))
        else:
            kept.append(character)
            reader.at += 1
            if character == "\n":
                break
    piece = "".join(kept)
    pieces.append(piece.lstrip() if trims else piece)
    return False


def _escape(reader: Cursor) -> str:
    letter = reader.text[reader.at + 1 : reader.at + 2]
    if letter in _ESCAPES:
        reader.at += 2
        return _ESCAPES[letter]
    match = re.compile(r"\\(?:u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8}))").match(reader.text, reader.at)
    if match is None or int(match[1] or match[2], 16) > 0x10FFFF:
        raise reader.fault("Invalid escape sequence")
    reader.at = match.end()
    return chr(int(match[1] or match[2], 16))


def _braces(reader: Cursor, pieces: list[_Piece], opening: str) -> bool:
    start = reader.at
    reader.at += 2
    if reader.sees("~"):
        reader.at += 1
        if pieces and isinstance(pieces[-1], str):
            pieces[-1] = pieces[-1].rstrip()
    piece = reader.interpolated() if opening == "${" else _directive(reader, start)
    reader.skip_lines()
    trims = reader.sees("~")
    reader.at += trims
    if not reader.sees("}"):
        raise reader.fault("Extra characters after interpolation expression")
    reader.at += 1
    pieces.append(piece)
    return trims


def _directive(reader: Cursor, start: int) -> _Directive:
    reader.within(1)
    reader.skip()
    word = reader.identifier()
    directive = _Directive(word, start)
    reader.skip()
    if word == "if":
        directive.condition = reader.expression()
    elif word == "for":
        directive.names = reader.names("'for' directive")
        reader.skip()
        directive.condition = reader.expression()
    elif word not in {"else", "endif", "endfor"}:
        raise reader.fault("Invalid template directive")
    reader.skip()
    reader.within(-1)
    return directive


def _flushed(pieces: list[_Piece]) -> list[_Piece]:
    """Returns the pieces without their common indent."""
    least: int | None = None
    adjusted: list[int] = []
    newline = True
    for position, piece in enumerate(pieces):
        if newline:
            newline = False
            spaces: int | None = 0
            if isinstance(piece, str):
                trimmed = piece.lstrip()
                if not trimmed and piece.endswith("\n"):
                    spaces = None
                else:
                    spaces = len(piece) - len(trimmed)
                    adjusted.append(position)
            if spaces is not None:
                least = spaces if least is None else min(least, spaces)
        if isinstance(piece, str) and piece.endswith("\n"):
            newline = True
    flushed = list(pieces)
    for position in adjusted:
        piece = flushed[position]
        if isinstance(piece, str):
            flushed[position] = piece[least or 0 :]
    return flushed


def _template(reader: Cursor, pieces: list[_Piece], start: int) -> tree.Expression:
    """Returns the template with nested directives; a single ``${…}`` is its expression."""
    end = reader.at
    if len(pieces) == 1 and isinstance(pieces[0], tree.Expression):
        return tree.Wrapped(start, end, pieces[0])
    parts, rest, _ = _parts(reader, pieces, 0, ())
    if rest < len(pieces):
        raise reader.fault("Unexpected template directive", start)
    return tree.Template(start, end, tuple(parts))


def _parts(
    reader: Cursor, pieces: list[_Piece], at: int, ends: tuple[str, ...]
) -> tuple[list[str | tree.Expression], int, str]:
    """Returns the parts up to one of the closing words, their end, and the word."""
    parts: list[str | tree.Expression] = []
    while at < len(pieces):
        piece = pieces[at]
        if not isinstance(piece, _Directive):
            parts.append(piece)
            at += 1
        elif piece.word in ends:
            return parts, at, piece.word
        elif piece.word == "if":
            inner, at = _conditional(reader, pieces, at, piece)
            parts.append(inner)
        elif piece.word == "for":
            inside, at, _ = _closed(reader, pieces, at + 1, ("endfor",), piece)
            body = tree.Template(piece.start, piece.start, tuple(inside))
            assert piece.condition is not None
            parts.append(tree.Loop(piece.start, piece.start, piece.names, piece.condition, body))
            at += 1
        else:
            raise reader.fault("Unexpected template directive", piece.start)
    return parts, at, ""


def _conditional(
    reader: Cursor, pieces: list[_Piece], at: int, piece: _Directive
) -> tuple[tree.Expression, int]:
    then, at, word = _closed(reader, pieces, at + 1, ("else", "endif"), piece)
    otherwise: list[str | tree.Expression] = []
    if word == "else":
        otherwise, at, _ = _closed(reader, pieces, at + 1, ("endif",), piece)
    assert piece.condition is not None
    conditional = tree.Conditional(
        piece.start,
        piece.start,
        piece.condition,
        tree.Template(piece.start, piece.start, tuple(then)),
        tree.Template(piece.start, piece.start, tuple(otherwise)),
    )
    return conditional, at + 1


def _closed(
    reader: Cursor, pieces: list[_Piece], at: int, ends: tuple[str, ...], opened: _Directive
) -> tuple[list[str | tree.Expression], int, str]:
    parts, at, word = _parts(reader, pieces, at, ends)
    if not word:
        error: ParseError = reader.fault(f"Unexpected end of template: {opened.word}", opened.start)
        raise error
    return parts, at, word
