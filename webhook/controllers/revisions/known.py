"""The kept revisions that count: those written by a replica for the object that owns them.

Their signatures decide (:mod:`webhook.controllers.revisions.keys`). All other revisions are
ignored, whoever made them; nothing else is deleted because of them.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, get_args

from webhook import __version__
from webhook.api import revision
from webhook.api.gvk import text
from webhook.api.revision import InvalidRevision, PolicyRevision, read_revision
from webhook.controllers.revisions.keys import Distrust, RevisionKeys

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from webhook.api.shapes import Json
    from webhook.cluster.store import Change
    from webhook.log import Logger

Unreadable: TypeAlias = Literal["unreadable"]

GONE_MAX: Final = 1000
"""Revisions that went a moment ago, of which an answer may still be on its way."""


class KnownRevisions:
    """The revisions known to this replica from its reads, its writes and its watch."""

    def __init__(self, keys: RevisionKeys, log: Logger) -> None:
        self._keys = keys
        self._log = log
        self._by_uid: dict[str, dict[str, PolicyRevision]] = {}
        self._ignored: dict[str, tuple[str, Distrust | Unreadable]] = {}
        """The revisions that do not count, by name: their UID, and why."""
        self._gone: deque[str] = deque(maxlen=GONE_MAX)

    def of_subject(self, uid: str) -> list[PolicyRevision]:
        """Returns the revisions of an object, with any outcome."""
        return list(self._by_uid.get(uid, {}).values())

    def of(self, uid: str) -> Iterable[PolicyRevision]:
        """Returns the revisions of an object that may be enforced."""
        return [item for item in self.of_subject(uid) if item.may_be_enforced]

    def faulty(self, uid: str) -> list[PolicyRevision]:
        """Returns the revisions that may not be enforced, the newest last."""
        faulty = [item for item in self.of_subject(uid) if not item.may_be_enforced]
        return sorted(faulty, key=lambda item: item.generation)

    def named(self, uid: str, name: str) -> PolicyRevision | None:
        """Returns a revision of an object, with any outcome."""
        return self._by_uid.get(uid, {}).get(name)

    def all(self) -> list[PolicyRevision]:
        """Returns every revision, with any outcome."""
        return [item for of_subject in self._by_uid.values() for item in of_subject.values()]

    def refusal(self, document: Mapping[str, Any], digest: str) -> str:
        """Returns why a generation need not be tried: another replica's trial exceeded its limits.

        Only trials by this version of Waddle count: another version may need less.
        """
        revisions = self._by_uid.get(document["metadata"].get("uid", ""))
        if not revisions or all(item.may_be_enforced for item in revisions.values()):
            return ""
        item = revisions.get(revision.name_of(document, digest))
        outcome = None if item is None else item.outcome
        if outcome is None or outcome.verdict != "ended" or outcome.version != __version__:
            return ""
        return f"{outcome.message} (tried by {outcome.pod})"

    @property
    def ignored(self) -> dict[tuple[str, ...], float]:
        """Returns the numbers of revisions that do not count, by reason."""
        counts = dict.fromkeys((*get_args(Distrust), *get_args(Unreadable)), 0.0)
        for _, why in self._ignored.values():
            counts[why] += 1
        return {(why,): count for why, count in counts.items()}

    def ignored_uid(self, name: str) -> str | None:
        """Returns the UID of a revision of this name that does not count; None without one."""
        ignored = self._ignored.get(name)
        return None if ignored is None else ignored[0]

    def take_change(self, change: Change) -> PolicyRevision | None:
        """Takes a change from the watch; returns its revision, if it counts."""
        name = change.key.name
        if change.kind == "delete":
            self._gone.append(change.object["metadata"].get("uid", ""))
            self._ignored.pop(name, None)
            return self._dropped(change.object)
        try:
            revision = read_revision(change.object)
        except InvalidRevision as error:
            self._ignore(change.object, "unreadable", str(error))
            return self._dropped(change.object)
        if (why := self._keys.distrust(revision)) is not None:
            self._ignore(change.object, why)
            return self._dropped(change.object)
        self._ignored.pop(name, None)
        if not _is_behind(revision, self.named(revision.uid, name)):
            self._by_uid.setdefault(revision.uid, {})[name] = revision
        return revision

    def take(self, document: Json) -> PolicyRevision | None:
        """Takes a revision from an answer, before the watch delivers it; None if it does not count.

        The watch may have been faster: a final outcome is not replaced, and a deleted revision
        stays deleted.
        """
        revision = read_revision(document)
        if self._keys.distrust(revision) is not None:
            return None
        if document["metadata"].get("uid", "") not in self._gone:
            self._ignored.pop(revision.name, None)
            known = self._by_uid.setdefault(revision.uid, {})
            before = known.get(revision.name)
            outcome = None if before is None else before.outcome
            if outcome is None or not outcome.is_final or outcome == revision.outcome:
                known[revision.name] = revision
        return revision

    def forget(self, item: PolicyRevision) -> None:
        """A revision is there no more."""
        of_subject = self._by_uid.get(item.uid, {})
        of_subject.pop(item.name, None)
        if not of_subject:
            self._by_uid.pop(item.uid, None)

    def _dropped(self, item: Mapping[str, Any]) -> PolicyRevision | None:
        """Forgets the revision of this name; returns it, if it was known."""
        known = self.named(text(item, "spec", "subject", "uid"), item["metadata"]["name"])
        if known is not None:
            self.forget(known)
        return known

    def _ignore(self, item: Mapping[str, Any], why: Distrust | Unreadable, error: str = "") -> None:
        """Ignores a revision, and logs that once."""
        metadata = item["metadata"]
        identity = metadata.get("uid", ""), why
        if self._ignored.get(metadata["name"]) != identity:
            self._ignored[metadata["name"]] = identity
            self._log.warning(
                "a PolicyRevision was ignored", revision=metadata["name"], why=why, error=error
            )


def _is_behind(revision: PolicyRevision, known: PolicyRevision | None) -> bool:
    """Whether an event of the watch is older than a read or write of the same object.

    A final outcome is never followed by one that is not final.
    """
    if known is None or known.created != revision.created:
        return False
    before, now = known.outcome, revision.outcome
    return before is not None and before.is_final and (now is None or not now.is_final)
