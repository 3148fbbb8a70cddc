"""A thread for short background jobs that make reviews cheaper."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from webhook.app.priority import stand_behind

if TYPE_CHECKING:
    from collections.abc import Callable

    from webhook.log import Logger


class JobsThread:
    """One thread, started with the first job; the callers limit the number of waiting jobs."""

    def __init__(self, name: str, without: str, log: Logger) -> None:
        """``without`` is the effect of a dropped job, for the log."""
        self._without = without
        self._log = log
        self._executor = ThreadPoolExecutor(
            max_workers=1, thread_name_prefix=name, initializer=stand_behind
        )

    def submit(self, job: Callable[[], None]) -> None:
        """Runs a job after the jobs before it. Any thread may call it."""
        try:
            self._executor.submit(self._run, job)
        except RuntimeError:  # a review during shutdown
            self._log.debug(f"{self._without}: the process stops")

    def stop(self) -> None:
        """Starts no more jobs; does not wait for the current job."""
        self._executor.shutdown(wait=False, cancel_futures=True)

    def _run(self, job: Callable[[], None]) -> None:
        try:
            job()
        except Exception as error:  # noqa: BLE001  # the thread's boundary: reviews do without it
            self._log.fault(f"bug: {self._without}", error)
