"""The conditions of the objects that this replica looks after: when they change, and who hears it.

What they are is decided in :mod:`webhook.controllers.status.conditions`; here is what
that needs to remember: since when replicas are behind, whether the cluster's CRD
keeps conditions at all, and what each object's conditions say now.
"""

from __future__ import annotations

import time
from collections import Counter
from typing import TYPE_CHECKING, Any, Final

from webhook.api import timestamp
from webhook.api.gvk import text
from webhook.api.shapes import conditions_of, status_of
from webhook.controllers.status.conditions import BEHIND_SECONDS, judge, merged, state_of
from webhook.events.policies import event
from webhook.policy_kinds.known import STATUS_KINDS
from webhook.policy_kinds.table import POLICY_KINDS
from webhook.webhook_rules.asking import REASON

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from webhook.api.pod_status import Pod
    from webhook.api.shapes import Json
    from webhook.controllers.status_kinds import LabelledSubject
    from webhook.events.policies import EventWriter
    from webhook.log import Logger
    from webhook.webhook_rules.asking import AskedState

PRUNED_SECONDS: Final = 600.0
"""After a CRD has pruned conditions they are left out for so long: it may be upgraded."""

TROUBLE: Final = frozenset({"Degraded", "Error", REASON})

KINDS: Final = {kind.kind: kind.counted_as for kind in STATUS_KINDS if kind.counted_as}
"""The metrics' names of what has conditions, by its kind of status."""


class ConditionKeeper:
    """Remembers what conditions need; called by whoever writes the statuses."""

    def __init__(self, events: EventWriter, pod: Pod, log: Logger) -> None:
        self.events = events
        self._pod = pod
        self._log = log
        self._states: dict[LabelledSubject, str] = {}
        self._behind: dict[LabelledSubject, tuple[int, float]] = {}
        self._pruned_until: dict[str, float] = {}
        self._kinds: frozenset[str] = frozenset()
        self._counts: dict[tuple[str, ...], float] | None = None

    # --- what there is -------------------------------------------------------------------------

    def seen(self, subject: LabelledSubject, document: Mapping[str, Any] | None) -> None:
        """An object as it is now; None when it is gone."""
        state, _ = state_of(conditions_of(status_of(document)))
        if state != self._states.get(subject, ""):
            self._counts = None
            self._states[subject] = state
            if not state:
                del self._states[subject]
        if document is None:
            self._behind.pop(subject, None)

    def follow(self, kinds: Iterable[str]) -> None:
        """Forget the constraints of other kinds: their objects went with their template."""
        known = frozenset({"", *(row.kind for row in POLICY_KINDS), *kinds})
        if known == self._kinds:
            return
        self._kinds, self._counts = known, None
        for held in (self._states, self._behind):
            for subject in [item for item in held if item.constraint_kind not in known]:
                del held[subject]

    @property
    def counts(self) -> dict[tuple[str, ...], float]:
        """How many templates and constraints are in each state, as their conditions say."""
        if self._counts is None:
            counts = Counter((KINDS[item.kind], state) for item, state in self._states.items())
            self._counts = {
                (kind, state.lower()): counts[kind, state]
                for kind in KINDS.values()
                for state in ("Active", "Degraded", "Error", "RolledBack", "Previewed", REASON)
            }
        return self._counts

    # --- what there should be ------------------------------------------------------------------

    def merged(
        self,
        subject: LabelledSubject,
        document: Mapping[str, Any],
        status: Json | None,
        statuses: Sequence[Mapping[str, Any]],
        pods: Iterable[Mapping[str, Any]],
        asking: AskedState | None = None,
    ) -> Json | None:
        """The whole status with its conditions; None where the object has it.

        ``status`` is the one without, None where nothing else differs. ``asking`` says how far the
        API server asks about the object.
        """
        now = time.monotonic()
        known = self._behind.get(subject)
        generation = document["metadata"].get("generation", 0)
        overdue = known is not None and known[0] == generation and now - known[1] >= BEHIND_SECONDS
        verdict = judge(document, statuses, pods, overdue=overdue, asking=asking)
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
        """When to look again, on the monotonic clock: replicas are behind and may be too long."""
        known = self._behind.get(subject)
        if known is None or known[1] + BEHIND_SECONDS <= time.monotonic():
            return None
        return known[1] + BEHIND_SECONDS

    # --- what was written ----------------------------------------------------------------------

    async def written(
        self,
        subject: LabelledSubject,
        before: Mapping[str, Any],
        wanted: Mapping[str, Any],
        after: Mapping[str, Any],
    ) -> None:
        """A status was written by us, and became ``after``: say what changed for better or worse."""
        if "conditions" not in wanted:
            return
        status = status_of(after)
        if "conditions" not in status:
            self._take_pruned(subject)
            return
        conditions = conditions_of(status)
        old = state_of(conditions_of(status_of(before)))
        new = state_of(conditions)
        if not is_news(old, new):
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


def is_news(old: tuple[str, int], new: tuple[str, int]) -> bool:
    """Whether going from one state and generation to another is worth an Event.

    Trouble always is, and its end; that an object is enforced from the first is not.
    """
    if new[0] in TROUBLE:
        return old != new
    return bool(old[0]) and old[0] != new[0]
