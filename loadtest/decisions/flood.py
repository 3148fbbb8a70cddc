"""Offers records as fast as an exporter takes them: `python -m loadtest.decisions.flood URL COUNT`."""

import asyncio
import json
import sys
import time

from webhook import log
from webhook.decisions.configuration import parse
from webhook.decisions.exporter.encoding import Origin
from webhook.decisions.exporter.exporter import Exporter
from webhook.decisions.exporter.settings import read_settings
from webhook.decisions.wire.rows import timestamp

GRACE_SECONDS = 300.0
AT_A_TIME = 100
MESSAGE = "container <app> has no resource limits; " * 5


def record(exporter: Exporter) -> dict[str, object]:
    """A denial of about a kilobyte."""
    return {
        "eventType": "decision",
        "id": exporter.decision_id(),
        "timestamp": timestamp(),
        "verdict": "deny",
        "allowed": False,
        "code": 403,
        "resourceLabels": {"app": "web", "tier": "front"},
        "requestUsername": "system:serviceaccount:ci:deployer",
        "requestUserGroups": ["system:serviceaccounts", "system:authenticated"],
        "results": [
            {
                "constraint": {"kind": "K8sContainerLimits", "name": "limits"},
                "enforcementAction": "deny",
                "message": MESSAGE,
                "details": {},
            }
        ],
    }


async def flood(url: str, count: int) -> dict[str, float]:
    """Send so many; seconds and CPU until all are acknowledged as durable."""
    settings = read_settings(parse(json.dumps({"sidecarURL": url}).encode(), "flood"))
    exporter = Exporter(settings, Origin(pod_uid="flood"), log.open_log().logger("flood"))
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(exporter.run())
        began, cpu = time.perf_counter(), time.process_time()
        for number in range(count):
            await exporter.put(record(exporter))
            if number % AT_A_TIME == 0:
                await asyncio.sleep(0)
        await exporter.drain(GRACE_SECONDS)
        seconds, spent = time.perf_counter() - began, time.process_time() - cpu
    assert exporter.counters.acknowledged == count
    return {"seconds": seconds, "client_cpu_us": spent / count * 1e6}


if __name__ == "__main__":
    print(json.dumps(asyncio.run(flood(sys.argv[1], int(sys.argv[2])))))
