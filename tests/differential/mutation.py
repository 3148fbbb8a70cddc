"""Small changes to JSON values: to the inputs and data of known policies."""

import random
from typing import Any

# No strings of digits: OPA takes them for indices into arrays of base documents, and only there.
STRANGE: tuple[Any, ...] = (
    *(None, True, False, 0, 1, -1, 1.5, 10**20, "", "a", "a0", "é", "a.b/c:d", "1Gi", "100m"),
    *([], {}, [[]], [None], {"": 1}, {"name": "x"}, ["a", "b"], [1, "b"], {"a": {"b": [1]}}),
)


def mutated(value: Any, chance: random.Random) -> Any:
    """The value with one place changed; the original is not touched."""
    places = list(_places(value, ()))
    return _changed(value, chance.choice(places), chance)


def _places(value: Any, path: tuple[Any, ...]) -> Any:
    yield path
    if isinstance(value, dict):
        for name, item in value.items():
            yield from _places(item, (*path, name))
    elif isinstance(value, list):
        for at, item in enumerate(value):
            yield from _places(item, (*path, at))


def _changed(value: Any, path: tuple[Any, ...], chance: random.Random) -> Any:
    if path:
        step, *rest = path
        copy = dict(value) if isinstance(value, dict) else list(value)
        copy[step] = _changed(value[step], tuple(rest), chance)
        return copy
    if isinstance(value, dict) and value and chance.random() < 0.5:
        names = list(value)
        name = chance.choice(names)
        if chance.random() < 0.5:
            return {key: item for key, item in value.items() if key != name}
        return {**value, f"{name}x": value[name]}
    if isinstance(value, list) and value and chance.random() < 0.5:
        at = chance.randrange(len(value))
        return value[:at] + value[at + 1 :] if chance.random() < 0.5 else [*value, value[at]]
    if isinstance(value, str) and value and chance.random() < 0.5:
        at = chance.randrange(len(value))
        changed = value[:at] + chance.choice(["", "0", "/", ".", " ", "é", "A"]) + value[at + 1 :]
        return "a" if changed.isdigit() else changed
    if isinstance(value, int) and not isinstance(value, bool) and chance.random() < 0.5:
        return value + chance.choice([-1, 1, 1000, 0.5])
    return chance.choice(STRANGE)
