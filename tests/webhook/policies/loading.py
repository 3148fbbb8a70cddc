"""A loader of policies in files, with everything that it writes to."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from webhook.constraint.drivers.rego import RegoDriver
from webhook.constraint.isolation import Isolation
from webhook.constraint.targets.admission import AdmissionTarget
from webhook.log import Log
from webhook.metrics.policies import RELOAD_SECONDS
from webhook.metrics.registry import Registry
from webhook.policies.loader import PolicyLoader
from webhook.policies.metered import MeteredClient
from webhook.serving.revision import Serving

if TYPE_CHECKING:
    from pathlib import Path


class Loader:
    """A loader with everything that it writes to."""

    def __init__(self, path: Path, *, retries: int = 0, kyverno: str = "off") -> None:
        self.lines: list[bytes] = []
        self.found: list[str] = []
        """The state that a reader of each line finds at that moment."""
        self.registry = Registry()
        self.serving = Serving()
        log = Log(self._write).logger("test")
        self.client = MeteredClient(
            self.registry,
            log,
            targets=[AdmissionTarget()],
            drivers=[RegoDriver()],
            isolation=Isolation(),
        )
        self.loader = PolicyLoader(
            self.client,
            [path],
            self.serving,
            registry=self.registry,
            log=log,
            retries=retries,
            kyverno=kyverno,
        )

    def _write(self, line: bytes) -> None:
        self.lines.append(line)
        self.found.append(self.state())

    def state(self) -> str:
        """Returns all state of policies, without load times."""
        loads = {key: value for key, value in self.registry.gauges.items() if key != RELOAD_SECONDS}
        faults = self.loader.not_ready(), self.loader.faults()
        return repr((loads, self.registry.counters, self.serving.revision, faults))

    @property
    def messages(self) -> list[str]:
        """Returns the logged messages."""
        return [json.loads(line)["msg"] for line in self.lines]
