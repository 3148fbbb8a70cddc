"""The shapes of a load: how many users at which time, as plain values."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Stage:
    """A number of users for some time."""

    seconds: float
    users: int


def average(users: int, seconds: float) -> list[Stage]:
    """The usual load all the time."""
    return [Stage(seconds, users)]


def stress(users: int, seconds: float) -> list[Stage]:
    """Up to four times the usual load in steps, and back, to see it recover."""
    return [Stage(seconds / 5, users * factor) for factor in (1, 2, 3, 4, 1)]


def spike(users: int, seconds: float) -> list[Stage]:
    """Ten times the usual load at once for a fifth of the time, and back."""
    return [
        Stage(seconds * 0.4, users),
        Stage(seconds * 0.2, users * 10),
        Stage(seconds * 0.4, users),
    ]


def soak(users: int, seconds: float) -> list[Stage]:
    """The usual load for long: what leaks shows."""
    return [Stage(seconds, users)]


def breakpoint_(users: int, seconds: float) -> list[Stage]:
    """Returns stages that add users every twentieth of the time, until a threshold breaks."""
    return [Stage(seconds / 20, users * factor) for factor in range(1, 21)]


SHAPES: dict[str, tuple[Callable[[int, float], list[Stage]], float]] = {
    "average": (average, 60),
    "stress": (stress, 300),
    "spike": (spike, 150),
    "soak": (soak, 20 * 60),
    "breakpoint": (breakpoint_, 600),
}
"""Each shape, and its seconds where none are given."""


def stages(shape: str, users: int, seconds: float | None) -> list[Stage]:
    """The stages of a shape. Raises ValueError for one that is not known, or of no size."""
    if shape not in SHAPES:
        raise ValueError(f"no shape {shape!r}; there are {', '.join(SHAPES)}")
    if users < 1:
        raise ValueError(f"{users} users: at least one is needed")
    make, usual_seconds = SHAPES[shape]
    length = usual_seconds if seconds is None else seconds
    if length <= 0:
        raise ValueError(f"{length} seconds: a load takes time")
    return make(users, length)


def at(plan: Sequence[Stage], seconds: float) -> int | None:
    """The index of the stage at a time since the start, None after the last."""
    end = 0.0
    for index, stage in enumerate(plan):
        end += stage.seconds
        if seconds < end:
            return index
    return None
