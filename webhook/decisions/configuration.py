"""Reading configuration files: typed values by key, every fault named with its place."""

from __future__ import annotations

import os
import re
import sys
from dataclasses import MISSING, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar
from urllib.parse import urlsplit

from webhook.api.yaml_reader import KUBERNETES, InvalidYaml, read_first
from webhook.decisions.declaration import SETTING, Declared

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from urllib.parse import SplitResult

    from _typeshed import DataclassInstance

    Shape = TypeVar("Shape", bound=DataclassInstance)

MAX_FILE_BYTES: Final = 1024 * 1024
"""A ConfigMap holds no more."""

SOCKET_PATH_BYTES_MAX: Final = 103
"""The longest `sun_path`: 104 bytes on macOS and 108 on Linux, with a zero at the end."""

_NUMBER_MAX: Final = sys.float_info.max
"""No NaN and no infinity is at most this, nor a whole number that no float can hold."""

_VARIABLE: Final = re.compile(r"\$\(([A-Za-z_][A-Za-z0-9_]*)\)")


class InvalidConfiguration(Exception):
    """A configuration that cannot be used; the message names the file and the key."""


class Section:
    """One mapping of a configuration file.

    Every key is read once. :meth:`finish` refuses unread keys, here and in the mappings below, so
    that a misspelt key is an error and not a default.
    """

    __slots__ = ("_below", "_read", "_values", "place")

    def __init__(self, values: Any, place: str) -> None:
        if values is None:
            values = {}
        if type(values) is not dict:
            raise InvalidConfiguration(f"{place}: expected a mapping")
        self._values = values
        self._read: set[str] = set()
        self._below: dict[str, list[Section]] = {}
        self.place = place

    @property
    def values(self) -> dict[str, Any]:
        """Everything, as it was read."""
        return self._values

    def read(self, shape: type[Shape], **given: Any) -> Shape:
        """Returns an object from the keys of this mapping.

        Its fields are declared with :func:`~webhook.decisions.declaration.setting`. Fields in
        ``given`` are not read.
        """
        for item in fields(shape):
            declared = item.metadata.get(SETTING)
            if declared is None or item.name in given:
                continue
            *path, key = declared.key_of(item.name)
            section = self
            for part in path:
                section = section.section(part)
            make = item.default_factory
            default = item.default if make is MISSING else make()
            given[item.name] = section.declared(key, default, declared)
        return shape(**given)

    def declared(self, key: str, default: Any, declared: Declared) -> Any:
        """Returns the value of a key as it was declared; its type is that of its default."""
        least, most, words = declared.least, declared.most, declared.words
        if default is MISSING:
            return self.text(key)
        if type(default) is bool:
            return self.boolean(key, default=default)
        if type(default) is int:
            return self.integer(key, default, least=1 if least is None else int(least), most=most)
        if type(default) is float:
            return self.number(key, default, least=least or 0.0, most=most)
        if type(default) is str:
            return self.choice(key, words, default) if words else self.text(key, default)
        if type(default) is frozenset:
            return self.words(key, words, default)
        if type(default) is dict:
            return self.text_map(key, default)
        return self.texts(key, default)

    def text(self, key: str, default: str | None = None) -> str:
        """A string, with ``$(NAME)`` replaced from the environment; required without default."""
        value = self._take(key, default)
        if type(value) is not str or (default is None and not value):
            raise self.error(key, "expected a string")
        return _VARIABLE.sub(lambda match: self._variable(key, match[1]), value)

    def url(self, key: str) -> SplitResult:
        """Returns a URL, taken apart; its host and its port can be read."""
        text = self.text(key)
        try:
            parts = urlsplit(text)
            _ = parts.port  # raises only when it is read
        except ValueError as error:
            raise self.error(key, f"no address: {error}") from None
        if parts.scheme == "unix" and len(os.fsencode(parts.path)) > SOCKET_PATH_BYTES_MAX:
            raise self.error(
                key,
                f"a socket's path has at most {SOCKET_PATH_BYTES_MAX} bytes: choose a shorter one",
            )
        return parts

    def integer(self, key: str, default: int, *, least: int = 1, most: float | None = None) -> int:
        """Returns a whole number, at least ``least`` and at most ``most``."""
        value = self._take(key, default)
        if type(value) is not int or value < least:
            raise self.error(key, f"expected a whole number, {least} or more")
        if most is not None and value > most:
            raise self.error(key, f"expected a whole number from {least} to {most:.0f}")
        return value

    def number(
        self, key: str, default: float, *, least: float = 0.0, most: float | None = None
    ) -> float:
        """Returns a finite number, at least ``least`` and at most ``most``."""
        value = self._take(key, default)
        if type(value) not in {int, float} or value < least:
            raise self.error(key, f"expected a number, {least:g} or more")
        if not value <= _NUMBER_MAX:
            raise self.error(key, "expected a finite number")
        if most is not None and value > most:
            raise self.error(key, f"expected a number from {least:g} to {most:g}")
        return float(value)

    def boolean(self, key: str, *, default: bool = False) -> bool:
        """True or false."""
        value = self._take(key, default)
        if type(value) is not bool:
            raise self.error(key, "expected true or false")
        return value

    def choice(self, key: str, choices: tuple[str, ...], default: str) -> str:
        """Returns one of several permitted words."""
        value = self._take(key, default)
        if value not in choices:
            raise self.error(key, f"expected one of {', '.join(choices)}")
        return str(value)

    def texts(self, key: str, default: Collection[str] = ()) -> tuple[str, ...]:
        """Returns a list of strings."""
        value = self._take(key, list(default))
        if type(value) is not list or not all(type(item) is str for item in value):
            raise self.error(key, "expected a list of strings")
        return tuple(value)

    def words(
        self, key: str, known: Collection[str], default: Collection[str] = ()
    ) -> frozenset[str]:
        """Returns a list of known words."""
        given = frozenset(self.texts(key, default))
        if unknown := sorted(given - set(known)):
            raise self.error(key, f"unknown {', '.join(unknown)}; known are {', '.join(known)}")
        return given

    def path(self, key: str) -> Path | None:
        """Returns a file's path; None without the key."""
        text = self.text(key, "")
        return Path(text) if text else None

    def text_map(self, key: str, default: Mapping[str, str] = {}) -> dict[str, str]:
        """Returns a mapping of strings to strings."""
        value = self._take(key, dict(default))
        if type(value) is not dict or not all(
            type(name) is str and type(text) is str for name, text in value.items()
        ):
            raise self.error(key, "expected a mapping of strings to strings")
        return dict(value)

    def section(self, key: str) -> Section:
        """Returns a mapping; empty without the key."""
        if key not in self._below:
            self._below[key] = [Section(self._take(key, {}), f"{self.place}.{key}")]
        return self._below[key][0]

    def sections(self, key: str) -> list[Section]:
        """Returns a list of mappings; empty without the key."""
        value = self._take(key, [])
        if type(value) is not list:
            raise self.error(key, "expected a list")
        self._below[key] = [
            Section(item, f"{self.place}.{key}[{index}]") for index, item in enumerate(value)
        ]
        return self._below[key]

    def finish(self) -> None:
        """Refuses keys that were not read."""
        unknown = sorted(str(key) for key in self._values.keys() - self._read)
        if unknown:
            raise InvalidConfiguration(f"{self.place}: unknown key {', '.join(unknown)}")
        for sections in self._below.values():
            for section in sections:
                section.finish()

    def error(self, key: str, message: str) -> InvalidConfiguration:
        """Returns the error to raise about a key."""
        return InvalidConfiguration(f"{self.place}.{key}: {message}")

    def _take(self, key: str, default: Any) -> Any:
        self._read.add(key)
        return self._values.get(key, default)

    def _variable(self, key: str, name: str) -> str:
        if name not in os.environ:
            raise self.error(key, f"the environment variable {name} is not set")
        return os.environ[name]


