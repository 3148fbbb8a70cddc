"""Detects file changes: at once by notifications, or by polling.

A change is a different fingerprint of the files. Notifications only trigger a comparison. After a
lost notification, on a file system without them, or for a second change meanwhile, the delay is at
most the interval.
"""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable, Iterable, Sequence
    from pathlib import Path

DEBOUNCE_MILLISECONDS: Final = 50
"""A copy of many files is one change."""

TURN_SECONDS_MAX: Final = 0.2
"""The longest wait for notifications, in seconds; a change before the wait is found after it."""

LOOK_SECONDS: Final = 1.0
"""The polling interval without notifications: a folder of 100 files takes a millisecond."""

ENTRIES_MAX: Final = 100_000
"""The most files below a path; a directory with more is no policy directory."""

Fingerprint = tuple[tuple[str, int, int, int, int], ...]


def fingerprint(paths: Iterable[Path]) -> Fingerprint:
    """Returns name, device, inode, size and time of change of every file at or below the paths.

    Links are followed, so that the link of a mounted Secret shows a new revision.
    """
    entries: list[tuple[str, int, int, int, int]] = []
    for path in paths:
        _add(entries, str(path))
        for folder, folders, files in os.walk(path):
            # A mounted volume keeps its revisions in folders named ``..``; links lead to them.
            folders[:] = sorted(name for name in folders if not name.startswith(".."))
            for name in sorted(files):
                _add(entries, os.path.join(folder, name))  # noqa: PTH118  # a string is wanted, fast
            if len(entries) > ENTRIES_MAX:
                break
    return tuple(entries)


def _add(entries: list[tuple[str, int, int, int, int]], path: str) -> None:
    try:
        state = os.stat(path)  # noqa: PTH116  # a string is at hand
    except OSError:
        entries.append((path, 0, 0, 0, 0))
    else:
        entries.append((path, state.st_dev, state.st_ino, state.st_size, state.st_mtime_ns))


class Watched:
    """Watched paths with the action after a change."""

    def __init__(
        self,
        paths: Sequence[Path],
        reload: Callable[[], bool],
        beside: Callable[[], None] | None = None,
    ) -> None:
        """``reload`` returns whether it succeeded; if not, it is called again after the interval.

        ``beside`` is called at each look.
        """
        self.paths = tuple(paths)
        self._reload = reload
        self._beside = beside
        self._seen: Fingerprint | None = None
        self._content = False

    def look(self, *, again: bool = False) -> None:
        """Reloads after a change since the last look, or with ``again`` after a failed reload."""
        # The fingerprint precedes the reading: a change meanwhile is a difference at the next
        # look.
        fingerprinted = fingerprint(self.paths)
        if fingerprinted != self._seen or (again and not self._content):
            self._seen = fingerprinted
            self._content = self._reload()
        if self._beside is not None:
            self._beside()


def watch(subjects: Sequence[Watched], stop: threading.Event, *, interval_seconds: float) -> None:
    """Looks at each subject after each notification and at every interval, until stopped."""
    try:
        from watchfiles import watch as notifications  # noqa: PLC0415  # 60 ms after the first load
    except ImportError:  # only the extra `cluster` installs it
        _look_often(subjects, stop, interval_seconds)
        return

    # A file's folder is watched: replacing a file by renaming makes another inode.
    watched = {
        str(path if path.is_dir() else path.parent)
        for subject in subjects
        for path in subject.paths
    }
    turn_seconds = min(interval_seconds, TURN_SECONDS_MAX)
    # At the first turn, too: changes before the start of the notifications were not reported.
    due = 0.0
    while not stop.is_set():
        try:
            for changes in notifications(
                *sorted(folder for folder in watched if os.path.isdir(folder)),  # noqa: PTH112
                watch_filter=None,
                debounce=DEBOUNCE_MILLISECONDS,
                step=DEBOUNCE_MILLISECONDS,
                stop_event=stop,
                rust_timeout=int(turn_seconds * 1000),
                yield_on_timeout=True,
                raise_interrupt=False,
                ignore_permission_denied=True,
            ):
                now = time.monotonic()
                if changes or now >= due:
                    _look(subjects, again=not changes)
                    due = now + interval_seconds
        except OSError:
            # No more watches, or a removed folder: poll at the interval only.
            if not stop.wait(interval_seconds):
                _look(subjects, again=True)


def _look_often(
    subjects: Sequence[Watched], stop: threading.Event, interval_seconds: float
) -> None:
    """Polls by the clock: often for changes, at the interval after failures."""
    due = 0.0
    while not stop.wait(min(interval_seconds, LOOK_SECONDS)):
        now = time.monotonic()
        _look(subjects, again=now >= due)
        if now >= due:
            due = now + interval_seconds


def _look(subjects: Sequence[Watched], *, again: bool) -> None:
    for subject in subjects:
        subject.look(again=again)
