"""Delays writes that would undo another writer's change for an unknown reason.

A replica whose watch of statuses has stalled would undo the writes of other replicas, until it
notices the stall. So a replica does not restore agreed content at once. First it waits one turn for
the reason to arrive. Then it renews its watches, and waits one more turn after the API server has
answered them. A change without a reason, by a tool or a person, is undone after that. The entries
of each replica are judged separately: news of one entry is no reason to undo the change of another.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from webhook.api.shapes import Json, objects_of
from webhook.controllers.keeper import TURN_SECONDS

if TYPE_CHECKING:
    from collections.abc import Callable

    from webhook.controllers.status_kinds import LabelledSubject

RENEWAL_SECONDS: Final = 60.0
"""Watches renewed so lately are not renewed again: a tool that undoes each write costs no more."""


class Overwrites:
    """The agreed content of each subject, and since when another writer's content differs.

    Used on one event loop.
    """

    def __init__(self, renew: Callable[[str], None], is_answered: Callable[[str], bool]) -> None:
        """``renew`` restarts the watches that deliver statuses of a kind.

        ``is_answered`` is whether the API server has answered each of them since.
        """
        self._renew = renew
        self._is_answered = is_answered
        self._agreed: dict[LabelledSubject, Any] = {}
        self._doubted: dict[LabelledSubject, float] = {}
        self._renewed: dict[str, float] = {}

    def agree(self, subject: LabelledSubject, entries: Any) -> None:
        """Notes that the object has the desired content."""
        self._agreed[subject] = entries
        self._doubted.pop(subject, None)

    def forget(self, subject: LabelledSubject) -> None:
        """Forgets a deleted object."""
        self._agreed.pop(subject, None)
        self._doubted.pop(subject, None)

    def until(self, subject: LabelledSubject, desired: Any, held: Any, now: float) -> float:
        """Returns until when ``desired`` must not overwrite ``held``, on the monotonic clock."""
        agreed = self._agreed.get(subject)
        takes_back = subject in self._agreed and _takes_back(agreed, desired, held)
        if not takes_back and (subject not in self._agreed or not _contests(agreed, desired, held)):
            self._doubted.pop(subject, None)
            return 0.0  # The news arrived at this replica first.
        began = self._doubted.setdefault(subject, now)
        if now < began + TURN_SECONDS:
            return began + TURN_SECONDS
        if not takes_back:
            return 0.0
        renewed = self._renewed.get(subject.kind)
        if renewed is None or now > renewed + RENEWAL_SECONDS:
            renewed = self._renewed[subject.kind] = now
            self._renew(subject.kind)
        if not self._is_answered(subject.kind):
            return now + TURN_SECONDS
        return max(began, renewed) + TURN_SECONDS


def _takes_back(agreed: Any, desired: Any, held: Any) -> bool:
    """Whether an entry that differs would get its agreed content back."""
    if agreed == desired:
        return True
    before, after, there = _by_id(agreed), _by_id(desired), _by_id(held)
    return any(
        before.get(pod) == after.get(pod)
        for pod in after.keys() | there.keys()
        if after.get(pod) != there.get(pod)
    )


def _contests(agreed: Any, desired: Any, held: Any) -> bool:
    """Whether an entry was changed since it was agreed, and we desire a third content.

    Our status of that Pod may be older than that of the other writer.
    """
    before, after, there = _by_id(agreed), _by_id(desired), _by_id(held)
    return any(
        before.get(pod) != there.get(pod) != after.get(pod) for pod in after.keys() | there.keys()
    )


def _by_id(entries: Any) -> dict[str, Json]:
    """Returns the entries of byPod by their Pod; other tools may have written invalid ones."""
    return {str(entry.get("id", "")): entry for entry in objects_of(entries)}
