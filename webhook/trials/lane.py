"""Trials that wait for each other, and not for those of another lane."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from webhook.trials.process import Branch, Worker


class Turn:
    """A lock whose next holder is who waits for it, rather than who has just had it."""

    def __init__(self) -> None:
        self._next = threading.Lock()
        self._lock = threading.Lock()

    def __enter__(self) -> None:
        with self._next:
            self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()


class Lane:
    """Trials that wait for each other, and their process."""

    def __init__(self, memory_bytes: int, *, keeps: bool) -> None:
        """``keeps`` is whether the process stays for the next trial."""
        self.memory_bytes = memory_bytes
        self.keeps = keeps
        self.lock = Turn()
        self.worker: Worker | Branch | None = None

    def stop(self) -> None:
        """End the process."""
        if self.worker is not None:
            self.worker.stop()
