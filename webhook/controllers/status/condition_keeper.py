"""Keeps the conditions of the aggregated objects, and writes Events of changes.

:mod:`webhook.controllers.status.conditions` computes the conditions. This module keeps the state
for that: since when replicas are behind, whether the CRD in the cluster keeps conditions at all,
and each object's current conditions.
"""

from __future__ import annotations

import time
from collections import Counter
from typing import TYPE_CHECKING, Any, Final

from webhook.api import timestamp
from webhook.api.gvk import text
from webhook.api.shapes import Json, conditions_of, status_of
from webhook.controllers.status.conditions import BEHIND_SECONDS, judge, merged, state_of
from webhook.events.policies import EventWriter, event
from webhook.policy_kinds.known import STATUS_KINDS
from webhook.policy_kinds.table import POLICY_KINDS
from webhook.webhook_rules.coverage import REASON, CoverageState

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from webhook.api.pod_status import Pod
    from webhook.controllers.status_kinds import LabelledSubject
    from webhook.log import Logger

PRUNED_SECONDS: Final = 600.0
"""How long conditions are left out after a CRD has pruned them; by then the CRD may be upgraded."""

TROUBLE: Final = frozenset({"Degraded", "Error", REASON})
"""The states that cause Events of type Warning."""

KINDS: Final = {kind.kind: kind.counted_as for kind in STATUS_KINDS if kind.counted_as}
"""The kinds of status whose objects have conditions, with their names in metrics."""


class ConditionKeeper:
    """Merges conditions into statuses, for the writers of statuses."""

    def __init__(self, events: EventWriter, pod: Pod, log: Logger) -> None:
        self.events = events
        self._pod = pod
        self._log = log
        self._states: dict[LabelledSubject, str] = {}
        self._behind: dict[LabelledSubject, tuple[int, float]] = {}
        self._pruned_until: dict[str, float] = {}
        self._kinds: frozenset[str] = frozenset()
        self._counts: dict[tuple[str, ...], float] | None = None

    # --- current objects -----------------------------------------------------------------------

    def seen(self, subject: LabelledSubject, document: Mapping[str, Any] | None) -> None:
        """Takes an object of the cluster; ``document`` is None if it was deleted."""
        state, _ = state_of(conditions_of(status_of(document)))
        if state != self._states.get(subject, ""):
            self._counts = None
            self._states[subject] = state
            if not state:
                del self._states[subject]
        if document is None:
            self._behind.pop(subject, None)

    def follow(self, kinds: Iterable[str]) -> None:
        """Forgets the constraints of all kinds outside ``kinds``: their template was deleted."""
        known = frozenset({"", *(row.kind for row in POLICY_KINDS), *kinds})
        if known == self._kinds:
            return
        self._kinds, self._counts = known, None
        for held in (self._states, self._behind):
            for subject in [item for item in held if item.constraint_kind not in known]:
                del held[subject]

    @property
    def counts(self) -> dict[tuple[str, ...], float]:
        """Returns how many objects are in each state, by metrics' name and state."""
        if self._counts is None:
            counts = Counter((KINDS[item.kind], state) for item, state in self._states.items())
            self._counts = {
                (kind, state.lower()): counts[kind, state]
                for kind in KINDS.values()
                for state in ("Active", "Degraded", "Error", "RolledBack", "Previewed", REASON)
            }
        return self._counts

    # --- desired conditions --------------------------------------------------------------------

    def merged(
        self,
        subject: LabelledSubject,
        document: Mapping[str, Any],
        status: Json | None,
        statuses: Sequence[Mapping[str, Any]],
        pods: Iterable[Mapping[str, Any]],
        coverage: CoverageState | None = None,
    ) -> Json | None:
        """Returns the status to write, with conditions; None if the object has it already.

        ``status`` is the status without conditions, None if nothing else differs. ``coverage`` is
        the share of the policy's requests that the API server sends. Conditions stay unchanged in
        three cases: no replica has reported on the object; replicas are behind, but not yet for
        ``BEHIND_SECONDS``; the CRD has pruned conditions lately.
        """
        now = time.monotonic()
        known = self._behind.get(subject)
        generation = document["metadata"].get("generation", 0)
        overdue = known is not None and known[0] == generation and now - known[1] >= BEHIND_SECONDS
        verdict = judge(document, statuses, pods, overdue=overdue, coverage=coverage)
        if verdict is None or verdict.state == "Progressing":
            if verdict is not None and (known is None or known[0] != generation):
                self._behind[subject] = (generation, now)
            return status
        if not verdict.is_awaited:
            self._behind.pop(subject, None)
        if self._pruned_until.get(subject.kind, 0.0) > now:
            return status
        before: Json = dict(status_of(document))
        conditions = merged(conditions_of(before), verdict, timestamp.now())
        if conditions == before.get("conditions"):
            return status
        return (before if status is None else status) | {"conditions": conditions}

    def due(self, subject: LabelledSubject) -> float | None:
        """Returns when replicas will have been behind too long, on the monotonic clock.

        None for never.
        """
        known = self._behind.get(subject)
        if known is None or known[1] + BEHIND_SECONDS <= time.monotonic():
            return None
        return known[1] + BEHIND_SECONDS

    # --- written conditions --------------------------------------------------------------------

    async def written(
        self,
        subject: LabelledSubject,
        before: Mapping[str, Any],
        desired: Mapping[str, Any],
        after: Mapping[str, Any],
    ) -> None:
        """Writes an Event for a changed condition; ``after`` is the object as stored."""
        if "conditions" not in desired:
            return
        status = status_of(after)
        if "conditions" not in status:
            self._take_pruned(subject)
            return
        conditions = conditions_of(status)
        old = state_of(conditions_of(status_of(before)))
        new = state_of(conditions)
        if not is_reportable(old, new):
            return
        message = next(
            (text(item, "message") for item in conditions if item["type"] == "Active"), ""
        )
        await self.events.write(
            event(
                after,
                new[0],
                message,
                instance=self._pod.name,
                is_warning=new[0] in TROUBLE,
            )
        )

    def _take_pruned(self, subject: LabelledSubject) -> None:
        now = time.monotonic()
        if self._pruned_until.get(subject.kind, 0.0) > now:
            return
        self._pruned_until[subject.kind] = now + PRUNED_SECONDS
        self._log.warning(
            "conditions are not written: the CRD does not keep them", kind=KINDS[subject.kind]
        )


def is_reportable(old: tuple[str, int], new: tuple[str, int]) -> bool:
    """Returns whether a change of state and generation deserves an Event.

    There are three cases: trouble does, also in another generation; any other change of state does;
    the first state of an object does not, unless it is trouble.
    """
    if new[0] in TROUBLE:
        return old != new
    return bool(old[0]) and old[0] != new[0]
