"""A replica: a process with a real exporter that offers decisions as fast as it is told to.

``python -m tests.decisions.replica CONFIG POD DIRECTORY`` offers until SIGTERM,
then drains and prints its counters as one line of JSON. It keeps its own books:
``DIRECTORY/PROCESS.acknowledged`` gets each acknowledged number as it comes, by
a look at the acknowledgements and not at the exporter's counters, and
``DIRECTORY/PROCESS.queued`` the number of each record that was not dropped.
"""

import asyncio
import json
import signal
import sys
from pathlib import Path
from typing import Any

from tests.patience import PATIENCE_SECONDS
from webhook import log
from webhook.decisions.configuration import load
from webhook.decisions.exporter import transport
from webhook.decisions.exporter.encoding import Origin
from webhook.decisions.exporter.exporter import Exporter
from webhook.decisions.exporter.settings import read_settings
from webhook.decisions.wire.rows import timestamp

GRACE_SECONDS = PATIENCE_SECONDS / 2
PAUSE_SECONDS = 0.002
AT_A_TIME = 8


class Witness:
    """Writes down every acknowledgement that a connection brings."""

    def __init__(self, connection: Any, book: Any) -> None:
        self._connection = connection
        self._book = book

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)

    async def receive(self) -> Any:
        frame = await self._connection.receive()
        number = getattr(frame, "sequence", getattr(frame, "acknowledged", None))
        if number is not None:
            self._book.write(f"{number}\n")
            self._book.flush()
        return frame


class WitnessedTransport:
    """A transport whose connections are witnessed."""

    def __init__(self, transport: Any, book: Any) -> None:
        self._transport = transport
        self._book = book

    async def connect(self) -> Witness:
        return Witness(await self._transport.connect(), self._book)


async def run(config: Path, pod: str, directory: Path) -> None:
    origin = Origin(pod_uid=pod, pod=pod)
    make = transport.make
    # A kill may come between the two: what was acknowledged is then known to have been queued.
    queued = (directory / f"{origin.process}.queued").open("w")
    book = (directory / f"{origin.process}.acknowledged").open("w")
    setattr(transport, "make", lambda address: WitnessedTransport(make(address), book))  # noqa: B010  # a seam of this test alone
    exporter = Exporter(read_settings(load(config)), origin, log.open_log().logger("replica"))
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    print("ready", flush=True)
    offered = 0
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(exporter.run())
        while not stop.is_set():
            taken = []
            for _ in range(AT_A_TIME):
                offered += 1
                if exporter.offer(
                    {
                        "eventType": "decision",
                        "id": exporter.decision_id(),
                        "timestamp": timestamp(),
                        "verdict": "deny",
                        "results": [{"message": "x" * (offered % 700)}],
                    }
                ):
                    taken.append(f"{offered}\n")  # each offer takes the next number
            queued.write("".join(taken))
            queued.flush()
            await asyncio.sleep(PAUSE_SECONDS)
        await exporter.drain(GRACE_SECONDS)
    counters = exporter.counters
    print(
        json.dumps(
            {
                "process": origin.process,
                "offeredByCaller": offered,
                "offered": counters.offered,
                "acknowledged": counters.acknowledged,
                "dropped": counters.dropped,
                "retried": counters.retried,
                "queued": exporter.queued,
            }
        )
    )


if __name__ == "__main__":
    asyncio.run(run(Path(sys.argv[1]), sys.argv[2], Path(sys.argv[3])))
