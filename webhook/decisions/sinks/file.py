"""A file with rotation by size and age, each batch synced before it counts as delivered."""

from __future__ import annotations

import contextlib
import time
from pathlib import Path
from typing import TYPE_CHECKING

from webhook.decisions.declaration import setting
from webhook.decisions.sinks.ledger import Ledger
from webhook.decisions.sinks.sink import Item, MakeSink, SinkUnavailable
from webhook.log import Logger, one_line
from webhook.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Sequence

    from webhook.decisions.configuration import Section


@dataclass(frozen=True, slots=True)
class FileSettings:
    """The path and the limits for rotation; ``max_files`` includes the current file."""

    path: Path
    max_bytes: int = setting(64 * 1024 * 1024, least=1024)
    max_age_seconds: float = setting(24 * 3600.0, least=1)
    max_files: int = setting(8)


class RotatingFile:
    """Appends lines, each once; ``path.1`` is the youngest of the rotated files.

    Other queues may write to the same path: one batch at a time, and none cuts off lines of
    another.
    """

    def __init__(self, settings: FileSettings, origin: str, logger: Logger) -> None:
        self._settings = settings
        path = settings.path
        self._ledger = Ledger(path.parent, f".{path.name}.delivered", origin, logger)

    def send(self, items: Sequence[Item]) -> None:
        """Append and sync; a batch is never split between two files."""
        path = self._settings.path
        ledger = self._ledger
        try:
            with ledger.locked() as known:
                if not known:
                    ledger.take_in(path.name)
                lines = [one_line(line) for fresh in ledger.fresh(items) for line in fresh.lines]
                if not lines:
                    return
                if self._is_due(sum(map(len, lines)) + len(lines)):
                    self._rotate()
                ledger.append(path.name, lines)
                ledger.commit()
                self._aside.unlink(missing_ok=True)
        except OSError as error:
            raise SinkUnavailable(f"{path}: {error.strerror}") from None

    def close(self) -> None:
        """Nothing is held open."""

    @property
    def _aside(self) -> Path:
        """The only file, while its successor is not committed: its inode must not be used again."""
        return self._settings.path.with_name(f".{self._settings.path.name}.rotated")

    def _is_due(self, needed: int) -> bool:
        extent = self._ledger.extent(self._settings.path.name)
        if extent is None or not extent.size:
            return False
        return (
            time.time() - extent.began >= self._settings.max_age_seconds
            or extent.size + needed > self._settings.max_bytes
        )

    def _rotate(self) -> None:
        path = self._settings.path
        last = self._settings.max_files - 1
        for number in range(last - 1, 0, -1):
            with contextlib.suppress(FileNotFoundError):
                source = path.with_name(f"{path.name}.{number}")
                source.replace(path.with_name(f"{path.name}.{number + 1}"))
        path.replace(path.with_name(f"{path.name}.1") if last else self._aside)


def configure(section: Section) -> MakeSink:
    """Settings ``path``, ``maxBytes``, ``maxAgeSeconds``, ``maxFiles``."""
    settings = section.read(FileSettings, path=Path(section.text("path")))
    section.finish()
    return lambda origin, logger: RotatingFile(settings, origin, logger)
