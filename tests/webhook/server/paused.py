"""A port whose transport pauses."""

import asyncio
from dataclasses import replace
from typing import Any

from tests.webhook.server.limits import ADMISSION_LIMITS
from webhook.api.admission import AdmissionRequest, AdmissionResponse
from webhook.log import Log
from webhook.metrics.registry import Registry
from webhook.server.application import make_application
from webhook.server.decoding import Decoding
from webhook.server.endpoint import Decide
from webhook.server.http.connection import Connection
from webhook.server.http.hub import Hub
from webhook.server.namespace_label import Exemptions
from webhook.server.undecided import AnswerUnread, answer_unread


class Transport(asyncio.Transport):
    """A transport whose other end is a list."""

    def __init__(self) -> None:
        super().__init__({"peername": ("192.0.2.1", 1), "sockname": ("192.0.2.2", 2)})
        self.sent = b""
        self.closed = False

    def write(self, data: Any) -> None:
        self.sent += bytes(data)

    def close(self) -> None:
        self.closed = True

    abort = close

    def is_closing(self) -> bool:
        return self.closed

    def pause_reading(self) -> None:
        """The test decides when to send."""

    def resume_reading(self) -> None:
        """The test decides when to send."""


class Config:
    """The part of uvicorn's configuration that is used."""

    def __init__(self, application: Any) -> None:
        self.loaded_app = application


def allow(request: AdmissionRequest, query: bytes, received_at: float) -> AdmissionResponse:
    """Answer with the request's uid."""
    return AdmissionResponse(request.uid, allowed=True)


class PausedTransport(Transport):
    """Says whether it is read."""

    def __init__(self) -> None:
        super().__init__()
        self.resumed = asyncio.Event()
        self.resumed.set()

    @property
    def paused(self) -> bool:
        return not self.resumed.is_set()

    def pause_reading(self) -> None:
        self.resumed.clear()

    def resume_reading(self) -> None:
        self.resumed.set()


class Port:
    """A hub whose largest body is a MiB, and connections to it."""

    size = 1024 * 1024

    def __init__(
        self,
        *,
        bodies: int = 1,
        decide: Decide = allow,
        answer_unread: AnswerUnread = answer_unread,
    ) -> None:
        """``bodies`` is the number of the largest bodies that have places at a time."""
        limit = bodies * self.size
        log = Log(list[bytes]().append).logger("test")
        self.hub = Hub(replace(ADMISSION_LIMITS, body_bytes_max=limit), Registry(), log)
        self.application = make_application(
            decide,
            Exemptions(),
            Registry(),
            log,
            decoding=Decoding(body_max=limit),
            answer_unread=answer_unread,
        )
        self.hub.at_once = self.application.at_once

    def connect(self) -> tuple[Connection, PausedTransport]:
        """A connection, and its transport."""
        connection, transport = Connection(self.hub, Config(self.application)), PausedTransport()  # type: ignore[arg-type]
        connection.connection_made(transport)
        return connection, transport

    def is_as_at_the_start(self) -> bool:
        """Whether nothing is left of any connection."""
        hub = self.hub
        nothing = (hub.in_flight, hub.waiting_bytes, hub.connections) == (0, 0, set())
        return nothing and hub.large.is_alone(0)
