"""Checks an instruction and its words as BuildKit does.

A build of a faulty file would fail, and ``conftest`` refuses to read it.
(frontend/dockerfile/instructions of moby/buildkit.)
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Final

from webhook.duration import InvalidDuration, parse_duration

_STAGE: Final = re.compile(r"[a-z][a-z0-9-_.]*\Z")
_ONE_MILLISECOND: Final = 1_000_000

_TEXT: Final = "a text"
_TEXTS: Final = "texts"
_SWITCH: Final = "true or false"
_COPIED: Final = {"chown": _TEXT, "chmod": _TEXT, "link": _SWITCH, "exclude": _TEXTS}
_FLAGS: Final[dict[str, dict[str, str]]] = {
    "add": {**_COPIED, "keep-git-dir": _SWITCH, "checksum": _TEXT, "unpack": _SWITCH},
    "copy": {**_COPIED, "from": _TEXT, "parents": _SWITCH},
    "from": {"platform": _TEXT},
    "healthcheck": dict.fromkeys(
        ("interval", "timeout", "start-period", "start-interval", "retries"), _TEXT
    ),
    "run": {"mount": _TEXTS, "network": _TEXT, "security": _TEXT, "device": _TEXTS},
}
_UNFLAGGED: Final = frozenset({"arg", "stopsignal"})
"""The instructions with unchecked flags."""

_ALLOWED: Final = {
    "network": frozenset({"default", "none", "host"}),
    "security": frozenset({"insecure", "sandbox"}),
}


def check(name: str, values: Sequence[str], flags: Sequence[str], *, is_json: bool) -> str:
    """Returns the fault of an instruction, with its name in lower case; "" for none."""
    checked = _CHECKS.get(name)
    fault = checked(values) if checked else ""
    if fault or name in _UNFLAGGED or (name == "healthcheck" and values[0].upper() == "NONE"):
        return fault
    given, fault = _flags(flags, _FLAGS.get(name, {}))
    if fault:
        return fault
    if name == "run":
        return _run(given)
    if name == "healthcheck":
        return _health(values, given)
    if name == "shell" and not is_json:
        return "SHELL requires the arguments to be in JSON form"
    return ""


def _flags(flags: Sequence[str], known: dict[str, str]) -> tuple[dict[str, list[str]], str]:
    """Returns the flags' values by name, and their fault or ""."""
    given: dict[str, list[str]] = {}
    for flag in flags:
        name, equals, value = flag.partition("=")
        kind = known.get(name[2:])
        if kind is None:
            return given, f"unknown flag: {name}"
        if name[2:] in given and kind is not _TEXTS:
            return given, f"duplicate flag specified: {name}"
        if (kind is not _SWITCH and not equals) or (kind is _SWITCH and equals and not value):
            return given, f"missing a value on flag: {name}"
        if kind is _SWITCH and value.lower() not in {"", "true", "false"}:
            return given, f"expecting boolean value for flag {name}, not: {value}"
        given.setdefault(name[2:], []).append(value)
    return given, ""


def _run(given: dict[str, list[str]]) -> str:
    for name, allowed in _ALLOWED.items():
        for value in given.get(name, ()):
            if value not in allowed:
                return f'invalid {name} "{value}"'
    for mount in given.get("mount", ()):
        if re.search(r"(?i)(?:^|,)from=[^,$]*\$[^,]", mount):
            return "'from' doesn't support variable expansion, define alias stage instead"
    return ""


def _health(values: Sequence[str], given: dict[str, list[str]]) -> str:
    kind = values[0].upper()
    if kind != "CMD":
        return f'Unknown type "{kind}" in HEALTHCHECK (try CMD)'
    if len(values) == 1:
        return "Missing command after HEALTHCHECK CMD"
    for name, (value,) in given.items():
        if name == "retries":
            if value and not re.fullmatch(r"\+?\d{1,9}", value):
                return f"--retries must be a number that is not negative, not: {value}"
        elif fault := _interval(name, value):
            return fault
    return ""


def _interval(name: str, value: str) -> str:
    if not value:
        return ""
    try:
        nanoseconds = parse_duration(value)
    except InvalidDuration:
        return f'time: invalid duration "{value}"'
    if nanoseconds and nanoseconds < _ONE_MILLISECOND:
        return f'Interval "{name}" cannot be less than 1ms'
    return ""


# --- the words of each instruction ---------------------------------------------------------------


def _from(values: Sequence[str]) -> str:
    if len(values) == 3 and values[1].lower() == "as":
        if not _STAGE.match(values[2].lower()):
            return (
                f'invalid name for build stage: "{values[2]}", '
                "name can't start with a number or contain symbols"
            )
        return ""
    return "" if len(values) == 1 else "FROM requires either one or three arguments"


def _exactly_one(name: str) -> Callable[[Sequence[str]], str]:
    return lambda values: "" if len(values) == 1 else f"{name} requires exactly one argument"


def _at_least_one(name: str) -> Callable[[Sequence[str]], str]:
    return lambda values: "" if values else f"{name} requires at least one argument"


def _copied(name: str) -> Callable[[Sequence[str]], str]:
    def checked(values: Sequence[str]) -> str:
        if len(values) < 2:
            return (
                f"{name} requires at least two arguments, but only one was provided. "
                "Destination could not be determined"
            )
        if re.match(r"\d*<<-?\s*[^<\s]", values[-1]):
            return f"{name} cannot accept a heredoc as a destination"
        return ""

    return checked


def _pairs(name: str) -> Callable[[Sequence[str]], str]:
    """Returns a check of triples: name, value and separator."""

    def checked(values: Sequence[str]) -> str:
        if not values:
            return f"{name} requires at least one argument"
        return "" if all(values[::3]) else f"{name} names can not be blank"

    return checked


def _arguments(values: Sequence[str]) -> str:
    if not values:
        return "ARG requires at least one argument"
    return "ARG names can not be blank" if any(value.startswith("=") for value in values) else ""


def _volumes(values: Sequence[str]) -> str:
    if not values:
        return "VOLUME requires at least one argument"
    return "" if all(map(str.strip, values)) else "VOLUME specified can not be an empty string"


def _trigger(values: Sequence[str]) -> str:
    """Checks the name of the instruction below ONBUILD."""
    if not values:
        return "ONBUILD requires at least one argument"
    name = values[0].upper()
    if name == "ONBUILD":
        return "Chaining ONBUILD via `ONBUILD ONBUILD` isn't allowed"
    if name in {"MAINTAINER", "FROM"}:
        return f"{name} isn't allowed as an ONBUILD trigger"
    return ""


def _health_words(values: Sequence[str]) -> str:
    if not values:
        return "HEALTHCHECK requires at least one argument"
    if values[0].upper() == "NONE" and len(values) > 1:
        return "HEALTHCHECK NONE takes no arguments"
    return ""


_CHECKS: Final[dict[str, Callable[[Sequence[str]], str]]] = {
    "add": _copied("ADD"),
    "arg": _arguments,
    "copy": _copied("COPY"),
    "env": _pairs("ENV"),
    "expose": _at_least_one("EXPOSE"),
    "from": _from,
    "healthcheck": _health_words,
    "label": _pairs("LABEL"),
    "maintainer": _exactly_one("MAINTAINER"),
    "onbuild": _trigger,
    "shell": _at_least_one("SHELL"),
    "stopsignal": _exactly_one("STOPSIGNAL"),
    "user": _exactly_one("USER"),
    "volume": _volumes,
    "workdir": _exactly_one("WORKDIR"),
}
