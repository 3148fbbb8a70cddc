"""A connection to an API server, kept open: the measurement has no handshakes."""

import http.client
import json
import time
from typing import Any
from urllib.parse import urlsplit

from tests.cluster import Api, ApiError

REQUEST_SECONDS_MAX = 30.0

IDLE_SECONDS_MAX = 60.0
"""An API server closes what was idle for 90 s (net/http's IdleTimeout as kube-apiserver sets it)."""


class Connection:
    """Requests one after the other."""

    def __init__(self, api: Api) -> None:
        """Connects with the credentials of ``api``."""
        parts = urlsplit(api.server)
        assert parts.hostname is not None
        self._used = time.monotonic()
        self._connection = http.client.HTTPSConnection(
            parts.hostname, parts.port, context=api.context, timeout=REQUEST_SECONDS_MAX
        )

    def close(self) -> None:
        """Leave."""
        self._connection.close()

    def request(
        self, method: str, path: str, body: Any = None, kind: str = "application/json"
    ) -> Any:
        """The decoded answer. Raises ApiError for an answer that is not a success."""
        payload = None if body is None else json.dumps(body).encode()
        headers = {"Content-Type": kind, "Accept": "application/json"}
        if time.monotonic() - self._used > IDLE_SECONDS_MAX:
            self._connection.close()  # the next request opens it anew
        self._used = time.monotonic()
        self._connection.request(method, path, payload, headers)
        answer = self._connection.getresponse()
        content = answer.read()
        if answer.status >= http.client.BAD_REQUEST:
            raise ApiError(answer.status, content.decode())
        return json.loads(content)
