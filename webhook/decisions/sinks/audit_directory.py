"""Each audit run as one file that appears whole, when the run has ended.

Records of a run gather in a hidden file; the run's last record puts it in
place under its name by one rename. Records of no run are passed over.
"""

from __future__ import annotations

import hashlib
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Final

import orjson

from webhook.decisions import gatekeeper
from webhook.decisions.sinks.sink import RecordsRefused, SinkUnavailable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from webhook.decisions.configuration import Section
    from webhook.decisions.sinks.sink import Sink

SUFFIX: Final = ".ndjson"
_OPEN: Final = ".open"
_PLAIN: Final = re.compile(r"[0-9A-Za-z][0-9A-Za-z:_-]{0,99}")


class AuditDirectory:
    """Keeps the ``max_runs`` newest runs; ``gatekeeper_format`` writes its events instead."""

    def __init__(self, directory: Path, max_runs: int, *, gatekeeper_format: bool) -> None:
        self._directory = directory
        self._max_runs = max_runs
        self._gatekeeper_format = gatekeeper_format

    def send(self, lines: Sequence[bytes]) -> None:
        """Add records to their runs' files, synced, and put finished runs in place."""
        runs: dict[str, list[bytes]] = {}
        finished: list[str] = []
        for line in lines:
            record = _object(line)
            audit_id = record.get("auditID")
            if type(audit_id) is not str:
                continue
            runs.setdefault(audit_id, []).append(line)
            if record.get("eventType") == "audit_finished":
                finished.append(audit_id)
        try:
            for audit_id, found in runs.items():
                self._append(audit_id, found)
            for audit_id in finished:
                self._finish(audit_id)
        except OSError as error:
            raise SinkUnavailable(f"{self._directory}: {error.strerror}") from None

    def close(self) -> None:
        """Nothing is held open."""

    def _append(self, audit_id: str, lines: Iterable[bytes]) -> None:
        self._directory.mkdir(parents=True, exist_ok=True)
        with self._gathering(audit_id).open("ab") as file:
            # A line that a crash left unfinished ends here, and is passed over at the end.
            file.write(b"\n" + b"\n".join(lines) + b"\n")
            _sync(file)

    def _finish(self, audit_id: str) -> None:
        """Write the run without what arrived twice, in place at once."""
        gathering = self._gathering(audit_id)
        target = self._directory / f"{_file_name(audit_id)}{SUFFIX}"
        beside = gathering.with_suffix(".new")
        seen: set[tuple[Any, ...]] = set()
        with gathering.open("rb") as source, beside.open("wb") as file:
            for line in source:
                stripped = line.strip()
                try:
                    record = _object(stripped)
                except RecordsRefused:
                    continue
                key = (record.get("podUID"), record.get("process"), record.get("sequence"))
                if key[2] is not None:
                    if key in seen:
                        continue
                    seen.add(key)
                for event in self._events(stripped):
                    file.write(event + b"\n")
            _sync(file)
        beside.replace(target)
        gathering.unlink()
        self._forget()

    def _events(self, line: bytes) -> list[bytes]:
        return gatekeeper.events(line) if self._gatekeeper_format else [line]

    def _forget(self) -> None:
        files = sorted(self._directory.glob(f"*{SUFFIX}"), key=lambda path: path.stat().st_mtime_ns)
        for path in files[: -self._max_runs]:
            path.unlink()
        descriptor = os.open(self._directory, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def _gathering(self, audit_id: str) -> Path:
        return self._directory / f".{_file_name(audit_id)}{_OPEN}"


def _file_name(audit_id: str) -> str:
    """The run's id where it is a plain name, else a digest of it: never a path."""
    if _PLAIN.fullmatch(audit_id):
        return audit_id
    return hashlib.sha256(audit_id.encode("utf-8", "surrogatepass")).hexdigest()


def _object(line: bytes) -> dict[str, Any]:
    try:
        record = orjson.loads(line)
    except orjson.JSONDecodeError as error:
        raise RecordsRefused(f"not JSON: {error}") from None
    if type(record) is not dict:
        raise RecordsRefused("not a JSON object")
    return record


def _sync(file: BinaryIO) -> None:
    file.flush()
    os.fsync(file.fileno())


def configure(section: Section) -> Callable[[], Sink]:
    """Settings ``directory``, ``maxRuns`` and ``format`` (decision, gatekeeper)."""
    directory = Path(section.text("directory"))
    max_runs = section.integer("maxRuns", 5)
    style = section.choice("format", ("decision", "gatekeeper"), "decision")
    section.finish()
    return lambda: AuditDirectory(directory, max_runs, gatekeeper_format=style == "gatekeeper")
