"""Parses Dockerfiles like BuildKit: an array of instructions in an array of one.

Each is ``{Cmd, SubCmd, JSON, Flags, Value, Stage}``. Comments are instructions ``comment`` before
the instruction that they precede. (frontend/dockerfile/parser of moby/buildkit.)
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import field
from typing import Any, Final

from webhook.parsers import dockerfile_instructions
from webhook.parsers.errors import ParseError
from webhook.values import dataclass

PROCESSING: Final = "process dockerfile instructions"
_SPACE: Final = re.compile(r"[\t\v\f\r ]+")
_DIRECTIVE: Final = re.compile(r"([a-zA-Z][a-zA-Z0-9]*)\s*=\s*(.+?)\s*\Z")
_DIRECTIVES: Final = frozenset({"syntax", "escape", "check"})
_HEREDOC: Final = re.compile(r"\d*<<(-?)\s*([^<]*)\Z")
_WITH_HEREDOCS: Final = frozenset({"add", "copy", "run"})


@dataclass(slots=True)
class _Node:
    """An instruction: its words, and its trigger for ONBUILD."""

    name: str
    values: list[str] | None = None
    flags: list[str] | None = None
    is_json: bool = False
    below: _Node | None = None


def parse(raw: bytes, path: str = "") -> Any:
    """Returns ``[[{Cmd, SubCmd, JSON, Flags, Value, Stage}]]``."""
    del path
    return [_Reader(raw.decode("utf-8", "replace").removeprefix("\ufeff")).read()]


@dataclass(slots=True)
class _Reader:
    """Reads the lines of a file."""

    text: str
    escape: str = "\\"
    stages: int = 0
    instructions: list[dict[str, Any]] = field(default_factory=list)
    _seen: set[str] = field(default_factory=set)
    _directives_over: bool = False
    _lines: list[str] = field(default_factory=list)
    _at: int = 0

    def read(self) -> list[dict[str, Any]]:
        """Returns all instructions; raises :class:`ParseError`."""
        self._lines = self.text.split("\n")
        if self._lines[-1] == "":
            self._lines.pop()
        comments: list[str] = []
        any_found = False
        while self._at < len(self._lines):
            line, is_directive = self._first(self._take(), comments)
            if is_directive and comments:
                comments.pop()
            begun = self._at
            whole = self._continued(line)
            if not whole:
                continue
            node = self._node(whole, begun)
            self._heredocs(node, whole, begun)
            self._notify(node, comments, begun)
            comments = []
            any_found = True
        if not any_found:
            raise ParseError("parse dockerfile: file with no instructions", max(self._at, 1))
        return self.instructions

    def _take(self) -> str:
        self._at += 1
        return self._lines[self._at - 1].rstrip("\r")

    def _first(self, line: str, comments: list[str]) -> tuple[str, bool]:
        """Returns an instruction's first line, "" for a comment; and whether it is a directive."""
        comment = line[1:].strip()  # as BuildKit does: the mark stays if blanks precede it
        line = line.lstrip()
        is_comment = line.startswith("#")
        if is_comment:
            if comment:
                comments.append(comment)
            else:
                comments.clear()
        return ("" if is_comment else line), self._directive(line)

    def _directive(self, line: str) -> bool:
        if self._directives_over:
            return False
        match = _DIRECTIVE.match(line[1:].lstrip()) if line.startswith("#") else None
        name = match[1].lower() if match else ""
        if match is None or name not in _DIRECTIVES:
            self._directives_over = True
            return False
        if name in self._seen:
            raise _fault(f"only one {name} parser directive can be used", self._at)
        self._seen.add(name)
        if name == "escape":
            if match[2] not in {"`", "\\"}:
                raise _fault(f"invalid escape token '{match[2]}' does not match ` or \\", self._at)
            self.escape = match[2]
        return True

    def _continued(self, line: str) -> str:
        """Returns a line with its continuation lines."""
        token = re.escape(self.escape)
        going_on = re.compile(rf"([^{token}]){token}[ \t]*\Z|\A{token}[ \t]*\Z")
        pieces: list[str] = []
        while (match := going_on.search(line)) is not None:
            pieces.append(line[: match.start()] + (match[1] or ""))
            line = ""
            while self._at < len(self._lines):
                following = self._take()
                self._directive(following)
                if following.lstrip().startswith("#") or not following.strip():
                    continue
                line = following
                break
        return "".join(pieces) + line

    def _node(self, line: str, number: int, *, is_trigger: bool = False) -> _Node:
        words = _SPACE.split(line.strip(), maxsplit=1)
        node = _Node(words[0])
        rest = ""
        if len(words) == 2:
            rest, node.flags = self._flags(words[1])
        read = _READERS.get(words[0].lower(), _ignored if is_trigger else None)
        if read is None:
            raise _fault(f"unknown instruction: {words[0]}", number, PROCESSING)
        try:
            read(self, node, rest.strip(), number)
        except ParseError as error:
            raise ParseError(error.message, number) from None
        return node

    def _flags(self, line: str) -> tuple[str, list[str]]:
        """Returns the text after the flags (``--name=value``), and the flags."""
        flags: list[str] = []
        at = 0
        while True:
            while at < len(line) and line[at].isspace():
                at += 1
            if not line.startswith("--", at):
                return line[at:], flags
            word, at = self._flag(line, at)
            if word == "--":
                return line[at:], flags
            if word:
                flags.append(word)
            if at >= len(line):
                return "", flags

    def _flag(self, line: str, at: int) -> tuple[str, int]:
        kept: list[str] = []
        quote = ""
        while at < len(line):
            character = line[at]
            if not quote and character.isspace():
                break
            if character == quote:
                quote = ""
            elif not quote and character in "'\"":
                quote = character
            elif character == self.escape:
                at += 1
                kept.append(line[at : at + 1])
            else:
                kept.append(character)
            at += 1
        return "".join(kept), at

    def words(self, rest: str) -> list[str]:
        """Returns words, which quotes hold together; keeps quotes and escapes."""
        words: list[str] = []
        at = 0
        while at < len(rest):
            if rest[at].isspace():
                at += 1
                continue
            begun, quote = at, ""
            kept: list[str] = []
            while at < len(rest) and (quote or not rest[at].isspace()):
                character = rest[at]
                if character == self.escape and quote != "'":
                    if at + 1 == len(rest):
                        at += 1
                        break
                    kept += [character, rest[at + 1]]
                    at += 2
                    continue
                if quote:
                    quote = "" if character == quote else quote
                elif character in "'\"":
                    quote = character
                kept.append(character)
                at += 1
            if kept or at > begun + 1:
                words.append("".join(kept))
        return words

    def _heredocs(self, node: _Node, line: str, number: int) -> None:
        """Skips the heredocs that a line opens."""
        inner = node.below or node
        if "<<" not in line or inner.name.lower() not in _WITH_HEREDOCS or inner.is_json:
            return
        for word in self.words(line):
            match = _HEREDOC.match(word)
            name = match[2].replace('"', "").replace("'", "").replace("\\", "") if match else ""
            if match is None or not name or any(c.isspace() for c in name):
                continue
            while True:
                if self._at >= len(self._lines):
                    raise _fault("unterminated heredoc", number)
                ending = self._take()
                if (ending.lstrip("\t") if match[1] else ending) == name:
                    break

    def _notify(self, node: _Node, comments: list[str], number: int) -> None:
        name = node.name.lower()
        inner = node.below or node
        below = node.below.name if node.below else ""
        words = [below] if below else node.values or ()
        fault = dockerfile_instructions.check(name, words, node.flags or (), is_json=inner.is_json)
        if fault:
            raise _fault(fault, number, PROCESSING)
        if name == "from":
            self.stages += 1
        stage = max(self.stages - 1, 0)
        self.instructions += [_command("comment", stage, values=[comment]) for comment in comments]
        self.instructions.append(
            _command(name, stage, below, node.flags, inner.values, is_json=inner.is_json)
        )


