"""Changes of policies at a steady rate, each confirmed by the API server."""

import threading
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Self

from loadtest.enforcement.api import Connection
from tests.cluster import Api, ApiError

APPLY = "?fieldManager=waddle-changes&force=true"
PATIENCE_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Change:
    """A request: an object applied at its path, or deleted there."""

    name: str
    """The name under which it is counted."""

    path: str
    body: dict[str, Any] | None

    def make(self, connection: Connection) -> None:
        """Have the API server accept it; raises ApiError."""
        if self.body is None:
            connection.request("DELETE", self.path)
        else:
            kind = "application/apply-patch+yaml"
            connection.request("PATCH", self.path + APPLY, self.body, kind)


class Churn:
    """Makes changes, so many a minute and evenly spread, until the block ends.

    What was late is caught up. A change that is refused ends it, and raises at
    the end of the block: what changes was meant to be accepted.
    """

    def __init__(self, api: Api, per_minute: float, changes: Iterator[Change]) -> None:
        """0 changes a minute are none at all."""
        self.made: Counter[str] = Counter()
        """The accepted ones, by name."""

        self.seconds: list[float] = []
        """The seconds until each connection was accepted."""

        self._connection = Connection(api)
        self._changes = changes
        self._interval = 60 / per_minute if per_minute else 0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._error: ApiError | OSError | None = None

    def __enter__(self) -> Self:
        if self._interval:
            self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        if self._interval:
            self._thread.join(PATIENCE_SECONDS)
        self._connection.close()
        if self._error is not None:
            raise self._error

    def _run(self) -> None:
        due = time.monotonic()
        while not self._stop.wait(max(0.0, due - time.monotonic())):
            due += self._interval
            change = next(self._changes)
            began = time.monotonic()
            try:
                change.make(self._connection)
            except (ApiError, OSError) as error:
                self._error = error
                return
            self.seconds.append(time.monotonic() - began)
            self.made[change.name] += 1
