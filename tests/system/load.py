"""A load of real admissions, through the API server."""

import socket
import ssl
import time
from collections import deque
from collections.abc import Callable

from tests.cluster import Api, ApiError
from tests.patience import PATIENCE_SECONDS, until
from tests.repeating import BREATH_SECONDS, Repeating
from tests.system.replicas import CONFIG_MAPS, config_map

LATE_TURN_SECONDS = 0.2

DRAINING = "--shutdown-delay=6"
"""Of a replica that is stopped under a load: a client that stands still for a while between the
proxy's choice and its request, as on a busy machine, still finds it."""


class Load(Repeating):
    """Admissions of ConfigMaps through the API server, by dry run, until stopped."""

    def __init__(self, api: Api, word: str, threads: int = 4) -> None:
        self.api = api
        self.word = word
        self.denied = 0
        self.wrong: list[str] = []
        super().__init__(*[self.ask] * threads, pause_seconds=BREATH_SECONDS)

    def ask(self) -> None:
        """Sends an admission request."""
        try:
            self.api.request("POST", f"{CONFIG_MAPS}?dryRun=All", config_map(self.word))
        except ApiError as error:
            if f"denied by {self.word}" in error.body:
                self.denied += 1
            else:
                self.wrong.append(str(error))
        else:
            self.wrong.append("admitted")

    def wait_for(self, number: int) -> None:
        """Wait for so many more denials."""
        goal = self.denied + number
        until(lambda: self.denied >= goal, f"{number} denials more: {self.wrong[:3]}")


def is_denied(api: Api, word: str) -> bool:
    """Whether the API server denies a ConfigMap by policy."""
    load = Load(api, word)
    load.ask()
    return load.denied == 1


class LateTrust(Repeating):
    """New connections by the CA bundle of a moment ago, as an API server makes that follows late.

    The load's own connections stay open, and so meet few certificates.
    """

    def __init__(
        self,
        read_bundle: Callable[[], str],
        port: int,
        late_seconds: float,
        *,
        trust_seconds: float,
    ) -> None:
        """``read_bundle`` reads the configuration's bundle; the port is where webhooks are called.

        Nobody promises anything to who is later than ``trust_seconds``, as a busy machine makes us.
        """
        self._read_bundle = read_bundle
        self._port = port
        self._late_seconds = late_seconds
        self._trust_seconds = trust_seconds
        self.trusted = 0
        self.refused: list[str] = []
        self._seen: deque[tuple[float, str]] = deque()
        super().__init__(self._look, pause_seconds=LATE_TURN_SECONDS)

    def _look(self) -> None:
        seen = self._seen
        seen.append((time.monotonic(), self._read_bundle()))
        due = time.monotonic() - self._late_seconds
        while len(seen) > 1 and seen[1][0] <= due:
            seen.popleft()
        if seen[0][0] <= due:
            self._connect(*seen[0])

    def _connect(self, read_at: float, bundle: str) -> None:
        context = ssl.create_default_context(cadata=bundle)
        try:
            with (
                socket.create_connection(("127.0.0.1", self._port), PATIENCE_SECONDS) as plain,
                context.wrap_socket(plain, server_hostname="localhost"),
            ):
                self.trusted += 1
        except ssl.SSLCertVerificationError as error:
            if time.monotonic() - read_at < self._trust_seconds:
                self.refused.append(str(error))
