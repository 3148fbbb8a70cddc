"""Options from conftest's configuration file and environment, as viper finds them.

A flag goes before ``CONFTEST_NAME`` in the environment, and that before the file: the one that
``--config-file`` or ``CONFTEST_CONFIG_FILE`` names, else ``conftest.toml`` and its like here.
"""

from __future__ import annotations

import csv
import os
from pathlib import Path
from typing import Any, Final

from webhook import parsers
from webhook.conftest.configurations import is_pipe
from webhook.parsers.errors import ParseError

_NAME: Final = "conftest"
_EXTENSIONS: Final = ("json", "toml", "yaml", "yml", "properties", "dotenv", "env", "ini")
_PREFIX: Final = "CONFTEST_"


class SettingsError(Exception):
    """A configuration file that cannot be read."""


def settings(config_file: str = "") -> dict[str, Any]:
    """The options by their flags' names, all lower case; raises :class:`SettingsError`."""
    named = config_file or os.environ.get(f"{_PREFIX}CONFIG_FILE", "")
    path = Path("/dev/stdin" if named == "-" else named) if named else _beside()
    values = {} if path is None else _read(path)
    for variable, value in os.environ.items():
        if variable.startswith(_PREFIX) and value:
            values[variable.removeprefix(_PREFIX).lower().replace("_", "-")] = value
    return values


def _beside() -> Path | None:
    candidates = (Path(f"{_NAME}.{extension}") for extension in _EXTENSIONS)
    return next((path for path in candidates if path.is_file()), None)


def _read(path: Path) -> dict[str, Any]:
    extension = path.suffix.removeprefix(".").lower()
    if not extension and is_pipe(str(path)):
        extension = "toml"  # what conftest's own file is
    name = {"yml": "yaml", "env": "dotenv"}.get(extension, extension)
    if extension not in _EXTENSIONS:
        raise SettingsError(f"{path}: unsupported config type {extension!r}")
    try:
        value = parsers.parse(name, path.read_bytes(), str(path))
    except OSError as error:
        raise SettingsError(f"{path}: {error.strerror}") from None
    except ParseError as error:
        raise SettingsError(f"{path}: {error}") from None
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise SettingsError(f"{path}: expected a table of options")
    return {str(key).lower(): inner for key, inner in value.items()}


def as_list(value: Any) -> list[str]:
    """Values of a list: a text's are separated by commas."""
    if isinstance(value, str):
        return separated(value)
    return [str(item) for item in value] if isinstance(value, list | tuple) else [str(value)]


def separated(text: str) -> list[str]:
    """Values that commas part, quoted where they hold one, as pflag's ``StringSlice`` reads them."""
    return next(csv.reader([text]), [])