def _command(
    name: str,
    stage: int,
    below: str = "",
    flags: list[str] | None = None,
    values: list[str] | None = None,
    *,
    is_json: bool = False,
) -> dict[str, Any]:
    return {
        "Cmd": name,
        "SubCmd": below,
        "JSON": is_json,
        "Flags": flags,
        "Value": values,
        "Stage": stage,
    }


def _fault(message: str, line: int, action: str = "parse dockerfile") -> ParseError:
    return ParseError(f"{action}: {message}", line)


# --- the words of an instruction ---------------------------------------------------------------


def _text(_: _Reader, node: _Node, rest: str, __: int) -> None:
    node.values = [rest] if rest else None


def _split(_: _Reader, node: _Node, rest: str, __: int) -> None:
    node.values = _SPACE.split(rest) if rest else None


def _words(reader: _Reader, node: _Node, rest: str, _: int) -> None:
    node.values = reader.words(rest) or None


def _maybe_json(reader: _Reader, node: _Node, rest: str, number: int) -> None:
    if not _json(node, rest):
        _text(reader, node, rest, number)


def _maybe_json_list(reader: _Reader, node: _Node, rest: str, number: int) -> None:
    if not _json(node, rest):
        _split(reader, node, rest, number)


def _json(node: _Node, rest: str) -> bool:
    if not rest.startswith("["):
        return False
    try:
        items = json.loads(rest)
    except (ValueError, RecursionError):
        return False
    if not all(isinstance(item, str) for item in items):
        raise ParseError(
            "parse dockerfile: when using JSON array syntax, arrays must be comprised of strings only"
        )
    node.values, node.is_json = items or None, True
    return True


