"""HTTP: batches as a JSON array or as ndjson, gzip if wanted."""

from __future__ import annotations

import gzip
from typing import TYPE_CHECKING, Final

from webhook.decisions.sinks.http_client import Poster, read_endpoint
from webhook.decisions.sinks.sink import lines_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from webhook.decisions.configuration import Section
    from webhook.decisions.sinks.http_client import Endpoint
    from webhook.decisions.sinks.sink import Item, MakeSink

GZIP_LEVEL: Final = 1
"""Most of the gain at a fraction of the CPU: records repeat their keys."""


class HTTPSink:
    """Posts each batch; any 2xx answer means that all of it was taken."""

    def __init__(
        self, endpoint: Endpoint, *, encoding: str = "json", compress: bool = False
    ) -> None:
        self._poster = Poster(endpoint)
        self._array = encoding == "json"
        self._compress = compress

    def send(self, items: Sequence[Item]) -> None:
        """Post one batch."""
        lines = lines_of(items)
        if self._array:
            body = b"[" + b",".join(lines) + b"]"
            headers = {"Content-Type": "application/json"}
        else:
            body = b"\n".join(lines) + b"\n"
            headers = {"Content-Type": "application/x-ndjson"}
        if self._compress:
            body = gzip.compress(body, GZIP_LEVEL)
            headers["Content-Encoding"] = "gzip"
        self._poster.post(body, headers)

    def close(self) -> None:
        """Close the connection."""
        self._poster.close()


def configure(section: Section) -> MakeSink:
    """Settings of the endpoint, ``encoding`` (json, ndjson) and ``gzip``."""
    endpoint = read_endpoint(section)
    encoding = section.choice("encoding", ("json", "ndjson"), "json")
    compress = section.boolean("gzip")
    section.finish()
    return lambda _origin, _logger: HTTPSink(endpoint, encoding=encoding, compress=compress)
