"""Changes everything of a value that a read set does not name, so that who reads it is found out."""

from random import Random
from typing import Any

from webhook.reads.read_set import EVERY_KEY, ReadSet
from webhook.reads.text_tests import TEXT_MAX, outcome

_RUBBISH: tuple[Any, ...] = (
    None,
    True,
    False,
    0,
    -7.5,
    "",
    "rubbish",
    [],
    {},
    ["rubbish", 1],
    {"name": "rubbish", "spec": {"containers": [{"image": "rubbish"}]}},
)


def scrambled(value: Any, reads: ReadSet | None, random: Random) -> Any:
    """The value with the same in what is read, and anything elsewhere."""
    if reads is None:
        return random.choice(_RUBBISH)
    if reads.whole:
        return value
    if reads.tests and isinstance(value, str):
        return _tested_alike(value, reads, random)
    if not (reads.scalar or reads.tests or (reads.children and isinstance(value, (dict, list)))):
        others = [one for one in _RUBBISH if one is not False]
        if reads.children:  # the fields read below it are missing
            others = [one for one in others if not isinstance(one, (dict, list))]
        return value if value is False else random.choice(others)
    if isinstance(value, list):
        every = reads.at(EVERY_KEY)
        if EVERY_KEY not in reads.children:
            return [random.choice(_RUBBISH) for _ in range(random.randrange(3))]
        return [scrambled(item, every, random) for item in value]
    if not isinstance(value, dict):
        return value
    changed = {}
    for key, item in value.items():
        below = reads.at(key)
        if below is not None or random.random() < 0.5:
            changed[key] = scrambled(item, below, random)
    if EVERY_KEY not in reads.children:
        for name in ("rubbish", "name", "spec", "labels", "image", "operation", "userInfo"):
            if name not in changed and reads.at(name) is None and random.random() < 0.5:
                changed[name] = random.choice(_RUBBISH)
    return changed


def _tested_alike(text: str, reads: ReadSet, random: Random) -> str:
    """Another text with the same results of all tests; this one if none is found."""
    parts = ["", "a", "x/y", ":", "*", *(step.operand for test in reads.tests for step in test)]
    for _ in range(20):
        at, until = sorted(random.randrange(len(text) + 1) for _ in range(2))
        other = text[:at] + random.choice(parts) + text[until:]
        alike = all(outcome(test, other) == outcome(test, text) for test in reads.tests)
        if other != text and len(text) <= TEXT_MAX >= len(other) and alike:
            return other
    return text


def mutated(value: Any, random: Random) -> Any:
    """An object near this one: what is read of it varies, too."""
    chance = random.random()
    if chance < 0.02:
        return random.choice(_RUBBISH)
    if isinstance(value, dict):
        return {key: mutated(item, random) for key, item in value.items() if random.random() > 0.03}
    if isinstance(value, list):
        items = [mutated(item, random) for item in value]
        return items + items[:1] if chance > 0.95 else items
    return value
