"""Reads options from conftest's configuration file and environment, like viper.

A flag has precedence over ``CONFTEST_NAME`` in the environment, and that over the file. The file is
the one of ``--config-file`` or ``CONFTEST_CONFIG_FILE``, or else ``conftest.toml``, or another
supported extension, in the current folder.
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
    """A configuration file is unreadable; the text says why."""


def settings(config_file: str = "") -> dict[str, Any]:
    """Returns the options by their flags' names in lower case; raises :class:`SettingsError`."""
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
        extension = "toml"  # the format of conftest's own file
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
    """Returns the values of a list; a text is split at commas."""
    if isinstance(value, str):
        return separated(value)
    return [str(one) for one in value] if isinstance(value, list | tuple) else [str(value)]


def separated(text: str) -> list[str]:
    """Returns comma-separated values, which may be quoted, like pflag's ``StringSlice``."""
    return next(csv.reader([text]), [])
