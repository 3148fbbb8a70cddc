"""What a file's references may write out to: few lines that name each other make gigabytes."""

from __future__ import annotations

from typing import Final

from webhook.parsers.errors import ParseError

EXPANDED_MAX: Final = 16 << 20
"""Characters that the references of one file may write out to; files themselves have some KiB."""

RESOLVED_MAX: Final = 200_000
"""References that are followed: so many take 0.6 s of processor time."""


class Expansion:
    """What the references of one file have written out to."""

    __slots__ = ("_characters", "_references")

    def __init__(self) -> None:
        self._characters = 0
        self._references = 0

    def charge(self, characters: int) -> None:
        """Count a reference that is written out; raises :class:`ParseError` beyond the bounds."""
        self._characters += characters
        self._references += 1
        if self._characters > EXPANDED_MAX:
            raise ParseError(
                f"references write out to more than {EXPANDED_MAX} characters: "
                "write the values out, or split the file"
            )
        if self._references > RESOLVED_MAX:
            raise ParseError(f"more than {RESOLVED_MAX} references are followed: split the file")
