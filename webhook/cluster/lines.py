"""Lines of a stream, of any length up to a bound.

aiohttp's own ``readline`` refuses lines over its buffer's limit, which objects
of 3 MiB exceed.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    import aiohttp

LINE_BYTES_MAX: Final = 32 << 20
"""An event holds one object, and etcd takes 1.5 MiB by default; JSON may triple that."""


PARTS_MAX: Final = 4096
"""Parts of a line that are held apart: each costs more than its few bytes."""

LINE_SECONDS_MAX: Final = 60.0
"""From a line's first byte to its end. One that drips is never silent, and never whole."""


class LineTooLong(Exception):
    """The stream is no stream of events."""


async def read_lines(
    content: aiohttp.StreamReader, line_seconds_max: float = LINE_SECONDS_MAX
) -> AsyncGenerator[bytes, None]:
    """Each line without its end; what is left at the end of the stream was torn, and is dropped.

    Raises :class:`LineTooLong`, for a line that is so in bytes or in time.
    """
    pending: list[bytes] = []
    length = 0
    begun = time.monotonic()
    async for chunk in content.iter_any():
        if not length:
            begun = time.monotonic()
        elif time.monotonic() - begun > line_seconds_max:
            raise LineTooLong(f"a line that takes over {line_seconds_max:g} s")
        first, *rest = chunk.split(b"\n")
        pending.append(first)
        length += len(first)
        if len(pending) > PARTS_MAX:
            pending = [b"".join(pending)]
        if length > LINE_BYTES_MAX:
            raise LineTooLong(f"a line of over {LINE_BYTES_MAX} bytes")
        if not rest:
            continue
        *whole, last = rest
        if line := b"".join(pending):
            yield line
        for line in whole:
            if line:
                yield line
        pending, length = [last], len(last)
