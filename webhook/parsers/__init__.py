r"""Parses configuration files of many formats into JSON values, in conftest's shapes.

A parser takes a file's bytes and its path. It returns a value, or raises
:class:`~webhook.parsers.errors.ParseError`; it is imported at its first use. The package must not
know policies.

>>> parse("ini", b"[a]\nb = 1")
{'a': {'b': 1}}
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable
from importlib import import_module
from typing import Any, Final

from webhook.parsers.errors import ParseError

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
"""conftest's parsers that are missing here, and the reasons."""

_ENCODING_OF_XML: Final = re.compile(
    rb"""<\?xml[ \t\r\n][^>]{0,200}?\bencoding[ \t\r\n]*=[ \t\r\n]*["']([A-Za-z0-9._:-]{1,40})["']"""
)
_CODECS_OF_XML: Final = (
    *("ascii", "big5", "cp125", "cp866", "euc_", "gb", "iso2022_jp", "iso8859", "koi8", "mac"),
    *("shift_jis", "utf-8", "utf-16"),
)
"""The beginnings of the names of codecs that an XML document may declare, as in conftest."""

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
    """Returns the names of all parsers."""
    return tuple(_PARSERS)


def name_for(path: str) -> str:
    """Returns the parser's name for a file's name; ``-`` is YAML. Raises :class:`ParseError`."""
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
    """Whether a file's name has a parser."""
    try:
        return bool(name_for(path))
    except ParseError:
        return False


def parse(name: str, raw: bytes, path: str = "") -> Any:
    """Returns the value of a file by a named parser; raises :class:`ParseError`."""
    return parser(name)(raw, path)


def parser(name: str) -> Callable[[bytes, str], Any]:
    """Returns the parser of this name; raises :class:`ParseError`."""
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
    """Returns a file's bytes as UTF-8 without a byte order mark; raises :class:`ParseError`.

    UTF-16 and UTF-32 are recognized by their marks, as Windows' editors write them, and XML by its
    declaration. Any other encoding is refused, as names would be read wrongly.
    """
    try:
        if raw.startswith((codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)):
            return raw.decode("utf-32").encode()  # its mark begins with that of UTF-16
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
    """Returns Python's codec for an XML document's encoding; raises :class:`ParseError`.

    As in browsers and conftest, ISO-8859-1 means Windows' set, which has some more letters.
    """
    try:
        codec = codecs.lookup(name).name
    except LookupError:
        codec = ""
    if not codec.startswith(_CODECS_OF_XML):
        raise ParseError(f"unknown encoding {name!r}: save the file as UTF-8", 1)
    if codec.startswith("utf"):
        return "utf-8"  # the declaration was read as bytes, so it is not UTF-16
    return "cp1252" if codec in ("iso8859-1", "ascii") else codec
