"""Transports: connections from the exporter client to a sidecar, chosen by the URL's scheme.

A transport is one class, registered for its scheme; no other module knows it.
"""

from __future__ import annotations

from dataclasses import field
from importlib import import_module
from typing import TYPE_CHECKING, Final, Protocol, cast

from webhook.values import dataclass

if TYPE_CHECKING:
    from webhook.decisions.wire.framing import Bye, ClientHello, ServerFrame


@dataclass(frozen=True, slots=True)
class TLSFiles:
    """Paths of PEM files, empty for none; ``server_name`` overrides the name to verify."""

    ca: str = ""
    certificate: str = ""
    key: str = ""
    server_name: str = ""


@dataclass(frozen=True, slots=True)
class Address:
    """A ``sidecarURL``, taken apart."""

    scheme: str
    netloc: str
    path: str
    tls: TLSFiles = field(default_factory=TLSFiles)


class SidecarConnection(Protocol):
    """One connection, used by one task that sends and one that receives.

    Every method may raise :class:`OSError` or
    :class:`~webhook.decisions.wire.framing.ProtocolError`; the connection is unusable afterwards.
    """

    async def hello(self, hello: ClientHello) -> None:
        """Sends the first frame."""

    async def send(self, lines: bytes | memoryview) -> None:
        """Sends records, each with its newline; returns when the peer may be given more.

        Data kept until then must be copied: its memory is reused after the acknowledgement.
        """

    async def bye(self, bye: Bye) -> None:
        """Sends the last frame."""

    async def receive(self) -> ServerFrame:
        """Returns the next frame of the sidecar."""

    async def close(self) -> None:
        """Closes the connection at once, even during a transfer."""


class Transport(Protocol):
    """Makes connections to one address; constructed with an :class:`Address`."""

    def __init__(self, address: Address) -> None: ...

    async def connect(self) -> SidecarConnection:
        """Connect; raises :class:`OSError`. The caller limits the time."""


_REGISTERED: Final[dict[str, str]] = {
    "unix": "webhook.decisions.exporter.unix:UnixTransport",
    "grpc": "webhook.decisions.exporter.grpc:GRPCTransport",
}


def register(scheme: str, target: str) -> None:
    """Makes ``scheme://`` URLs use the class that ``module:name`` names, imported when needed."""
    _REGISTERED[scheme] = target


def schemes() -> tuple[str, ...]:
    """Returns the schemes known, sorted."""
    return tuple(sorted(_REGISTERED))


def load(scheme: str) -> type[Transport]:
    """Returns the transport of a known scheme; raises :class:`ImportError` without its extra."""
    module, _, name = _REGISTERED[scheme].partition(":")
    return cast("type[Transport]", getattr(import_module(module), name))


def make(address: Address) -> Transport:
    """Returns the transport for an address of a known scheme."""
    return load(address.scheme)(address)