def _pairs(reader: _Reader, node: _Node, rest: str, _: int) -> None:
    """Reads ``NAME value``, or ``NAME=value`` several times.

    Name, value, and ``=`` or "" for each.
    """
    words = reader.words(rest)
    if not words:
        return
    if "=" not in words[0]:
        parts = _SPACE.split(rest, maxsplit=1)
        if len(parts) < 2:
            raise ParseError(f"parse dockerfile: {node.name.upper()} must have two arguments")
        node.values = [*parts, ""]
        return
    node.values = []
    for word in words:
        name, equals, value = word.partition("=")
        if not equals:
            raise ParseError(
                f"parse dockerfile: Syntax error - can't find = in {json.dumps(word)}. "
                "Must be of the form: name=value"
            )
        node.values += [name, value, "="]


def _health(reader: _Reader, node: _Node, rest: str, number: int) -> None:
    if not rest:
        return
    kind, _, command = rest.partition(next((c for c in rest if c.isspace()), "\0"))
    _maybe_json(reader, node, command.lstrip(), number)
    node.values = [kind, *(node.values or ())]


def _trigger(reader: _Reader, node: _Node, rest: str, number: int) -> None:
    if rest:
        node.below = reader._node(rest, number, is_trigger=True)  # noqa: SLF001  # same module


def _ignored(_: _Reader, node: _Node, __: str, ___: int) -> None:
    """Reads the words of an unknown instruction below ONBUILD."""
    node.values = [""]


_READERS: Final[dict[str, Callable[[_Reader, _Node, str, int], None]]] = {
    "add": _maybe_json_list,
    "arg": _words,
    "cmd": _maybe_json,
    "copy": _maybe_json_list,
    "entrypoint": _maybe_json,
    "env": _pairs,
    "expose": _split,
    "from": _split,
    "healthcheck": _health,
    "label": _pairs,
    "maintainer": _text,
    "onbuild": _trigger,
    "run": _maybe_json,
    "shell": _maybe_json,
    "stopsignal": _text,
    "user": _text,
    "volume": _maybe_json_list,
    "workdir": _text,
}
