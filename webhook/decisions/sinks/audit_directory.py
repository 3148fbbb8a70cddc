"""Each audit run as one file that appears complete, after the end of the run.

Records of a run are collected in a hidden file; the run's last record publishes it by one rename. A
run that never ends (its replica was killed) is renamed to ``.partial``. Records without a run are
skipped.
"""

from __future__ import annotations

import hashlib
import re
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

from webhook.decisions.declaration import setting
from webhook.decisions.sinks.ledger import Fresh, Ledger
from webhook.decisions.sinks.sink import Item, MakeSink, SinkUnavailable
from webhook.log import Logger, one_line
from webhook.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from webhook.decisions.configuration import Section

SUFFIX: Final = ".log"
"""Readers of Gatekeeper's export look for files of this name."""

PARTIAL: Final = ".partial"
_OPEN: Final = ".open"

SILENT_SECONDS: Final = 3600.0
"""A run without records for this long is set aside. Sweeps take minutes; a run that continues
later, because the queue was away, gets its file back."""

_PLAIN: Final = re.compile(r"[0-9A-Za-z][0-9A-Za-z:_-]{0,99}")


@dataclass(frozen=True, slots=True)
class AuditDirectorySettings:
    """Where to write, and how many files are kept."""

    directory: Path
    max_runs: int = setting(5)


class AuditDirectory:
    """Keeps the ``max_runs`` newest files, including partial ones."""

    def __init__(self, directory: Path, max_runs: int, origin: str, logger: Logger) -> None:
        self._directory = directory
        self._max_runs = max_runs
        self._logger = logger
        # A reader in another container has the Pod's fsGroup.
        self._ledger = Ledger(directory, ".delivered", origin, logger, file_mode=0o640)

    def send(self, items: Sequence[Item]) -> None:
        """Adds records to their runs' files, synced, and puts finished runs in place."""
        try:
            with self._ledger.locked() as known:
                if not known:
                    for path in self._directory.glob(f".*{_OPEN}"):
                        self._ledger.take_in(path.name)
                if self._take(self._ledger.fresh(items)):
                    self._forget()
        except OSError as error:
            raise SinkUnavailable(f"{self._directory}: {error.strerror}") from None

    def close(self) -> None:
        """Nothing is held open."""

    def _take(self, values: Sequence[Fresh]) -> bool:
        """Deliver records; whether files were put in place."""
        runs: dict[_Run, list[bytes]] = {}
        ended: list[_Run] = []
        for fresh in values:
            audit_id = fresh.value.get("auditID")
            if type(audit_id) is not str or not audit_id:
                continue  # a change that was seen between two runs
            run = _Run(audit_id, fresh.stream)
            if not fresh.sequence and (self._directory / run.final).exists():
                continue  # not numbered, and of an ended run: a repeated delivery
            runs.setdefault(run, []).extend(map(one_line, fresh.lines))
            if fresh.value.get("eventType") == "audit_finished":
                ended.append(run)
        if not runs:
            return False
        ledger = self._ledger
        self._revive(runs)
        for run, lines in runs.items():
            ledger.append(run.open, lines)
        for run in ended:
            ledger.rename(run.open, run.final)
        for name in self._abandoned(runs, ended):
            ledger.rename(name, _partial(name))
        for name in ledger.entries.renames:
            ledger.entries.files.pop(name, None)
        moved = bool(ledger.entries.renames)
        ledger.commit()
        if moved:
            ledger.settle()
        return moved

    def _revive(self, runs: dict[_Run, list[bytes]]) -> None:
        """Takes back files that were set aside too early."""
        ledger = self._ledger
        for run in runs:
            aside = _partial(run.open)
            if run.open not in ledger.entries.files and (self._directory / aside).exists():
                ledger.take_in(aside)
                ledger.entries.files[run.open] = ledger.entries.files.pop(aside)
                ledger.rename(aside, run.open)
        if ledger.entries.renames:
            ledger.commit()
            ledger.settle()

    def _abandoned(self, runs: dict[_Run, list[bytes]], ended: Sequence[_Run]) -> Iterator[str]:
        """Yields files of runs that will not end: the process began another, or no records come."""
        current = {run.open for run in runs} | {run.open for run in ended}
        going_on = {run.digest for run in runs}
        oldest = time.time() - SILENT_SECONDS
        for path in self._directory.glob(f".*{_OPEN}"):
            if path.name in current:
                continue
            if _digest_in(path.name) in going_on or path.stat().st_mtime < oldest:
                yield path.name

    def _forget(self) -> None:
        """Removes the oldest files; a file that cannot be removed stays, and delays nothing."""
        files = [
            (path.stat().st_mtime_ns, path)
            for suffix in (SUFFIX, PARTIAL)
            for path in self._directory.glob(f"[!.]*{suffix}")
            if path.is_file()
        ]
        for _, path in sorted(files)[: -self._max_runs]:
            try:
                path.unlink()
            except OSError as error:
                self._logger.warning(
                    "an old audit report was not removed", file=str(path), error=error.strerror
                )


class _Run:
    """One run of one process, and its file names: two audits with the same id have a file each."""

    __slots__ = ("digest", "final", "open")

    def __init__(self, audit_id: str, stream: tuple[str, str]) -> None:
        self.digest = _digest("/".join(stream))[:12]
        name = audit_id if _PLAIN.fullmatch(audit_id) else _digest(audit_id)
        if not stream[1] or stream[1] not in audit_id:
            name = f"{name}-{self.digest}"
        self.open = f".{name}.{self.digest}{_OPEN}"
        self.final = f"{name}{SUFFIX}"

    def __hash__(self) -> int:
        return hash(self.open)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Run) and self.open == other.open


def _partial(name: str) -> str:
    """Returns the name of a run set aside, from that of its hidden file."""
    return f"{name.removeprefix('.').removesuffix(_OPEN).rpartition('.')[0] or name}{PARTIAL}"


def _digest_in(name: str) -> str:
    return name.removesuffix(_OPEN).rpartition(".")[2]


def _digest(text: str) -> str:
    """Returns a digest, for ids that are unsafe as file names."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def configure(section: Section) -> MakeSink:
    """Settings ``directory`` and ``maxRuns``."""
    directory = Path(section.text("directory"))
    settings = section.read(AuditDirectorySettings, directory=directory)
    section.finish()
    return lambda origin, logger: AuditDirectory(directory, settings.max_runs, origin, logger)
