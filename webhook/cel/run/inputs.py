"""Lists and maps of an evaluation's input: decoded JSON; cel-go makes values when it reads.

So an item that is read twice is two values, which no map has as one key (common/types/provider.go).
"""

from __future__ import annotations

from typing import Any, Final

from webhook.cel.run.meter import Meter
from webhook.cel.run.values import Optional, Value

_AT: Final = "#given"
"""The key of the inputs among the variables: no variable has this name."""

_CONTAINERS: Final = frozenset({dict, list})


class Given:
    """The input's lists and maps by identity, and the copies made where identity matters."""

    __slots__ = ("copies", "ids")

    def __init__(self, variables: dict[Any, Value], meter: Meter) -> None:
        """Each list and map that is met is paid for: synced data may have millions."""
        self.ids: set[int] = set()
        self.copies: dict[int, Value] = {}
        waiting = [value for name, value in variables.items() if type(name) is str]
        while waiting:
            part = waiting.pop()
            if type(part) in _CONTAINERS and id(part) not in self.ids:
                meter.charge(1)
                self.ids.add(id(part))
                waiting.extend(part.values() if type(part) is dict else part)

    def __contains__(self, identity: object) -> bool:
        return identity in self.ids or identity in self.copies

    def read(self, value: Value, meter: Meter) -> Value:
        """Returns a value as read: a list or map of the input is copied at each read."""
        if type(value) is Optional:
            held = self.read(value.value, meter)
            return value if held is value.value else Optional(held)
        if type(value) not in _CONTAINERS or id(value) not in self.ids:
            return value
        meter.charge(1 + len(value))
        copied = value.copy()
        self.copies[id(copied)] = copied
        return copied

    def composed(self, variables: dict[str, Value], name: str, meter: Meter) -> Value:
        """Returns a composed variable; all its reads return the same object."""
        value = variables[name]
        at = f"#{name}"  # which no variable is named
        if at not in variables:
            variables[at] = self.read(value, meter)
        shared = variables[at]
        if shared is not value:
            self.copies[id(shared)] = shared
        return shared


def given_of(variables: dict[Any, Value], meter: Meter) -> Given:
    """Looks up the input of an evaluation once: it is kept among its variables."""
    given = variables.get(_AT)
    if given is None:
        given = variables[_AT] = Given(variables, meter)
    return given
