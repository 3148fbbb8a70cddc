"""Standard output: one line for each record, for clusters whose node agent collects them."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from webhook.decisions.sinks.sink import Item, MakeSink, SinkUnavailable, lines_of
from webhook.log import one_line

if TYPE_CHECKING:
    from collections.abc import Sequence

    from webhook.decisions.configuration import Section


class Stdout:
    """Writes lines to standard output.

    Bytes taken by the pipe count as delivered: there is no acknowledgement behind it.
    """

    __slots__ = ()

    def send(self, items: Sequence[Item]) -> None:
        """Writes and flushes."""
        try:
            sys.stdout.buffer.write(b"\n".join(map(one_line, lines_of(items))) + b"\n")
            sys.stdout.buffer.flush()
        except OSError as error:
            raise SinkUnavailable(f"standard output: {error.strerror}") from None

    def close(self) -> None:
        """Does nothing."""


def configure(section: Section) -> MakeSink:
    """No settings."""
    section.finish()
    return lambda _origin, _logger: Stdout()
