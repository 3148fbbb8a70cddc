"""Flags in Go's syntax, declared as fields of a dataclass.

``-x`` and ``--x`` are the same; a value follows ``=`` or is the next argument; a boolean stands
alone or has ``=true|false``; a list is repeated, comma-separated or both. The rules are those of
Go's ``flag`` package, as in Gatekeeper's manifests.
"""

from __future__ import annotations

import re
from dataclasses import field, fields
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar, cast

from webhook.duration import duration_seconds
from webhook.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from _typeshed import DataclassInstance

FlagKind = Literal["text", "integer", "boolean", "duration", "list"]

SettingsT = TypeVar("SettingsT", bound="DataclassInstance")

# the values of Go's strconv.ParseBool
TRUE: Final = frozenset({"1", "t", "T", "TRUE", "true", "True"})
FALSE: Final = frozenset({"0", "f", "F", "FALSE", "false", "False"})


class InvalidFlag(ValueError):
    """An argument is invalid; the message has its name and the reason."""


@dataclass(frozen=True, slots=True)
class Flag:
    """A declared flag: its name, type and description."""

    name: str
    kind: FlagKind
    default: Any
    help: str
    section: str
    """The field of the settings for its group."""
    field: str
    """Its field in that group."""
    gatekeeper: bool
    group: str
    """The title of its group in the help."""
    choices: tuple[str, ...] = ()
    at_least: float | None = None


def flag(  # declares one field; all arguments but the default are by name
    default: Any,
    description: str,
    *,
    name: str | None = None,
    kind: FlagKind | None = None,
    gatekeeper: bool = False,
    choices: tuple[str, ...] = (),
    at_least: float | None = None,
) -> Any:
    """Declares a field of a group of settings as a flag.

    The default name is the field's with dashes, without its unit; the default kind is that of the
    default value. ``gatekeeper`` is whether Gatekeeper has a flag of this name.
    """
    metadata = {
        "help": description,
        "name": name,
        "kind": kind or _kind_of(default),
        "gatekeeper": gatekeeper,
        "choices": choices,
        "at_least": at_least,
    }
    return field(default=default, metadata=metadata)


def group(title: str, settings: type[SettingsT]) -> SettingsT:
    """Declares a field of a process's settings as a group of flags, all at their defaults."""
    group_field: SettingsT = field(default=settings(), metadata={"title": title, "flags": settings})
    return group_field


def _kind_of(default: Any) -> FlagKind:
    if isinstance(default, bool):
        return "boolean"
    if isinstance(default, int):
        return "integer"
    return "list" if isinstance(default, tuple) else "text"


def flags_of(settings: type[DataclassInstance]) -> tuple[Flag, ...]:
    """Returns the flags of a process's settings, by group, in order of declaration."""
    return tuple(
        Flag(
            name=item.metadata["name"] or item.name.removesuffix("_seconds").replace("_", "-"),
            kind=item.metadata["kind"],
            default=item.default,
            help=item.metadata["help"],
            section=section.name,
            field=item.name,
            gatekeeper=item.metadata["gatekeeper"],
            group=section.metadata["title"],
            choices=item.metadata["choices"],
            at_least=item.metadata["at_least"],
        )
        for section in fields(settings)
        if "flags" in section.metadata
        for item in fields(section.metadata["flags"])
    )


def parse(
    settings: type[SettingsT],
    arguments: Sequence[str],
    *,
    foreign: Callable[[str, str | None], bool] | None = None,
    overrides: Mapping[str, Any] | None = None,
) -> SettingsT:
    """Reads arguments into a settings object; raises :class:`InvalidFlag`.

    ``foreign(name, value)`` handles undeclared flags. It returns True if the next argument is the
    flag's value, returns False to accept the flag, or raises. ``overrides`` are fields with values
    from the environment.
    """
    declared = {item.name: item for item in flags_of(settings)}
    values: dict[str, dict[str, Any]] = {}
    rest = list(arguments)
    while rest:
        name, value = _split(rest.pop(0))
        item = declared.get(name)
        if item is None:
            if foreign is None:
                raise InvalidFlag(f"flag provided but not defined: --{name}")
            if foreign(name, value) and rest:
                foreign(name, rest.pop(0))
            continue
        if value is None and item.kind == "boolean":
            value = "true"
        if value is None:
            if not rest:
                raise InvalidFlag(f"flag needs an argument: --{name}")
            value = rest.pop(0)
        read = read_value(item, value)
        section = values.setdefault(item.section, {})
        section[item.field] = (*section.get(item.field, ()), *read) if item.kind == "list" else read
    groups = {
        item.name: item.metadata["flags"](**values[item.name])
        for item in fields(settings)
        if item.name in values
    }
    return settings(**groups, **(overrides or {}))


