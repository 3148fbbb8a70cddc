"""Arguments as programs in Go take them: ``-o=yaml`` and ``--verbose=true``, spelled for click.

gator, opa, conftest and kubectl read their flags by pflag, and what calls them is written so.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import click

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_TRUE: Final = frozenset({"1", "t", "T", "true", "TRUE", "True"})
_FALSE: Final = frozenset({"0", "f", "F", "false", "FALSE", "False"})
"""The texts that Go's strconv.ParseBool takes."""


def spelled(arguments: Sequence[str], command: click.Command) -> list[str]:
    """The arguments of a command as click spells them; what it will refuse is left as it is."""
    options = {
        name: option
        for option in command.params
        if isinstance(option, click.Option)
        for name in option.opts
    }
    words: list[str] = []
    rest = iter(arguments)
    for argument in rest:
        if argument == "--":
            return [*words, argument, *rest]
        name, equals, value = argument.partition("=")
        option = options.get(name)
        if option is None or not equals:
            words.append(argument)
            words += _value_of(options.get(argument), rest)
        elif option.is_flag:
            words += _switch(name, value)
        elif name.startswith("--"):
            words.append(argument)
        else:
            words += [name, value]
    return words


def _value_of(option: click.Option | None, rest: Iterator[str]) -> list[str]:
    """Return the value that follows an option, whatever it looks like."""
    if option is None or option.is_flag:
        return []
    value = next(rest, None)
    return [] if value is None else [value]


def _switch(name: str, value: str) -> list[str]:
    if value in _FALSE:
        return []
    return [name] if value in _TRUE else [f"{name}={value}"]