def load(path: Path) -> Section:
    """Returns the mapping in a YAML file; raises :class:`InvalidConfiguration`."""
    try:
        with path.open("rb") as file:
            content = file.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise InvalidConfiguration(f"{path}: {error.strerror}") from None
    return parse(content, str(path))


def load_all(paths: Sequence[Path]) -> Section:
    """Loads several files as one: lists are joined, other values of later files take precedence.

    Raises :class:`InvalidConfiguration`.
    """
    sections = [load(path) for path in paths]
    values: dict[str, Any] = {}
    for section in sections:
        for key, value in section.values.items():
            earlier = values.get(key)
            added = type(value) is list and type(earlier) is list
            values[key] = [*earlier, *value] if added and earlier is not None else value
    return Section(values, ", ".join(section.place for section in sections))


def parse(content: bytes, place: str) -> Section:
    """Returns the mapping in YAML text; raises :class:`InvalidConfiguration`."""
    if len(content) > MAX_FILE_BYTES:
        raise InvalidConfiguration(f"{place}: more than {MAX_FILE_BYTES} bytes")
    try:
        values = read_first(content, KUBERNETES)
    except InvalidYaml as error:
        at = f" line {error.line}:" if error.line else ""
        raise InvalidConfiguration(f"{place}:{at} {error.message}") from None
    return Section(values, place)