def _split(argument: str) -> tuple[str, str | None]:
    if not argument.startswith("-") or argument in ("-", "--"):
        raise InvalidFlag(f"unexpected argument {argument!r}: every option is a flag")
    body = argument[2:] if argument.startswith("--") else argument[1:]
    if not body or body[0] in "-=":
        raise InvalidFlag(f"bad flag syntax: {argument!r}")
    name, equals, value = body.partition("=")
    return name, value if equals else None


def read_value(item: Flag, text: str) -> Any:
    """Returns the value of a flag's text; raises :class:`InvalidFlag`."""
    if item.kind == "list":
        parts = tuple(part.strip() for part in text.split(",") if part.strip())
        for part in parts:
            _check_choice(item, part)
        return parts
    if item.kind == "boolean":
        return read_boolean(item.name, text)
    if item.kind == "integer":
        # int() would accept underscores and other digits, which Go refuses.
        if not re.fullmatch(r"[+-]?[0-9]{1,18}", text, re.ASCII):
            raise InvalidFlag(f"invalid value {text!r} for flag --{item.name}: not an integer")
        return int(text)
    if item.kind == "duration":
        return read_duration(item.name, text)
    _check_choice(item, text)
    return text


def read_boolean(name: str, text: str) -> bool:
    """Returns a boolean as Go's ParseBool reads it; raises :class:`InvalidFlag`."""
    if text in TRUE:
        return True
    if text in FALSE:
        return False
    raise InvalidFlag(f"invalid boolean value {text!r} for flag --{name}: want true or false")


def read_duration(name: str, text: str) -> float:
    """Returns the seconds of a Go duration such as ``1m30s``; raises :class:`InvalidFlag`."""
    seconds = duration_seconds(text)
    if seconds is None:
        raise InvalidFlag(
            f"invalid duration {text!r} for flag --{name}: want a number with a unit, as 1m30s"
        )
    return seconds


def _check_choice(item: Flag, text: str) -> None:
    if item.choices and text not in item.choices:
        raise InvalidFlag(
            f"invalid value {text!r} for flag --{item.name}: want {_either(item.choices)}"
        )


def _either(words: Iterable[str]) -> str:
    *first, last = words
    return f"{', '.join(first)} or {last}" if first else last


def usage(settings: type[DataclassInstance]) -> str:
    """Returns the help text of flags: grouped, aligned, each with its default."""
    lines: list[str] = []
    group = None
    for item in flags_of(settings):
        if item.group != group:
            group = item.group
            lines.append(f"\n{group}:")
        lines.append(f"  --{item.name}{_placeholder(item)}")
        lines += [f"        {line}" for line in _wrap(f"{item.help}{_default(item)}", 80)]
    return "\n".join(lines).strip("\n") + "\n"


def _placeholder(item: Flag) -> str:
    if item.kind == "boolean":
        return ""
    if item.choices:
        return f"={'|'.join(item.choices)}" + ("[,…]" if item.kind == "list" else "")
    words: dict[FlagKind, str] = {"text": "TEXT", "integer": "N", "duration": "DURATION"}
    return f"={words.get(item.kind, 'TEXT[,…]')}"


def _default(item: Flag) -> str:
    return f" (default {show_default(item)})" if item.default not in ("", (), False) else ""


def show_default(item: Flag) -> str:
    """Returns a flag's default in command line syntax."""
    if item.kind == "boolean":
        return "true" if item.default else "false"
    if item.kind == "list":
        return ",".join(cast("tuple[str, ...]", item.default))
    if item.kind == "duration":
        seconds = cast("float", item.default)
        whole_hours = seconds > 0 and seconds % 3600 == 0
        return f"{seconds / 3600:g}h" if whole_hours else f"{seconds:g}s"
    return str(item.default)


def _wrap(text: str, width: int) -> list[str]:
    lines = [""]
    for word in text.split():
        if lines[-1] and len(lines[-1]) + 1 + len(word) > width:
            lines.append(word)
        else:
            lines[-1] = f"{lines[-1]} {word}" if lines[-1] else word
    return lines
