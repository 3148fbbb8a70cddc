"""Parses nginx's configuration: directives with parameters and blocks."""

from __future__ import annotations

import re
from typing import Any, Final

from webhook.parsers.errors import TextReader

_DEPTH_MAX: Final = 100
_TOKEN: Final = re.compile(
    r"""\s+|\#[^\n]*|(?P<mark>[{};])|(?P<word>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'"""
    r"""|`(?:[^`\\]|\\.)*`"""
    r"""|(?:\\.|\$\{[^}]*\}|[^\s{};\\])+)""",
    re.DOTALL,
)
_RAW: Final = re.compile(r"_by_lua_block$")


def parse(raw: bytes, path: str = "") -> Any:
    """Returns ``{directives: [{name, parameters, block: {directives}}]}``.

    As in conftest, servers are the last directives of ``http`` and ``upstream``, and their named
    parameters come before others.
    """
    del path
    reader = _Reader(raw.decode("utf-8", "replace"))
    directives = reader.directives(0, closed=False)
    return {"directives": directives}


class _Reader(TextReader):
    action = "parse nginx"

    def _next(self) -> str:
        """Returns the next token; "" at the end."""
        while self._at < len(self._text):
            match = _TOKEN.match(self._text, self._at)
            if match is None:
                raise self._fault("unexpected end of file, a quote is not closed")
            self._at = match.end()
            if match["mark"] or match["word"]:
                return match[0]
        return ""

    def directives(self, depth: int, *, closed: bool) -> list[dict[str, Any]]:
        """Returns directives up to the closing brace, or to the end."""
        if depth > _DEPTH_MAX:
            raise self._fault("nested too deeply")
        directives: list[dict[str, Any]] = []
        while True:
            word = self._next()
            if word == "}" and closed:
                return directives
            if not word:
                if closed:
                    raise self._fault("unexpected eof in block")
                return directives
            if word in "{};":
                raise self._fault(f"unexpected {word!r}")
            directives.append(self._directive(word, depth))

    def _directive(self, name: str, depth: int) -> dict[str, Any]:
        directive: dict[str, Any] = {"name": name}
        parameters = []
        while True:
            word = self._next()
            if word == ";":
                break
            if word == "{":
                directive["block"] = {"directives": self._block(name, depth)}
                break
            if not word or word == "}":
                raise self._fault(f"unexpected {word or 'end of file'!r} in directive {name}")
            parameters.append(word)
        if name == "location" and not 1 <= len(parameters) <= 2:
            raise self._fault("a location has a path and at most a modifier before it")
        if parameters:
            directive["parameters"] = parameters
        return directive

    def _block(self, name: str, depth: int) -> list[dict[str, Any]]:
        if not _RAW.search(name):
            directives = self.directives(depth + 1, closed=True)
            if name == "http":
                directives.sort(key=lambda below: below["name"] == "server" and "block" in below)
            elif name == "upstream":
                directives = [_of_upstream(below) for below in directives]
                directives.sort(key=lambda below: below["name"] == "server")
            return directives
        open_ = 1
        while open_:
            word = self._next()
            if not word:
                raise self._fault("unexpected eof in block")
            open_ += {"{": 1, "}": -1}.get(word, 0)
        return []


def _of_upstream(directive: dict[str, Any]) -> dict[str, Any]:
    """Returns a directive of an upstream; a server's named parameters are sorted, the last wins."""
    if directive["name"] != "server":
        return directive
    parameters = directive.get("parameters", [""])
    named = dict(word.split("=", 1) for word in parameters[1:] if "=" in word)
    flags = [word for word in parameters[1:] if "=" not in word]
    ordered = [f"{name}={value}" for name, value in sorted(named.items())]
    return {"name": "server", "parameters": [parameters[0], *ordered, *flags]}
