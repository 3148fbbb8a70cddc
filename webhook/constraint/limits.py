"""What one review may spend."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds of one review, and what it lends its templates.

    ``deadline`` is in seconds on :func:`time.monotonic`'s clock, None for none.
    ``steps`` bounds the work of one template, in units of about 50 ns, None for
    the engine's own default. ``print_`` receives each line that a policy prints,
    with its place.
    """

    deadline: float | None = None
    steps: int | None = None
    print_: Callable[[Any, str], None] | None = None


UNLIMITED: Final = Limits()
"""No deadline, and the engine's own budget of work."""
