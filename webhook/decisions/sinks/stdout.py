"""Standard output: one line a record, for a cluster whose node agent collects them."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from webhook.decisions.sinks.sink import SinkUnavailable

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from webhook.decisions.configuration import Section
    from webhook.decisions.sinks.sink import Sink


class Stdout:
    """Writes lines to standard output.

    What the pipe has taken counts as delivered: nobody acknowledges behind it.
    """

    __slots__ = ()

    def send(self, lines: Sequence[bytes]) -> None:
        """Write and flush."""
        try:
            sys.stdout.buffer.write(b"\n".join(lines) + b"\n")
            sys.stdout.buffer.flush()
        except OSError as error:
            raise SinkUnavailable(f"standard output: {error.strerror}") from None

    def close(self) -> None:
        """Nothing to let go of."""


def configure(section: Section) -> Callable[[], Sink]:
    """No settings."""
    section.finish()
    return Stdout
