"""Lines of a stream, of any length up to a bound.

aiohttp's own ``readline`` refuses lines over its buffer's limit, which objects
of 3 MiB exceed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    import aiohttp

LINE_BYTES_MAX: Final = 32 << 20
"""An event holds one object, and etcd takes 1.5 MiB by default; JSON may triple that."""


class LineTooLongError(Exception):
    """The stream is no stream of events."""


async def read_lines(content: aiohttp.StreamReader) -> AsyncGenerator[bytes, None]:
    """Each line without its end; what is left at the end of the stream was torn, and is dropped."""
    pending: list[bytes] = []
    length = 0
    async for chunk in content.iter_any():
        first, *rest = chunk.split(b"\n")
        pending.append(first)
        length += len(first)
        if length > LINE_BYTES_MAX:
            raise LineTooLongError(f"a line of over {LINE_BYTES_MAX} bytes")
        if not rest:
            continue
        *whole, last = rest
        if line := b"".join(pending):
            yield line
        for line in whole:
            if line:
                yield line
        pending, length = [last], len(last)
