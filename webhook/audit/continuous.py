"""Between sweeps, changed objects are reviewed and the totals corrected.

A changed object is reviewed by every constraint; for a changed constraint, the kinds that it may
match are listed again. The next sweep covers changes without an event (of referential data or a
Namespace's labels, lost events).
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from webhook.audit.kinds import group_kinds
from webhook.audit.sink import Audited, AuditSink, identity_of
from webhook.cluster.errors import ApiError, ApiUnreachable
from webhook.constraint import enforcement
from webhook.constraint.result import Responses

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

    from webhook.api.gvk import GroupVersionKind
    from webhook.audit.ledger import AuditLedger
    from webhook.audit.reviewer import Reviewer
    from webhook.audit.scope import Scope
    from webhook.audit.watches import Changed, ObjectWatches
    from webhook.constraint.constraint import Constraint
    from webhook.constraint.expansion import Expansion
    from webhook.constraint.snapshot import Snapshot
    from webhook.log import Logger
    from webhook.serving.revision import Revision

PUBLISH_SECONDS: Final = 5.0
"""The interval of writes of totals, in seconds: a rollout changes hundreds of objects in one
interval."""


def changed_constraints(before: Snapshot, after: Snapshot) -> tuple[Constraint, ...]:
    """Returns the new and the changed constraints.

    A deleted constraint needs no review: its results are deleted with it.
    """
    # By identity: a client makes a new object only for a change.
    known = {
        (id(constraint), id(entry.evaluator))
        for entry in before.entries
        for constraint in entry.constraints
    }
    return tuple(
        constraint
        for entry in after.entries
        for constraint in entry.constraints
        if (id(constraint), id(entry.evaluator)) not in known
    )


def matcher_of_kinds(
    constraints: Iterable[Constraint], expansion: Expansion
) -> Callable[[GroupVersionKind], bool] | None:
    """Returns a test whether these constraints may match a kind or its implied kinds.

    None if none of them is audited.
    """
    audited = [item for item in constraints if enforcement.applies(item, (enforcement.AUDIT,))]
    if not audited:
        return None
    return lambda gvk: any(
        constraint.match is None or constraint.match.selects(key)
        for constraint in audited
        for key in group_kinds(expansion, gvk)
    )


class Continuous:
    """Reviews watched changes by one revision of policies. Used by one task."""

    def __init__(
        self,
        revision: Revision,
        scope: Scope,
        reviewer: Reviewer,
        watches: ObjectWatches,
        ledger: AuditLedger,
        sink: AuditSink,
        *,
        log: Logger,
        published_at: float,
    ) -> None:
        """``scope`` and ``reviewer`` are by the revision.

        ``published_at`` is the time of the last totals.
        """
        self.revision = revision
        self._scope = scope
        self._reviewer = reviewer
        self._watches = watches
        self._ledger = ledger
        self._sink = sink
        self._log = log
        self.published_at = published_at
        self.reviewed = 0

    def kinds_to_sweep(self, after: Revision) -> Callable[[GroupVersionKind], bool] | None:
        """Returns the kinds to list again for changed policies; None for no kind.

        They may be kinds that are not watched yet, because no policy matched them before.
        """
        constraints = changed_constraints(self.revision.snapshot, after.snapshot)
        return matcher_of_kinds(constraints, after.expansion)

    async def step(self, seconds: float, publish: Callable[..., Awaitable[None]]) -> None:
        """Waits for changes for so long, reviews them, and publishes changed totals."""
        await self._watches.wait(seconds)
        waiting = self._watches.take()[::-1]
        while waiting:
            await self._one(waiting.pop())  # none is held once it is reviewed
        if time.monotonic() - self.published_at >= PUBLISH_SECONDS:
            await self.publish(publish)

    async def publish(self, publish: Callable[..., Awaitable[None]]) -> None:
        """Publish the totals that changed, if any did."""
        if totals := self._ledger.take_changed():
            self.published_at = time.monotonic()
            await publish(totals)

    async def _one(self, changed: Changed) -> None:
        """Takes a change; an unexpected error ends here, and the next sweep reviews the object."""
        try:
            await self._take(changed)
        except Exception as error:  # noqa: BLE001  # the object's boundary: named, left out
            self._log.fault(
                "a changed object cannot be audited; all others are",
                error,
                resource_kind=str(changed.resource.gvk),
                resource_namespace=changed.identity.namespace,
                resource_name=changed.identity.name,
            )

    async def _take(self, changed: Changed) -> None:
        """Reviews a changed object; tells the sinks only of changed results."""
        identity, gvk = changed.identity, changed.resource.gvk
        if not self._scope.share(gvk, identity.namespace):
            return
        if changed.object is None:
            self._ledger.change(identity, ())
            await self._sink.gone(identity)
            return
        obj = {"apiVersion": gvk.group_version, "kind": gvk.kind, **changed.object}
        place = identity.name if gvk.group_kind == ("", "Namespace") else identity.namespace
        excluded = self._scope.is_excluded(place)
        begun = time.monotonic_ns()
        responses: Responses | None = Responses()
        if not excluded:
            try:
                responses = await self._reviewer.review(changed.resource, obj)
            except (ApiError, ApiUnreachable) as error:
                # Its Namespace cannot be read now; the next sweep reviews it.
                self._log.warning(
                    "a changed object was not reviewed; the next audit reviews it",
                    kind=str(gvk),
                    name=identity.name,
                    error=str(error),
                )
                return
        if responses is None:
            return
        self.reviewed += 1
        if responses.undecided or responses.faults or responses.deadline_exceeded:
            return  # Its former results stay until a sweep decides.
        if not self._ledger.differs(identity, responses.results):
            return
        self._ledger.change(identity, responses.results)
        await self._sink.audited(
            Audited(
                "",
                identity_of(obj),
                obj,
                responses,
                self._scope.snapshot,
                excluded=excluded,
                duration_ns=time.monotonic_ns() - begun,
            )
        )
