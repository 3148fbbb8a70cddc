"""A second process that compiles at start the policies that this process needs last.

Templates are announced before they are added. This process compiles them from the first on, the
other one from the last on, until they meet. This process never waits for the other one: it compiles
every source itself that is not ready in its turn. So a failure of the other process costs time, but
no policy.
"""

from __future__ import annotations

import marshal
import os
import threading
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

from webhook.trials.job import NO_PROCESS, Job, JobAnswer, NoWorker, digest_of
from webhook.values import dataclass

LEAST: Final = 64
"""The number of sources from which a second process pays: until it has started, this one compiles
thirty."""

TOGETHER_MAX: Final = 32
TOGETHER_MIN: Final = 4
"""The bounds of the number of sources requested at once, which is an eighth of the waiting ones.
Each time the other process waits for this one, which computes. Meanwhile this one may compile the
same sources, so that at the end some of them, 9 ms each, are compiled twice."""

DONE_BYTES_MAX: Final = 32 << 20
"""Code that waits to be taken: that of 1,500 templates of the public library."""

IDLE_SECONDS: Final = 5.0
"""How long the process is kept without work: a cluster's templates are listed page by page."""

_QUOTA: Final = Path("/sys/fs/cgroup/cpu.max")


@dataclass(frozen=True, slots=True)
class Compiled:
    """The code of a rule from another process, with its key in the cache on disk."""

    key: str
    body: bytes


def processors() -> float:
    """Returns how many processors this process may use, by its affinity and its cgroup's quota."""
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
    """Compiles sources in another process, the last of them first. For any thread."""

    def __init__(self, bounds: Job) -> None:
        """``bounds`` are the limits of each compilation, and the disabled built-ins."""
        self._bounds: Job = {**bounds, "together": True}
        self._changed = threading.Condition()
        self._waiting: dict[bytes, str] = {}
        self._under_way: set[bytes] = set()
        self._done: dict[bytes, Compiled] = {}
        self._done_bytes = 0
        self._known: set[bytes] = set()
        self._is_running = self._is_stopped = False
        self.count = 0
        """The number of sources compiled by the other process so far."""

    def announce(self, texts: Iterable[str]) -> None:
        """Takes sources in the order in which they will be needed; each is compiled at most once."""
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
        """Returns the code of a source, if ready; the other process does not compile it any more."""
        at = digest_of(text)
        with self._changed:
            self._waiting.pop(at, None)
            self._under_way.discard(at)
            compiled = self._done.pop(at, None)
            if compiled is not None:
                self._done_bytes -= len(compiled.body)
            return compiled

    def stop(self) -> None:
        """Ends the process, and drops unused code."""
        with self._changed:
            self._is_stopped = True
            self._waiting.clear()
            self._under_way.clear()
            self._done.clear()
            self._known.clear()
            self._changed.notify()

    def _run(self) -> None:
        # Imported here: few sources are compiled without any process.
        from webhook.trials.process import Worker  # noqa: PLC0415

        worker = Worker(niceness=0)
        try:
            while jobs := self._next():
                self._keep(jobs, worker.ask_all([{**job, **self._bounds} for job in jobs]))
        except NoWorker:
            self.stop()  # it ended, or could not begin: this process continues alone
        finally:
            worker.stop()
            with self._changed:
                self._is_running = False

    def _next(self) -> list[Job]:
        """Returns the sources needed last; none at the end, or without new sources for a while."""
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
        """Keeps code that is still needed; sources that were not tried wait again."""
        rest = deque(jobs)
        for ended, written, _ in answers:
            if ended == NO_PROCESS:
                raise NoWorker("no process can be started")
            at = digest_of(rest.popleft()["text"])
            # This process finds compile errors and exceeded limits itself.
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
