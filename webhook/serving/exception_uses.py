"""When each exception excused something last, in this process."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from webhook.constraint.result import Responses

ExceptionKey: TypeAlias = tuple[str, str, str]
"""Kind, namespace and name of an exception; no namespace for one of the cluster."""


class ExceptionUses:
    """Told by any thread, taken by one. There are no more than exceptions."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._used: dict[ExceptionKey, float] = {}

    def note(self, responses: Responses) -> None:
        """Whatever excused something of this was used now."""
        excuses = [one.excuse for one in (*responses.excused, *responses.results) if one.excuse]
        if not excuses:
            return
        now = time.time()
        with self._lock:
            for excuse in excuses:
                self._used[excuse.kind, excuse.namespace, excuse.name] = now

    def take(self) -> dict[ExceptionKey, float]:
        """Those since the last call, in seconds since the epoch."""
        if not self._used:
            return {}
        with self._lock:
            taken, self._used = self._used, {}
        return taken
