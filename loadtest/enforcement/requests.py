"""Requests by the API server's own account: its audit log."""

import json
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from loadtest.enforcement.systems import System

WRITES = frozenset({"create", "update", "patch", "delete", "deletecollection"})

QUIET_SECONDS = 3.0
"""A change is over when nothing has been written for so long."""

OVER_SECONDS_MAX = 60.0
POLL_SECONDS = 0.1


def counted(lines: Iterable[str], agent: str) -> dict[str, int]:
    """Returns the writes of agents with this prefix, by verb and resource, with refused ones."""
    found: Counter[str] = Counter()
    for line in lines:
        event: Mapping[str, Any] = json.loads(line)
        if event["verb"] in WRITES and event.get("userAgent", "").startswith(agent):
            reference = event["objectRef"]
            resource = reference["resource"]
            if reference.get("apiGroup") == "constraints.gatekeeper.sh":
                resource = "constraints"
            subresource = reference.get("subresource")
            found[f"{event['verb']} {resource}{f'/{subresource}' if subresource else ''}"] += 1
    return dict(found)


class Ledger:
    """The writes of a system since a moment."""

    def __init__(self, system: System) -> None:
        """From now on."""
        self._log = system.plane.audit_log
        self._agent = system.agent
        self._begin = self._log.stat().st_size

    def writes(self) -> dict[str, int]:
        """The writes so far."""
        with self._log.open("rb") as log:
            log.seek(self._begin)
            # The last line may be half there.
            whole = log.read().decode().rpartition("\n")[0]
        return counted(whole.splitlines(), self._agent)

    def wait_quiet(self) -> dict[str, int]:
        """All writes, once nothing has been written for a while."""
        began = since = time.monotonic()
        found = self.writes()
        while time.monotonic() - since < QUIET_SECONDS:
            time.sleep(POLL_SECONDS)
            now = self.writes()
            if now != found:
                found, since = now, time.monotonic()
            if since - began > OVER_SECONDS_MAX:
                raise TimeoutError(f"{self._agent} writes without end: {found}")
        return found
