"""Between sweeps: what changed is reviewed alone, and the totals follow.

An object that changed is reviewed by every constraint; a constraint that changed
has the kinds listed again that it may match. What neither tells (referential data
or a Namespace's labels that changed, an event that was lost) the next sweep does.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from webhook.audit.kinds import group_kinds
from webhook.audit.sink import Audited, identity_of
from webhook.cluster.errors import ApiError, ApiUnreachable
from webhook.constraint import enforcement
from webhook.constraint.result import Responses

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

    from webhook.api.gvk import GroupVersionKind
    from webhook.audit.ledger import AuditLedger
    from webhook.audit.reviewer import Reviewer
    from webhook.audit.scope import Scope
    from webhook.audit.sink import AuditSink
    from webhook.audit.watches import Changed, ObjectWatches
    from webhook.constraint.constraint import Constraint
    from webhook.constraint.expansion import Expansion
    from webhook.constraint.snapshot import Snapshot
    from webhook.log import Logger
    from webhook.serving.revision import Revision


PUBLISH_SECONDS: Final = 5.0
"""Between two writes of totals: a rollout changes hundreds of objects, and one write tells of all."""


def changed_constraints(before: Snapshot, after: Snapshot) -> tuple[Constraint, ...]:
    """The constraints that decide otherwise than before, or did not exist.

    Of one that is gone nothing is to be reviewed: its results go with it.
    """
    # By identity: a client makes another object of each only where something changed.
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
    """Return whether these may match a kind, or what it would make; None if none of them is audited."""
    audited = [item for item in constraints if enforcement.applies(item, (enforcement.AUDIT,))]
    if not audited:
        return None
    return lambda gvk: any(
        constraint.match is None or constraint.match.selects(key)
        for constraint in audited
        for key in group_kinds(expansion, gvk)
    )


class Continuous:
    """Reviews what the watches tell of, by one revision of policies. Used by one task."""

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
        """``scope`` and ``reviewer`` are by the revision; ``published_at`` is when totals last were."""
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
        """Return the kinds to look at again for policies that are others now; None for no kind.

        They may be kinds that are not watched yet: no policy was about them before.
        """
        constraints = changed_constraints(self.revision.snapshot, after.snapshot)
        return matcher_of_kinds(constraints, after.expansion)

    async def step(self, seconds: float, publish: Callable[..., Awaitable[None]]) -> None:
        """Wait for changes for so long, review them, and publish totals that changed."""
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
        """Take a change; what it raises that nobody foresaw ends here, and the next sweep looks."""
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
        """Review an object that changed; tell of it only where something else is found."""
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
            return  # What was known of it stays, until a sweep decides.
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
