"""``waddle console`` as a process on loopback, for tests of what its users see."""

import http.client
import json
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping
from typing import Any, Self
from urllib.parse import urlencode

from tests.behaviour.serving import Answer
from tests.patience import PATIENCE_SECONDS, until


class RunningConsole:
    """A console on a port of the system's choice."""

    def __init__(self, *arguments: str, environment: Mapping[str, str] | None = None) -> None:
        command = [sys.executable, "-m", "webhook", "console", "--port=0", *arguments]
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, env=environment)
        self.events: list[dict[str, Any]] = []
        self.port = 0
        self._listening = threading.Event()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            event = json.loads(line)
            self.events.append(event)
            if event["msg"] == "the console is ready":
                self.port = int(event["address"].rstrip("/").rpartition(":")[2])
                self._listening.set()
        self._listening.set()

    @property
    def address(self) -> str:
        """Returns the address for a browser."""
        return f"http://localhost:{self.port}"

    def __enter__(self) -> Self:
        assert self._listening.wait(PATIENCE_SECONDS)
        assert self.port, self.events
        return self

    def ready(self) -> Self:
        """Wait until it has something to show."""
        until(lambda: self.get("/readyz").status == 200, "something to show")
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(timeout=PATIENCE_SECONDS)
        self._reader.join()
        assert self.process.stderr is not None
        self.process.stderr.close()
        bugs = [event for event in self.events if "stacktrace" in event]
        assert bugs == [], bugs
        assert code == 0

    def get(self, path: str, headers: Mapping[str, str] | None = None) -> Answer:
        """A page."""
        return self.ask("GET", path, b"", headers or {})

    def json(self, path: str) -> Any:
        """A page's document."""
        answer = self.get(path, {"Accept": "application/json"})
        assert answer.headers["content-type"] == "application/json", (answer.status, answer.body)
        return answer.json()

    def post(self, path: str, form: Mapping[str, str], **headers: str) -> Answer:
        """A form, as a browser sends it."""
        typed = {"Content-Type": "application/x-www-form-urlencoded", **headers}
        return self.ask("POST", path, urlencode(form).encode(), typed)

    def ask(self, method: str, path: str, body: bytes, headers: Mapping[str, str]) -> Answer:
        """Any request."""
        connection = http.client.HTTPConnection("localhost", self.port, timeout=PATIENCE_SECONDS)
        try:
            connection.request(method, path, body, dict(headers))
            return Answer(connection.getresponse())
        finally:
            connection.close()
