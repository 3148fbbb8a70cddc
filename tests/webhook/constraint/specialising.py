"""Code of constraints' own, written at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from webhook.constraint.drivers.specialisation import Specialiser

if TYPE_CHECKING:
    from collections.abc import Callable


AFTER = 3


def at_once(job: Callable[[], None]) -> None:
    """Lend the caller's own thread."""
    job()


def specialiser(**options: Any) -> Specialiser:
    """Returns a specialiser that writes at once, after few evaluations."""
    return Specialiser(at_once, **{"evaluations": AFTER, **options})
