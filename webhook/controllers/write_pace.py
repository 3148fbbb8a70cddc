"""Turns: how those who write without a leader keep out of each other's way."""

from __future__ import annotations

from typing import Final

TURN_SECONDS: Final = 5.0
"""How much longer each next replica waits for those before it to write."""

WRITES_AT_ONCE: Final = 8
"""Requests under way: a start with 2,500 objects takes seconds, and no seat of the API server's
priority level is held for long."""

RETRY_SECONDS_MAX: Final = 60.0
"""How long at most waits what fails again and again, a write or a look: it begins with a turn, or
less, and doubles."""
