"""Keeps facts about images in an SQLite file, so that a restart sends no requests to registries.

A file that is damaged, of another release or of another program is replaced: its facts can be
fetched again. Only its owner may write it, since its content can make any image verified.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, TypeAlias

from webhook import __version__
from webhook.api.encoding import DecodeError, decode, encode
from webhook.images.kept import ENTRIES_MAX, STALE_SECONDS, Kept
from webhook.images.verification import AuthorityFacts, ImageFacts, ProvenStatement
from webhook.values import dataclass

DIGEST: Final = "digest"
FACTS: Final = "facts"

WAITING_MAX: Final = ENTRIES_MAX
"""The number of unwritten changes at most; changes beyond it are kept in memory alone."""

_BUSY_SECONDS: Final = 5.0
_SCHEMA: Final = """
    CREATE TABLE IF NOT EXISTS release (version TEXT PRIMARY KEY);
    CREATE TABLE IF NOT EXISTS known (
        kind TEXT, key TEXT, made REAL, until REAL, size INTEGER, value BLOB,
        PRIMARY KEY (kind, key)
    ) WITHOUT ROWID;
"""


WaitingChanges: TypeAlias = "dict[tuple[str, str], Kept[Any] | None]"
"""The values to be written, by kind and key; None deletes."""


class UnusableFactsFile(Exception):
    """A file that can be neither read nor created anew; the message says why."""


@dataclass(frozen=True, slots=True)
class KnownRow:
    """A value of the file, with its kind and key."""

    kind: str
    key: str
    kept: Kept[Any]


class FactsFile:
    """The file. ``put`` and ``forget`` only queue.

    ``write`` waits for the disk, so it needs a thread.
    """

    def __init__(self, path: Path) -> None:
        """Opens or replaces the file; raises :class:`UnusableFactsFile`."""
        self._path = path
        self._waiting: WaitingChanges = {}
        try:
            self._connection = _opened(path)
        except sqlite3.Error:
            try:
                _remove(path)
                self._connection = _opened(path)
            except (OSError, sqlite3.Error) as error:
                raise UnusableFactsFile(f"{path}: {error}") from None
        except OSError as error:
            raise UnusableFactsFile(f"{path}: {error.strerror or error}") from None

    def rows(self, now: float) -> Iterator[KnownRow]:
        """Returns the rows that are young enough, oldest first; unreadable rows are skipped."""
        query = "SELECT kind, key, made, until, size, value FROM known WHERE made BETWEEN ? AND ? ORDER BY made"
        try:
            for kind, key, created_at, until, size, value in self._connection.execute(
                query, (now - STALE_SECONDS, now)
            ):
                try:
                    kept = Kept(_read(kind, value), float(created_at), float(until), int(size))
                except (DecodeError, KeyError, TypeError, ValueError):
                    continue
                yield KnownRow(kind, key, kept)
        except sqlite3.Error:
            return

    def put(self, kind: str, key: str, kept: Kept[Any]) -> None:
        """Queues a value for the next ``write``."""
        self._note(kind, key, kept)

    def forget(self, kind: str, key: str) -> None:
        """Queues a deletion for the next ``write``."""
        self._note(kind, key, None)

    def _note(self, kind: str, key: str, kept: Kept[Any] | None) -> None:
        if len(self._waiting) < WAITING_MAX or (kind, key) in self._waiting:
            self._waiting[kind, key] = kept

    def take(self) -> WaitingChanges:
        """Returns the queued changes and clears the queue; called on the thread that queues."""
        waiting, self._waiting = self._waiting, {}
        return waiting

    def write(self, changes: WaitingChanges, now: float) -> None:
        """Writes changes and deletes old rows; raises :class:`UnusableFactsFile`."""
        try:
            with self._connection:
                self._connection.execute("DELETE FROM known WHERE made < ?", (now - STALE_SECONDS,))
                for (kind, key), kept in changes.items():
                    if kept is None:
                        self._connection.execute(
                            "DELETE FROM known WHERE kind = ? AND key = ?", (kind, key)
                        )
                        continue
                    self._connection.execute(
                        "INSERT OR REPLACE INTO known VALUES (?, ?, ?, ?, ?, ?)",
                        (kind, key, kept.stored_at, kept.until, kept.size, _written(kept.value)),
                    )
        except sqlite3.Error as error:
            raise UnusableFactsFile(f"{self._path}: {error}") from None

    def close(self) -> None:
        """Closes the connection; another process may go on with the file."""
        self._connection.close()


def _opened(path: Path) -> sqlite3.Connection:
    """Opens the file with its tables; raises sqlite3.Error if it is of another release."""
    os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
    connection = sqlite3.connect(path, timeout=_BUSY_SECONDS, check_same_thread=False)
    try:
        connection.execute("PRAGMA journal_mode=WAL")
        # Values that a crash loses are fetched again.
        connection.execute("PRAGMA synchronous=NORMAL")
        connection.executescript(_SCHEMA)
        with connection:
            connection.execute("INSERT OR IGNORE INTO release VALUES (?)", (__version__,))
        releases = [version for (version,) in connection.execute("SELECT version FROM release")]
        if releases != [__version__]:
            # Facts of another release may be a mistake of that release.
            raise sqlite3.DatabaseError("it is another release's")
        connection.execute("SELECT kind, key, made, until, size, value FROM known LIMIT 1")
    except sqlite3.Error:
        connection.close()
        raise
    return connection


def _remove(path: Path) -> None:
    for suffix in ("", "-wal", "-shm"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)


def _written(value: str | ImageFacts) -> bytes:
    if isinstance(value, str):
        return encode(value)
    return encode(
        {
            "policies": [
                [
                    {
                        "signed": fact.has_signed,
                        "statements": [
                            [
                                statement.predicate_type,
                                statement.statement,
                                statement.where,
                                statement.signed_at,
                            ]
                            for statement in fact.statements
                        ],
                        "reasons": list(fact.reasons),
                        "signedAt": fact.signed_at,
                    }
                    for fact in facts
                ]
                for facts in value.of_policies
            ],
            "notes": list(value.notes),
        }
    )


def _read(kind: str, value: bytes) -> str | ImageFacts:
    document = decode(value)
    if kind == DIGEST:
        if type(document) is not str:
            raise TypeError("a digest is a string")
        return document
    if kind != FACTS:
        raise ValueError(f"{kind!r} is not a kind")
    return ImageFacts(
        tuple(
            tuple(
                AuthorityFacts(
                    fact["signed"] is True,
                    tuple(ProvenStatement(*statement) for statement in fact["statements"]),
                    tuple(fact["reasons"]),
                    fact["signedAt"],
                )
                for fact in facts
            )
            for facts in document["policies"]
        ),
        tuple(document["notes"]),
    )
