r"""Configuration files of many formats as JSON values, in the shapes that conftest gives them.

A parser takes a file's bytes and its path, and gives a value or raises
:class:`~webhook.parsers.errors.ParseError`; each is imported when it is asked for. Nothing here
knows policies.

>>> parse("ini", b"[a]\nb = 1")
{'a': {'b': 1}}
"""

from __future__ import annotations

import codecs
import re
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from webhook.parsers.errors import ParseError

if TYPE_CHECKING:
    from collections.abc import Callable

_PARSERS: Final = {
    "codeowners": ("codeowners", "parse"),
    "cyclonedx": ("cyclonedx", "parse"),
    "dockerfile": ("dockerfile", "parse"),
    "dotenv": ("dotenv", "parse"),
    "edn": ("edn", "parse"),
    "hcl1": ("hcl1", "parse"),
    "hcl2": ("hcl2", "parse"),
    "hocon": ("hocon", "parse"),
    "ignore": ("ignore_files", "parse"),
    "ini": ("ini", "parse"),
    "json": ("json_text", "parse"),
    "jsonc": ("json_text", "parse_with_comments"),
    "jsonnet": ("jsonnet", "parse"),
    "nginx": ("nginx", "parse"),
    "properties": ("properties", "parse"),
    "spdx": ("spdx", "parse"),
    "toml": ("toml_text", "parse"),
    "xml": ("xml_text", "parse"),
    "yaml": ("yaml_text", "parse"),
}

LEFT_OUT: Final = {
    "cue": "no library of Python's evaluates CUE; `cue export` gives JSON",
    "groovy": "no library of Python's parses Groovy",
    "textproto": "needs the messages' definitions compiled; `protoc --decode` and JSON do",
    "vcl": "no library of Python's parses VCL",
}
"""conftest's parsers that are not here, and why."""

_ENCODING_OF_XML: Final = re.compile(
    rb"""<\?xml[ \t\r\n][^>]{0,200}?\bencoding[ \t\r\n]*=[ \t\r\n]*["']([A-Za-z0-9._:-]{1,40})["']"""
)
_CODECS_OF_XML: Final = (
    *("ascii", "big5", "cp125", "cp866", "euc_", "gb", "iso2022_jp", "iso8859", "koi8", "mac"),
    *("shift_jis", "utf-8", "utf-16"),
)
"""How the names of codecs begin that an XML document may name: those of conftest."""

_BY_EXTENSION: Final = {
    "yml": "yaml",
    "yaml": "yaml",
    "hcl": "hcl2",
    "tf": "hcl2",
    "tfvars": "hcl2",
    "gitignore": "ignore",
    "dockerignore": "ignore",
    "env": "dotenv",
    "dockerfile": "dockerfile",
    "textproto": "textproto",
    "textpb": "textproto",
    "pb.txt": "textproto",
    "pbtxt": "textproto",
    "prototext": "textproto",
}
_BY_NAME: Final = {
    "dockerfile": "dockerfile",
    ".env": "dotenv",
    "nginx.conf": "nginx",
    "jenkinsfile": "groovy",
    "codeowners": "codeowners",
}
_BY_BEGINNING: Final = {"dockerfile.": "dockerfile", ".env.": "dotenv", "jenkinsfile.": "groovy"}


def names() -> tuple[str, ...]:
    """Every parser's name."""
    return tuple(_PARSERS)


def name_for(path: str) -> str:
    """The parser of a file by its name; ``-`` is YAML. Raises :class:`ParseError`."""
    if path == "-":
        return "yaml"
    file = path.replace("\\", "/").rpartition("/")[2].lower()
    if file in _BY_NAME:
        return _BY_NAME[file]
    for beginning, name in _BY_BEGINNING.items():
        if file.startswith(beginning):
            return name
    extension = file.rpartition(".")[2] if "." in file else ""
    name = _BY_EXTENSION.get(extension, extension)
    if name not in _PARSERS and name not in LEFT_OUT:
        raise ParseError(f"unknown parser: {name}")
    return name


def is_supported(path: str) -> bool:
    """Whether a file's name says which parser it is for."""
    try:
        return bool(name_for(path))
    except ParseError:
        return False


def parse(name: str, raw: bytes, path: str = "") -> Any:
    """The value of a file by the parser of this name; raises :class:`ParseError`."""
    return parser(name)(raw, path)


def parser(name: str) -> Callable[[bytes, str], Any]:
    """The parser of this name; raises :class:`ParseError`."""
    if name in LEFT_OUT:
        raise ParseError(f"parser {name} is not supported: {LEFT_OUT[name]}")
    if name not in _PARSERS:
        raise ParseError(f"unknown parser: {name}")
    module, function = _PARSERS[name]
    parse: Callable[[bytes, str], Any] = getattr(import_module(f"{__name__}.{module}"), function)

    def bounded(raw: bytes, path: str) -> Any:
        try:
            return parse(utf8_of(raw), path)
        except RecursionError:
            raise ParseError(f"{name}: nested too deeply") from None

    return bounded


def utf8_of(raw: bytes) -> bytes:
    """A file's bytes as UTF-8 without a mark at their beginning; raises :class:`ParseError`.

    UTF-16 is known by its mark, as Windows' editors write it, and XML says its encoding. What is
    none of them is refused: read otherwise, names would be others than they are.
    """
    try:
        if raw.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
            return raw.decode("utf-16").encode()
        if encoding := _ENCODING_OF_XML.match(raw):
            return raw.decode(_codec(encoding[1].decode())).encode()
        raw = raw.removeprefix(codecs.BOM_UTF8)
        raw.decode()
    except UnicodeError as error:
        at = f" at byte {error.start}" if isinstance(error, UnicodeDecodeError) else ""
        line = raw.count(b"\n", 0, error.start) + 1 if at else 0  # type: ignore[attr-defined]
        raise ParseError(f"not UTF-8{at}: save the file as UTF-8", line) from None
    return raw


def _codec(name: str) -> str:
    """Return Python's codec for an XML document's encoding; raises :class:`ParseError`.

    As browsers and conftest have it, ISO-8859-1 is Windows' set, which is larger by some letters.
    """
    try:
        codec = codecs.lookup(name).name
    except LookupError:
        codec = ""
    if not codec.startswith(_CODECS_OF_XML):
        raise ParseError(f"unknown encoding {name!r}: save the file as UTF-8", 1)
    if codec.startswith("utf"):
        return "utf-8"  # A declaration that can be read byte by byte is in no other of them.
    return "cp1252" if codec in ("iso8859-1", "ascii") else codec
