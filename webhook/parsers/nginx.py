"""Parses nginx's configuration: directives with parameters and blocks."""

from __future__ import annotations

import re
from typing import Any, Final

from webhook.parsers.errors import TextReader

_DEPTH_MAX: Final = 100
_TOKEN: Final = re.compile(
    r"""\s+|\#[^\n]*|(?P<mark>[{};])|(?P<word>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'"""
    r"""|(?:\\.|\$\{[^}]*\}|[^\s{};\\])+)""",
    re.DOTALL,
)
_RAW: Final = re.compile(r"_by_lua_block$")


def parse(raw: bytes, path: str = "") -> Any:
    """Returns ``{directives: [{name, parameters, block: {directives}}]}``."""
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
        if parameters:
            directive["parameters"] = parameters
        return directive

    def _block(self, name: str, depth: int) -> list[dict[str, Any]]:
        if not _RAW.search(name):
            return self.directives(depth + 1, closed=True)
        open_ = 1
        while open_:
            word = self._next()
            if not word:
                raise self._fault("unexpected eof in block")
            open_ += {"{": 1, "}": -1}.get(word, 0)
        return []
