"""The status objects of all replicas, by their subject."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from webhook.api import pod_status
from webhook.controllers.status_kinds import LabelledSubject, is_named_for_owner, subject_of
from webhook.replicas.pods import status_writers_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from webhook.api.pod_status import StatusKind
    from webhook.cluster.store import Change, Object
    from webhook.controllers.object_faults import ObjectFaults
    from webhook.controllers.status.aggregation import Aggregation


class StatusIndex:
    """The status objects of one kind; the receiver of a reflector.

    ``items`` are all, by name. A status with another name than its Pod would give it is not counted
    for any subject, whoever wrote it.
    """

    def __init__(
        self, kind: StatusKind, listener: Aggregation, object_faults: ObjectFaults
    ) -> None:
        self.kind = kind
        self.subjects: dict[LabelledSubject, dict[str, Object]] = {}
        self.items: dict[str, Object] = {}
        self.writers: Counter[str] = Counter()
        """The Pods with the status operation, by UID, with the number of their statuses."""
        self._listener = listener
        self._object_faults = object_faults

    def change(self, changes: Iterable[Change]) -> None:
        """Takes status objects that came, changed or were deleted."""
        self._object_faults.each("status", self.kind.kind, changes, self._change)

    def synced(self) -> None:
        """A whole list is in."""
        self._listener.touch_all()

    def _change(self, change: Change) -> None:
        name = change.key.name
        before = self.items.pop(name, None)
        if before is not None and is_named_for_owner(self.kind, before):
            self._take_out(name, before)
        if change.kind != "set":
            return
        self.items[name] = change.object
        if is_named_for_owner(self.kind, change.object):
            subject = subject_of(self.kind, change.object)
            self.subjects.setdefault(subject, {})[name] = change.object
            self.writers.update(self._writers_of(change.object))
            self._listener.status_changed(subject, change.object)

    def _take_out(self, name: str, item: Object) -> None:
        subject = subject_of(self.kind, item)
        of_subject = self.subjects.get(subject, {})
        of_subject.pop(name, None)
        if not of_subject:
            self.subjects.pop(subject, None)
        for uid in self._writers_of(item):
            self.writers[uid] -= 1
            if not self.writers[uid]:
                del self.writers[uid]
        self._listener.touch(subject)

    def _writers_of(self, item: Object) -> frozenset[str]:
        # A replica with a status for a constraint has one for its template, too.
        return frozenset() if self.kind is pod_status.CONSTRAINT else status_writers_of(item)
