"""A second process that compiles at a start what this one will need last.

Templates are announced before they are added. This process compiles them from the first on, the
other one from the last on, and they meet. Nobody waits for the other process: what it has not
compiled when its turn comes is compiled here, so that its end costs time and no policy.
"""

from __future__ import annotations

import marshal
import os
import threading
from collections import deque
from pathlib import Path
from typing import TYPE_CHECKING, Final

from webhook.trials.job import NO_PROCESS, NoWorker, digest_of
from webhook.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from webhook.trials.job import Job, JobAnswer

LEAST: Final = 64
"""Sources from which on another process pays: until it has begun, this one compiles thirty."""

TOGETHER_MAX: Final = 32
TOGETHER_MIN: Final = 4
"""Sources that are asked for at once: an eighth of what waits, between these. Each time the other
process waits for this one, which computes. What this one needs meanwhile it compiles itself, so
that at the end some of them, 9 ms each, are compiled twice."""

DONE_BYTES_MAX: Final = 32 << 20
"""Code that waits to be taken: that of 1,500 templates of the public library."""

IDLE_SECONDS: Final = 5.0
"""How long the process is kept without work: a cluster's templates are listed page by page."""

_QUOTA: Final = Path("/sys/fs/cgroup/cpu.max")


@dataclass(frozen=True, slots=True)
class Compiled:
    """The code of a rule as another process compiled it, and what it is kept by on disk."""

    key: str
    body: bytes


def processors() -> float:
    """How many processors this process may use at a time, by its affinity and its cgroup's quota."""
    if hasattr(os, "process_cpu_count"):
        count = os.process_cpu_count() or 1
    elif hasattr(os, "sched_getaffinity"):
        count = len(os.sched_getaffinity(0))
    else:
        count = os.cpu_count() or 1
    try:
        quota, period = _QUOTA.read_text(encoding="ascii").split()
        return min(float(count), int(quota) / int(period))
    except (OSError, ValueError):  # "max", or a system without
        return float(count)


class Ahead:
    """Compiles sources in a process of its own, the last of them first. For any thread."""

    def __init__(self, bounds: Job) -> None:
        """``bounds`` are those of each source's compilation, and the built-ins that are disabled."""
        self._bounds: Job = {**bounds, "together": True}
        self._changed = threading.Condition()
        self._waiting: dict[bytes, str] = {}
        self._under_way: set[bytes] = set()
        self._done: dict[bytes, Compiled] = {}
        self._done_bytes = 0
        self._known: set[bytes] = set()
        self._is_running = self._is_stopped = False
        self.count = 0
        """Sources that the other process has compiled so far."""

    def announce(self, texts: Iterable[str]) -> None:
        """Take sources that will be needed, in this order; each is compiled at most once."""
        with self._changed:
            for text in texts:
                if (at := digest_of(text)) not in self._known:
                    self._known.add(at)
                    self._waiting[at] = text
            if self._is_stopped or not self._waiting:
                return
            if self._is_running:
                self._changed.notify()
            elif len(self._waiting) >= LEAST:
                self._is_running = True
                threading.Thread(target=self._run, name="ahead", daemon=True).start()

    def take(self, text: str) -> Compiled | None:
        """Return its code, if it is there by now; from here on nobody else compiles it."""
        at = digest_of(text)
        with self._changed:
            self._waiting.pop(at, None)
            self._under_way.discard(at)
            compiled = self._done.pop(at, None)
            if compiled is not None:
                self._done_bytes -= len(compiled.body)
            return compiled

    def stop(self) -> None:
        """End the process, and forget what nobody took."""
        with self._changed:
            self._is_stopped = True
            self._waiting.clear()
            self._under_way.clear()
            self._done.clear()
            self._known.clear()
            self._changed.notify()

    def _run(self) -> None:
        # Here and not above: what is small is compiled without any process.
        from webhook.trials.process import Worker  # noqa: PLC0415

        worker = Worker(niceness=0)
        try:
            while jobs := self._next():
                self._keep(jobs, worker.ask_all([{**job, **self._bounds} for job in jobs]))
        except NoWorker:
            self.stop()  # it ended, or could not begin: this process goes on alone
        finally:
            worker.stop()
            with self._changed:
                self._is_running = False

    def _next(self) -> list[Job]:
        """Return what is needed last; nothing at the end, or where nothing comes for a while."""
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._is_stopped, IDLE_SECONDS)
            if self._done_bytes > DONE_BYTES_MAX:
                return []
            count = len(self._waiting)
            share = min(max(count // 8, TOGETHER_MIN), TOGETHER_MAX, count)
            some = [self._waiting.popitem() for _ in range(share)]
            self._under_way.update(at for at, _ in some)
            return [{"text": text} for _, text in some]

    def _keep(self, jobs: Sequence[Job], answers: Iterator[JobAnswer]) -> None:
        """Keep the code of what is still wanted; what was not tried waits again."""
        rest = deque(jobs)
        for ended, written, _ in answers:
            if ended == NO_PROCESS:
                raise NoWorker("no process can be started")
            at = digest_of(rest.popleft()["text"])
            # What does not compile, or not within its bounds, this process finds out for itself.
            codes = marshal.loads(written).get("codes", {}) if ended == 0 else {}  # noqa: S302  # our own
            with self._changed:
                if at in self._under_way and at in codes:
                    self._done[at] = Compiled(*codes[at])
                    self._done_bytes += len(self._done[at].body)
                    self.count += 1
                self._under_way.discard(at)
        with self._changed:
            for job in rest:
                if (at := digest_of(job["text"])) in self._under_way:
                    self._under_way.discard(at)
                    self._waiting[at] = job["text"]
