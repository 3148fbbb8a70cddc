"""When to doubt what one knows: somebody changed what one agreed to, and one has heard no reason.

A replica whose watch of statuses went silent would take back what the others write, by what it knew,
until it finds out that nothing comes any more. So nobody takes back at once what it had agreed to:
first it gives the reason a turn to arrive, then it renews its watches and gives them another, once
the API server has answered them. Whoever
changed it without a reason, a tool or a person, finds it put right after that. Each replica's entry
is doubted for itself: news of one is no reason to take back what another wrote of its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from webhook.api.shapes import objects_of
from webhook.controllers.keeper import TURN_SECONDS

if TYPE_CHECKING:
    from collections.abc import Callable

    from webhook.api.shapes import Json
    from webhook.controllers.status_kinds import LabelledSubject

RENEWAL_SECONDS: Final = 60.0
"""Watches renewed so lately are not renewed again: a tool that undoes each write costs no more."""


class Overwrites:
    """By subject, what was agreed to, and since when that is changed. Used on one event loop."""

    def __init__(self, renew: Callable[[str], None], is_answered: Callable[[str], bool]) -> None:
        """``renew`` begins the watches anew that statuses of a kind come by.

        ``is_answered`` is whether the API server has answered each of them since.
        """
        self._renew = renew
        self._is_answered = is_answered
        self._agreed: dict[LabelledSubject, Any] = {}
        self._doubted: dict[LabelledSubject, float] = {}
        self._renewed: dict[str, float] = {}

    def agree(self, subject: LabelledSubject, entries: Any) -> None:
        """The object says what it should."""
        self._agreed[subject] = entries
        self._doubted.pop(subject, None)

    def forget(self, subject: LabelledSubject) -> None:
        """The object is gone."""
        self._agreed.pop(subject, None)
        self._doubted.pop(subject, None)

    def until(self, subject: LabelledSubject, desired: Any, held: Any, now: float) -> float:
        """Return until when, on the monotonic clock, ``desired`` must not overwrite what is held."""
        agreed = self._agreed.get(subject)
        takes_back = subject in self._agreed and _takes_back(agreed, desired, held)
        if not takes_back and (subject not in self._agreed or not _contests(agreed, desired, held)):
            self._doubted.pop(subject, None)
            return 0.0  # It is we who have heard something new.
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
    """Whether of something that differs we want what we had agreed to."""
    if agreed == desired:
        return True
    before, after, there = _by_id(agreed), _by_id(desired), _by_id(held)
    return any(
        before.get(pod) == after.get(pod)
        for pod in after.keys() | there.keys()
        if after.get(pod) != there.get(pod)
    )


def _contests(agreed: Any, desired: Any, held: Any) -> bool:
    """Whether somebody has changed an entry since we agreed, and we want it to be a third thing.

    What we heard of that Pod may be older than what the other wrote.
    """
    before, after, there = _by_id(agreed), _by_id(desired), _by_id(held)
    return any(
        before.get(pod) != there.get(pod) != after.get(pod) for pod in after.keys() | there.keys()
    )


def _by_id(entries: Any) -> dict[str, Json]:
    """Entries of byPod by the Pod that each is of; a tool may have written what is none."""
    return {str(entry.get("id", "")): entry for entry in objects_of(entries)}
