"""The machine's share of an attack: a bare server beside the same flood, and separate cores."""

import contextlib
import datetime as dt
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.behaviour.serving import Server
from tests.patience import PATIENCE_SECONDS, until
from tests.ports import free_port
from webhook.certificates.pairs import self_signed


class Bare(Server):
    """A server that decodes each body and allows at once, as `loadtest.bench.floor` does."""

    def __init__(self, folder: Path) -> None:
        pair = self_signed(["localhost"], dt.datetime.now(dt.UTC))
        (folder / "tls.crt").write_bytes(pair.certificate)
        (folder / "tls.key").write_bytes(pair.key)
        self.ports = {"admission": free_port(), "health": free_port()}
        ports = (str(self.ports["admission"]), str(self.ports["health"]))
        self.process = subprocess.Popen(
            [sys.executable, "-m", "loadtest.bench.floor", *ports, str(folder)]
        )

    def answers(self) -> bool:
        """Whether it takes connections; raises where it has ended."""
        assert self.process.poll() is None, "the bare server has ended"
        with contextlib.suppress(OSError):
            self.connect().close()
            return True
        return False


@contextmanager
def bare() -> Iterator[Server]:
    """A bare server that answers."""
    with tempfile.TemporaryDirectory(prefix="waddle-drill-") as folder:
        found = Bare(Path(folder))
        try:
            until(found.answers, "the bare server answers")
            yield found
        finally:
            found.process.terminate()
            found.process.wait(timeout=PATIENCE_SECONDS)


@contextmanager
def apart(running: Server) -> Iterator[None]:
    """Leave one core to a server, and the others to who measures and who attacks.

    Processes and threads that are started within have the others. A machine of one core has none.
    """
    cores = os.sched_getaffinity(0)
    own, rest = {min(cores)}, cores - {min(cores)}
    if not rest:
        yield
        return
    for thread in Path(f"/proc/{running.process.pid}/task").iterdir():
        with contextlib.suppress(ProcessLookupError):  # It has ended meanwhile.
            os.sched_setaffinity(int(thread.name), own)
    os.sched_setaffinity(0, rest)
    try:
        yield
    finally:
        os.sched_setaffinity(0, cores)
