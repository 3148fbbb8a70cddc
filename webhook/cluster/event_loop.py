"""The event loop that follows a cluster: uvloop's, without the descriptors that it closes twice.

aiohttp makes a connection with a socket object and hands that to the loop. libuv
takes over the descriptor by its number, and closes it by its number; the object is
told to forget the number when its transport closes. uvloop (0.23) does not tell it
where the transport was closed before the two were brought together: a server that
resets a connection just made does that, as one does that is killed, or a load
balancer with nobody behind it. The forgotten object then closes the number a second
time when it is collected, and by then the number may be anybody's in this process:
an admission that has just been accepted ends without an answer. (uvloop's issues 645
and 738 are the same by cancellation.)

uvloop is for Linux (the extra ``cluster`` brings it): without it asyncio's own loop runs.
"""

from __future__ import annotations

import asyncio
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final, TypeVar

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Coroutine

GOODBYE_SECONDS: Final = 0.1
"""Wait for the peer's end of TLS where a connection is closed; by itself uvloop waits 30. Nothing is
lost without it: answers have been read by then."""

_T = TypeVar("_T")

new_event_loop: Callable[[], asyncio.AbstractEventLoop]
"""Makes a loop that answers requests."""

if TYPE_CHECKING or find_spec("uvloop") is not None:
    import uvloop

    new_event_loop = uvloop.new_event_loop

    def is_uvloop(loop: asyncio.AbstractEventLoop) -> bool:
        """Whether a loop is one of uvloop's."""
        return isinstance(loop, uvloop.Loop)

    class EventLoop(uvloop.Loop):
        """uvloop's event loop, to whose connections their descriptors belong alone."""

        def call_exception_handler(self, context: dict[str, Any]) -> None:
            """Tell of an exception that nobody caught; not of what came for a closed connection.

            uvloop's TLS answers a record that arrives after its transport was closed (a peer that
            still sends when we end) on that transport, and calls the error fatal for a connection
            that is no more.
            """
            error = context.get("exception")
            late = type(error) is RuntimeError and str(error).endswith("; the handler is closed")
            if not (late and str(context.get("message")).startswith("Fatal error on SSL protocol")):
                super().call_exception_handler(context)

        async def create_connection(
            self, *arguments: Any, sock: socket.socket | None = None, **options: Any
        ) -> Any:
            """Connect; a socket that is handed in is the transport's from then on, come what may."""
            if options.get("ssl"):
                options.setdefault("ssl_shutdown_timeout", GOODBYE_SECONDS)
            try:
                return await super().create_connection(*arguments, sock=sock, **options)
            finally:
                if sock is not None:
                    sock.detach()

else:
    new_event_loop = asyncio.new_event_loop
    EventLoop = asyncio.SelectorEventLoop

    def is_uvloop(loop: asyncio.AbstractEventLoop) -> bool:
        """Without uvloop none is."""
        del loop
        return False


def run(main: Coroutine[Any, Any, _T]) -> _T:
    """Run a coroutine to its end on such a loop."""
    with asyncio.Runner(loop_factory=EventLoop) as runner:
        return runner.run(_to_the_last_goodbye(main))


async def _to_the_last_goodbye(main: Coroutine[Any, Any, _T]) -> _T:
    """A loop that is closed while TLS waits for a peer's goodbye ends with an OSError (EBUSY)."""
    try:
        return await main
    finally:
        await asyncio.sleep(1.5 * GOODBYE_SECONDS)
