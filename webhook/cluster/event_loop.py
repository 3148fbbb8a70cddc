"""The event loop for the API server's connections.

Uvloop's, with a fix for a descriptor that it closes twice.

aiohttp passes a socket object to the loop. libuv takes over the descriptor number and closes it. If
the transport is closed before uvloop (0.23) has linked the two, the socket object is not detached;
a server that resets a new connection causes that. When the socket object is collected, it closes
the number again. By then the number may belong to another connection, for example an admission,
which ends without an answer. (uvloop's issues 645 and 738 have the same cause by cancellation.)

uvloop is for Linux (the extra ``cluster`` installs it): without it asyncio's own loop runs.
"""

from __future__ import annotations

import asyncio
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final, TypeVar

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Coroutine

GOODBYE_SECONDS: Final = 0.1
"""How long a closing connection waits for the peer's TLS close; uvloop's default is 30. All answers
have been read by then.
"""

_T = TypeVar("_T")

new_event_loop: Callable[[], asyncio.AbstractEventLoop]
"""Makes an event loop for a server of requests."""

if TYPE_CHECKING or find_spec("uvloop") is not None:
    import uvloop

    new_event_loop = uvloop.new_event_loop

    def is_uvloop(loop: asyncio.AbstractEventLoop) -> bool:
        """Whether a loop is one of uvloop's."""
        return isinstance(loop, uvloop.Loop)

    class EventLoop(uvloop.Loop):
        """uvloop's event loop, with sole ownership of its connections' descriptors."""

        def call_exception_handler(self, context: dict[str, Any]) -> None:
            """Reports an unhandled exception, except those for closed connections.

            uvloop's TLS reports a record that arrives after its transport was closed as a fatal
            error, though the connection has ended.
            """
            error = context.get("exception")
            late = type(error) is RuntimeError and str(error).endswith("; the handler is closed")
            if not (late and str(context.get("message")).startswith("Fatal error on SSL protocol")):
                super().call_exception_handler(context)

        async def create_connection(
            self, *arguments: Any, sock: socket.socket | None = None, **options: Any
        ) -> Any:
            """Connects; a socket passed as ``sock`` belongs to the transport from then on."""
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
    """Runs a coroutine to its end on such a loop."""
    with asyncio.Runner(loop_factory=EventLoop) as runner:
        return runner.run(_to_the_last_goodbye(main))


async def _to_the_last_goodbye(main: Coroutine[Any, Any, _T]) -> _T:
    """Runs a coroutine; ignores the OSError (EBUSY) of closing a loop while TLS waits for its peer."""
    try:
        return await main
    finally:
        await asyncio.sleep(1.5 * GOODBYE_SECONDS)
