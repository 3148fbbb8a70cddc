"""HTTP: batches as a JSON array, as ndjson or as a chat message, with optional gzip."""

from __future__ import annotations

import gzip
from typing import TYPE_CHECKING, Final

from webhook.decisions.declaration import setting
from webhook.decisions.sinks.chat import SHAPES, message_of
from webhook.decisions.sinks.http_client import Endpoint, Poster, read_endpoint
from webhook.decisions.sinks.sink import Item, MakeSink, lines_of
from webhook.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Sequence

    from webhook.decisions.configuration import Section

GZIP_LEVEL: Final = 1
"""Most of the gain at a fraction of the CPU: records repeat their keys."""


@dataclass(frozen=True, slots=True)
class HTTPSettings:
    """The address and format of posts."""

    endpoint: Endpoint
    encoding: str = setting("json", words=("json", "ndjson", *SHAPES))
    gzip: bool = setting(default=False)


class HTTPSink:
    """Posts each batch; any 2xx answer means that all of it was taken."""

    def __init__(self, settings: HTTPSettings) -> None:
        self._poster = Poster(settings.endpoint)
        self._encoding = settings.encoding
        self._compress = settings.gzip

    def send(self, items: Sequence[Item]) -> None:
        """Posts one batch."""
        lines = lines_of(items)
        headers = {"Content-Type": "application/json"}
        if self._encoding in SHAPES:
            body = message_of(lines, self._encoding)
            if not body:
                return
        elif self._encoding == "json":
            body = b"[" + b",".join(lines) + b"]"
        else:
            body = b"\n".join(lines) + b"\n"
            headers = {"Content-Type": "application/x-ndjson"}
        if self._compress:
            body = gzip.compress(body, GZIP_LEVEL)
            headers["Content-Encoding"] = "gzip"
        self._poster.post(body, headers)

    def close(self) -> None:
        """Closes the connection."""
        self._poster.close()


def configure(section: Section) -> MakeSink:
    """Settings of the endpoint, ``encoding`` (json, ndjson, slack, teams) and ``gzip``."""
    settings = section.read(HTTPSettings, endpoint=read_endpoint(section))
    section.finish()
    return lambda _origin, _logger: HTTPSink(settings)
