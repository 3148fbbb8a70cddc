"""One sweep: reviews every object of every kind that a constraint can match.

A sweep uses one snapshot throughout, so that its results are of one state of policy. Its end names
all unread and undecided parts; receivers do not publish results that depend on them.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from contextlib import aclosing
from typing import TYPE_CHECKING, Final, NamedTuple

from webhook.api.gvk import name_of, namespace_of
from webhook.audit.kinds import undecided, unseen
from webhook.audit.pages import PartialObject
from webhook.audit.reviewer import REQUESTS_AT_ONCE, Reviewer
from webhook.audit.sink import Audited, SweepEnd, SweepStart, identity_of
from webhook.audit.source import UnreadableKind
from webhook.cluster.errors import ApiError, ApiUnreachable
from webhook.constraint.result import Responses
from webhook.external_data.exchange import Unanswered, no_answers

if TYPE_CHECKING:
    from collections.abc import Callable

    from webhook.api.gvk import GroupVersionKind
    from webhook.api.resource import Resource
    from webhook.audit.kept import KeptKind, KeptResults
    from webhook.audit.namespaces import Namespaces
    from webhook.audit.scope import Scope
    from webhook.audit.sink import AuditSink
    from webhook.audit.source import AuditSource
    from webhook.cluster.store import Object
    from webhook.constraint.limits import Limits
    from webhook.external_data.exchange import AnswersSoFar, AskAsync, ProviderRequest
    from webhook.log import Logger
    from webhook.mutation.drift import Drift

FAULTS_LOGGED_MAX: Final = 100
"""The most unauditable objects that one sweep logs by name; all are counted."""

STRANDED_LOGGED_MAX: Final = 5
"""The most stranded objects (without a Namespace) that a sweep logs by name: a terminating
Namespace may leave many for a moment."""

TURN_SECONDS: Final = 0.02
"""How long objects are reviewed before the event loop has a turn."""


class _Wanting(NamedTuple):
    """Objects waiting for providers, and the requests to them."""

    objects: list[Object]
    requests: dict[ProviderRequest, None]


class Sweep:
    """One sweep; :meth:`run` it once."""

    def __init__(  # noqa: PLR0913  # the parts it joins, each named
        self,
        audit_id: str,
        scope: Scope,
        source: AuditSource,
        namespaces: Namespaces,
        sink: AuditSink,
        log: Logger,
        *,
        limits: Callable[[], Limits],
        tick: Callable[[], None] = lambda: None,
        ask: AskAsync | None = None,
        kept: KeptResults | None = None,
    ) -> None:
        """``limits`` returns the limits of each review; ``tick`` is called between reviews.

        ``ask`` calls providers; ``kept`` has the results of earlier sweeps, and receives the new
        ones.
        """
        self._kept = kept
        self._kept_kind: KeptKind | None = None
        self._recalled = 0
        self._audit_id = audit_id
        self._scope = scope
        self._source = source
        self._sink = sink
        self._log = log
        self._tick = tick
        self._reviewer = Reviewer(scope, namespaces, log, limits, ask)
        self._complete: set[GroupVersionKind] = set()
        self._failed: dict[GroupVersionKind, str] = {}
        self._unreadable: set[GroupVersionKind] = set()
        self._absent: list[Resource] = []
        self._left_out: list[GroupVersionKind] = []
        self._violations = 0
        self._passed_over = 0
        self._faulty: Counter[GroupVersionKind] = Counter()
        self._stranded: Counter[GroupVersionKind] = Counter()
        """Objects without a Namespace: while it terminates, or left behind by a forced deletion."""
        self._unseen: frozenset[tuple[str, str]] = frozenset()
        self._turn_ends = 0.0

    async def run(self) -> SweepEnd:
        """Reviews everything; returns the end, which the sink receives as well.

        Raises :class:`~webhook.cluster.errors.ApiError` and
        :class:`~webhook.cluster.errors.ApiUnreachable` if not even the kinds can be read: the sink
        is then not called.
        """
        begun = time.monotonic_ns()
        scope = self._scope
        seen = await self._source.kinds(scope.snapshot)
        matchable = [resource for resource in seen if scope.is_listed(resource.gvk)]
        self._look_for_unseen([resource.gvk for resource in seen])
        resources = [resource for resource in matchable if scope.kinds(resource.gvk)]
        self._left_out = [item.gvk for item in matchable if not scope.kinds(item.gvk)]
        kinds = frozenset(resource.gvk for resource in resources)
        if self._kept is not None:
            self._kept.begin(scope)
        await self._sink.start(SweepStart(self._audit_id, scope.snapshot, kinds))
        for resource in resources:
            await self._kind(resource)
        await self._confirm_gone()
        if self._kept is not None and not self._left_out:
            self._kept.end(kinds)
        end = SweepEnd(
            self._audit_id,
            scope.snapshot,
            frozenset(self._complete),
            self._failed,
            frozenset(self._unreadable),
            self._undecided(),
            reviewed=self._reviewer.reviewed + self._recalled,
            recalled=self._recalled,
            passed_over=self._passed_over,
            left_out=self._faulty.total(),
            stranded=self._stranded.total(),
            unaudited=self._unaudited(),
            violations=self._violations,
            duration_ns=time.monotonic_ns() - begun,
            is_whole=not self._left_out,
        )
        await self._sink.end(end)
        return end

    def _undecided(self) -> frozenset[tuple[str, str]]:
        reviewer, scope = self._reviewer, self._scope
        return undecided(
            scope.snapshot,
            scope.expansion,
            [*self._failed, *self._left_out],
            reviewer.faulty_templates,
        ).union(reviewer.undecided, self._unseen)

    def _unaudited(self) -> Counter[tuple[str, str]]:
        counts: Counter[tuple[str, str]] = Counter()
        for gvk, count in (self._faulty + self._stranded).items():
            for key in undecided(self._scope.snapshot, self._scope.expansion, [gvk], ()):
                counts[key] += count
        return counts

    async def _kind(self, resource: Resource) -> None:
        """Reviews a kind's objects; records whether all were reviewed."""
        gvk = resource.gvk
        kept = None if self._kept is None else await self._kept.of(self._scope, resource)
        self._kept_kind = kept
        by_version = kept if kept is not None and kept.by_version else None
        snapshot = self._scope.snapshot
        try:
            async with aclosing(self._source.pages(snapshot, resource, by_version)) as pages:
                async for page in pages:
                    await self._page(resource, page)
        except UnreadableKind as error:
            self._unreadable.add(gvk)
            self._log.warning(
                "a kind was not audited: it cannot be listed", kind=str(gvk), error=str(error)
            )
        except ApiError as error:
            if error.is_absent:
                self._absent.append(resource)
            else:
                self._fail(gvk, str(error))
        except ApiUnreachable as error:
            self._fail(gvk, str(error))
        else:
            if gvk not in self._failed:
                self._complete.add(gvk)
                if kept is not None:
                    kept.end()

    async def _page(self, resource: Resource, page: list[Object]) -> None:
        """Reviews a page's objects; those that need providers again with the answers."""
        wanting, answers = _Wanting([], {}), no_answers()
        while page:
            await self._one(resource, page.pop(), answers, wanting)
            if len(wanting.requests) >= REQUESTS_AT_ONCE:
                await self._answered(resource, wanting, answers)
                wanting = _Wanting([], {})
        await self._answered(resource, wanting, answers)

    async def _answered(self, resource: Resource, wanting: _Wanting, answers: AnswersSoFar) -> None:
        """Calls providers and reviews waiting objects until none waits."""
        while wanting.objects:
            answers = await self._reviewer.ask(answers, tuple(wanting.requests))
            objects, wanting = wanting.objects, _Wanting([], {})
            while objects:
                await self._one(resource, objects.pop(), answers, wanting)

    def _look_for_unseen(self, seen: list[GroupVersionKind]) -> None:
        """Marks constraints without reviewed objects as undecided: their total would be 0."""
        scope = self._scope
        kinds = self._source.unseen()
        self._unseen = unseen(scope.snapshot, scope.expansion, seen, kinds)
        if self._unseen:
            self._log.warning(
                "constraints were not audited: none of the kinds that they match is synced. Name "
                "their kinds in a SyncSet, or audit without --audit-from-cache",
                constraints=sorted(f"{kind}/{name}" for kind, name in self._unseen),
            )

    def _strand(self, gvk: GroupVersionKind, namespace: str, name: str) -> None:
        """Counts and logs an object that was not reviewed for lack of its Namespace."""
        self._stranded[gvk] += 1
        if self._stranded.total() <= STRANDED_LOGGED_MAX:
            self._log.warning(
                "an object was not audited: its Namespace does not exist",
                resource_kind=str(gvk),
                resource_namespace=namespace,
                resource_name=name,
            )

    def _fail(self, gvk: GroupVersionKind, reason: str) -> None:
        if gvk not in self._failed:
            self._failed[gvk] = reason
            self._log.error(
                "the audit of a kind is incomplete: its results are not published",
                kind=str(gvk),
                error=reason,
            )

    async def _one(
        self, resource: Resource, item: Object, answers: AnswersSoFar, wanting: _Wanting
    ) -> None:
        """Reviews and reports one object; an unexpected error ends here.

        The object waits if providers must be called first.
        """
        try:
            await self._object(resource, item, answers)
        except Unanswered as missing:
            wanting.objects.append(item)
            wanting.requests.update(dict.fromkeys(missing.requests))
        except (ApiError, ApiUnreachable):
            raise
        except Exception as error:  # noqa: BLE001  # the object's boundary: named, counted, left out
            self._faulty[resource.gvk] += 1
            if self._faulty.total() <= FAULTS_LOGGED_MAX:
                self._log.fault(
                    "an object cannot be audited; all others are",
                    error,
                    resource_kind=str(resource.gvk),
                    resource_namespace=namespace_of(item),
                    resource_name=name_of(item),
                )

    async def _object(self, resource: Resource, item: Object, answers: AnswersSoFar) -> None:
        """Reviews and reports one object."""
        gvk, metadata = resource.gvk, item["metadata"]
        namespace: str = metadata.get("namespace", "")
        if not self._scope.share(gvk, namespace):
            return
        # Items of a built-in kind's list lack their kind.
        obj = {"apiVersion": gvk.group_version, "kind": gvk.kind, **item}
        digest: bytes | None = None
        if type(item) is PartialObject:
            obj |= {"apiVersion": gvk.group_version, "kind": gvk.kind}
            digest = item.digest
        self._tick()
        if time.monotonic() > self._turn_ends:
            await asyncio.sleep(0)
            self._turn_ends = time.monotonic() + TURN_SECONDS
        namespace_name = metadata["name"] if gvk.group_kind == ("", "Namespace") else namespace
        if self._scope.is_excluded(namespace_name):
            self._passed_over += 1
            await self._notify(obj, Responses(), 0, excluded=True)
            return
        begun = time.monotonic_ns()
        kept = self._kept_kind
        if kept is not None and digest is None:
            digest = kept.digest(item)
        known = None if kept is None or digest is None else kept.recall(digest, metadata["name"])
        if known is not None:
            self._recalled += 1
            self._violations += len(known.results)
            await self._notify(obj, known, time.monotonic_ns() - begun)
            return
        assert type(item) is not PartialObject  # Their former results stay meanwhile.
        # Before any count: with answers an object is reviewed again.
        drifts = await self._reviewer.attempt_drifts(obj, answers, resource.plural)
        responses = await self._reviewer.attempt(resource, obj, answers)
        if responses is None:
            self._strand(gvk, namespace, metadata["name"])
            return
        if kept is not None and digest is not None:
            kept.keep(digest, metadata["name"], responses)
        self._violations += len(responses.results)
        await self._notify(obj, responses, time.monotonic_ns() - begun, drifts=drifts)

    async def _notify(
        self,
        obj: Object,
        responses: Responses,
        duration_ns: int,
        *,
        excluded: bool = False,
        drifts: tuple[Drift, ...] = (),
    ) -> None:
        await self._sink.audited(
            Audited(
                self._audit_id,
                identity_of(obj),
                obj,
                responses,
                self._scope.snapshot,
                excluded=excluded,
                duration_ns=duration_ns,
                drifts=drifts,
            )
        )

    async def _confirm_gone(self) -> None:
        """Checks kinds that were not found: kinds that are no longer served have no objects.

        A starting API server may answer so, too, although it serves them.
        """
        if not self._absent:
            return
        try:
            served = {resource.gvk for resource in await self._source.kinds(self._scope.snapshot)}
        except (ApiError, ApiUnreachable) as error:
            for resource in self._absent:
                self._fail(resource.gvk, str(error))
            return
        for resource in self._absent:
            if resource.gvk in served:
                self._fail(
                    resource.gvk, "the API server answers 404 to its list, but serves the kind"
                )
