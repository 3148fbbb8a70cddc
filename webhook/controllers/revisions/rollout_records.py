"""The records of staged roll-outs that count: signed by a replica, never behind a known record.

A record exists in three places: the status of its constraint or mutator, the PolicyRevision of its
generation, and the Secret of keys (:mod:`.rollout_copies`). Of all three, and of the records that
this replica has seen, the latest counts. So a user with rights on the first two places decides
nothing: unsigned records are ignored, and earlier signed ones are behind (docs/adr/0049).
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any, Final

from webhook.api.encoding import encode
from webhook.api.shapes import Json, annotations_of, object_of, status_of
from webhook.constraint.rollout import ANNOTATION, RolloutRecord, read_record
from webhook.controllers.revisions.rollout_copies import read_copies
from webhook.metrics.policies import ROLLOUT_RECORDS_IGNORED

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from webhook.controllers.revisions.keys import Forged, RevisionKeys
    from webhook.log import Logger
    from webhook.metrics.registry import Registry

FIELD: Final = "rollout"

OPTIONAL: Final = ("action", "steps", "auditedViolations", "increasedAt")
"""Optional fields of a record."""

GENERATIONS_MAX: Final = 4
"""The generations remembered of an object: the one in force, the newest, and those that a restore
of etcd may bring back."""

GONE_OBJECTS_MAX: Final = 1000
"""Objects that went a moment ago; the Secret of keys may still have a copy of their records."""

OBJECTS_MAX: Final = 20_000
"""The most objects remembered: if a kind was deleted, no event reports the end of its objects."""

ENDED: Final = "Ended"
"""The state of a roll-out whose annotation was removed. It is kept in the same places, so that an
earlier record never counts again."""


class RolloutRecords:
    """The roll-out records known to this replica from its reads and writes."""

    def __init__(self, keys: RevisionKeys, log: Logger, registry: Registry | None = None) -> None:
        self._keys = keys
        self._log = log
        self._registry = registry
        self._known: dict[str, dict[int, Json]] = {}
        """The records as written, by the object's UID and generation."""
        self._ignored: dict[str, str] = {}
        self._present: dict[tuple[str, str], str] = {}
        """The UIDs of the objects that are there and have a record, by kind and name."""
        self.gone: deque[str] = deque(maxlen=GONE_OBJECTS_MAX)
        """UIDs of deleted objects."""
        self.listeners: list[Callable[[Mapping[str, Any]], None]] = []
        """Called with an object when a later record of it becomes known."""
        keys.copies_listeners.append(self._take_copies)
        self._take_copies()

    @property
    def is_settled(self) -> bool:
        """Whether the keys are known that decide which records count."""
        return self._keys.is_settled

    def verified(self, document: Mapping[str, Any]) -> Mapping[str, Any]:
        """Returns the object with the record that counts in its status, or without a record.

        Without any key signatures cannot be checked, and records count as written.
        """
        metadata, status = object_of(document.get("metadata")), status_of(document)
        uid, written = metadata.get("uid", ""), status.get(FIELD)
        if not self.is_settled or (written is None and uid not in self._known):
            return document
        self._present[_named(document)] = uid
        before = dict(self._known.get(uid, {}))
        if written is not None:
            self.take(uid, written)
        if ANNOTATION not in annotations_of(document):
            self._end(uid)
        if self._known.get(uid, {}) != before:
            for listener in self.listeners:
                listener(document)
        counts = self.newest(uid, metadata.get("generation", 0))
        if counts == written:
            return document
        others = {name: value for name, value in status.items() if name != FIELD}
        return {**document, "status": others if counts is None else others | {FIELD: counts}}

    def newest(self, uid: str, generation: int) -> Json | None:
        """Returns the record of an object at a generation, or of the newest before it.

        None for none.
        """
        known = self._known.get(uid, {})
        reached = [earlier for earlier in known if earlier <= generation]
        record = known[max(reached)] if reached else None
        return None if record is None or record["state"] == ENDED else record

    def of_generation(self, uid: str, generation: int) -> Json | None:
        """Returns the record to keep beside a generation, including ended ones."""
        return self._known.get(uid, {}).get(generation)

    def is_genuine(self, signature: object, message: bytes) -> bool:
        """Whether a replica has signed the message; without any key all messages count."""
        claimed = signature if type(signature) is str else ""
        return not self._keys.can_sign or self._keys.forged(claimed, message) is None

    def current(self) -> dict[str, Iterable[Json]]:
        """Returns the records of the objects that are there, by their UIDs."""
        uids = self._present.values()
        return {uid: self._known[uid].values() for uid in uids if uid in self._known}

    def forget(self, kind: str, name: str) -> None:
        """Notes that an object was deleted."""
        if uid := self._present.pop((kind, name), ""):
            self.gone.append(uid)

    def signed(self, uid: str, record: RolloutRecord) -> Json:
        """Returns a record with its signature, ready to write."""
        return self._signed(uid, record.document())

    def following(self, uid: str, generation: int) -> int:
        """Returns the sequence number of the next record."""
        known = self.of_generation(uid, generation)
        return 1 if known is None else int(known["sequence"]) + 1

    def take(self, uid: str, written: object) -> None:
        """Takes a record from a status, if it counts and is not behind."""
        record = object_of(written)
        generation, sequence = record.get("observedGeneration"), record.get("sequence", 0)
        if type(generation) is not int or type(sequence) is not int:
            return
        known = self._known.get(uid, {}).get(generation)
        if record == known:
            return
        if self._keys.can_sign and (why := self._forged(uid, record)) is not None:
            self._ignore(uid, str(record.get("signature", ""))[:128], why)
            return
        is_readable = read_record({FIELD: record}) is not None or record.get("state") == ENDED
        if is_readable and (known is None or sequence >= known["sequence"]):
            self._remember(uid, generation, {**record, "sequence": sequence})

    def _take_copies(self) -> None:
        """Takes the records from the Secret, regardless of the key that signed them elsewhere."""
        if self._keys.can_sign:
            for uid, records in read_copies(self._keys.copies).items():
                for record in records:
                    self.take(uid, self._signed(uid, record))

    def _end(self, uid: str) -> None:
        """Ends the roll-out of an object without the annotation: its records never count again."""
        for generation, known in self._known.get(uid, {}).items():
            if known["state"] != ENDED:
                ended = {
                    "observedGeneration": generation,
                    "sequence": known["sequence"] + 1,
                    "state": ENDED,
                }
                self._known[uid][generation] = self._signed(uid, ended)

    def _remember(self, uid: str, generation: int, record: Json) -> None:
        generations = self._known.setdefault(uid, {})
        generations.pop(generation, None)
        generations[generation] = record
        while len(generations) > GENERATIONS_MAX:
            del generations[next(iter(generations))]
        while len(self._known) > OBJECTS_MAX:
            del self._known[next(iter(self._known))]

    def _signed(self, uid: str, record: Json) -> Json:
        signature = self._keys.sign(_message(uid, record))
        return record | {"signature": signature} if signature else record

    def _forged(self, uid: str, record: Json) -> Forged | None:
        signature = record.get("signature", "")
        if type(signature) is not str:
            return "unsigned"
        return self._keys.forged(signature, _message(uid, record))

    def _ignore(self, uid: str, signature: str, why: Forged) -> None:
        """Ignores a record, and logs that once."""
        if self._ignored.get(uid) == signature:
            return
        self._ignored[uid] = signature
        while len(self._ignored) > OBJECTS_MAX:
            del self._ignored[next(iter(self._ignored))]
        if self._registry is not None:
            self._registry.count(ROLLOUT_RECORDS_IGNORED, why)
        self._log.warning("a roll-out record was ignored", uid=uid, why=why)


def _message(uid: str, record: Json) -> bytes:
    """Returns the signed message of a record: no revision's message is an object."""
    unsigned = {name: value for name, value in record.items() if name != "signature"}
    return encode({FIELD: unsigned, "uid": uid}, sort_keys=True)


def _named(document: Mapping[str, Any]) -> tuple[str, str]:
    return document.get("kind", ""), document["metadata"].get("name", "")
