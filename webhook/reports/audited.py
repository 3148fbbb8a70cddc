"""From the audit to reports: marks resources whose reports differ or are stale.

A digest of each report is read from the cluster at the beginning of each sweep. If the sweep's
results equal the reports, this reading is the only cost.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING, Final

from webhook.audit.scope import everything
from webhook.audit.sink import Audited, AuditSink, Identity, SweepEnd, SweepStart
from webhook.cluster.errors import ApiError, ApiUnreachable
from webhook.constraint import enforcement
from webhook.constraint.selection import about
from webhook.metrics.reports import REPORT_RESULTS
from webhook.reports.admitted import admission_only, state_of
from webhook.reports.finding import Finding, Policy, ReportSubject, digest, is_reportable
from webhook.reports.known import Known, known_reports
from webhook.reports.summary import ReportTally, merged

if TYPE_CHECKING:
    from collections.abc import Callable

    from webhook.api.gvk import GroupKind, GroupVersionKind
    from webhook.log import Logger
    from webhook.metrics.registry import Registry
    from webhook.reports.confirmation import Confirmer
    from webhook.reports.keeper import Reports

REMOVED_MAX: Final = 2000
"""Reports of the mode before that are deleted at the beginning of a sweep: some seconds' work."""


UNLISTED_MAX: Final = 200
"""The number of marked resources in one sweep whose kinds no sweep lists: two requests each, a
second or less."""


class AuditReports(AuditSink):
    """A sink of the audit. Used on one event loop."""

    def __init__(
        self,
        reports: Reports,
        confirmer: Confirmer,
        registry: Registry,
        log: Logger,
        *,
        series_max: int,
        share: Callable[[GroupVersionKind, str], bool] = everything,
    ) -> None:
        """``share`` returns whether this audit reviews a kind and namespace."""
        self._reports = reports
        self._confirmer = confirmer
        self._registry = registry
        self._log = log
        self._series_max = series_max
        self._share = share
        self._known: dict[str, Known] | None = None
        self._room: int | None = None
        self._seen: set[str] = set()
        self._looked_at = ""
        self._tallied: dict[GroupKind, ReportTally] = {}
        self._tallies: dict[GroupKind, ReportTally] = {}

    async def start(self, start: SweepStart) -> None:
        """Begins a sweep: reads the content of the reports."""
        self._seen = set()
        self._tallied = {gvk.group_kind: ReportTally(self._series_max) for gvk in start.kinds}
        self._known = None
        self._confirmer.begin()
        # Reports written during the reading may be missing in it, and are handled separately.
        self._reports.digests.clear()
        try:
            stored = await known_reports(
                self._reports.client, self._reports.api, by_resource=self._reports.is_by_resource
            )
            await self._reports.remove(stored.others[:REMOVED_MAX])
            self._room = await self._reports.room()
            self._known = stored.known
        except (ApiError, ApiUnreachable) as error:
            served = not (isinstance(error, ApiError) and error.is_absent)
            self._log.error(
                "reports cannot be read; this audit writes none"
                if served
                else "reports are not served: install their CRDs (manifests/reports)",
                error=str(error),
            )

    async def audited(self, audited: Audited) -> None:
        """Takes a reviewed object: marks it if its report differs."""
        identity, responses = audited.identity, audited.responses
        if self._known is not None and identity.uid in self._known:
            self._seen.add(identity.uid)
        if responses.deadline_exceeded:
            return
        subject = _subject(identity)
        findings: tuple[Finding, ...] = ()
        if not audited.excluded and is_reportable(subject.group_kind):
            findings = self._reports.findings.of(
                responses, audited.snapshot, audited.object, audited.drifts
            )
        if audited.audit_id and (tally := self._tallied.get(subject.group_kind)) is not None:
            tally.add(subject, findings)
        if self._known is None:
            return
        known = self._known.get(subject.uid)
        written = self._reports.digests.get(subject.uid)
        findings_digest = digest(findings)
        before = written if written is not None else b"" if known is None else known.digest
        moved = known is not None and _has_moved(known, audited)
        # An update in work may write an older state: its report is equal to nothing until it ends.
        is_marked = self._reports.refresher.is_marked(subject)
        if findings_digest != before or moved or is_marked:
            is_new = known is None and written is None and not is_marked
            if is_new and self._room is not None:
                # Not even marked: there may be a hundred thousand of them.
                if self._room <= 0:
                    self._reports.refuse()
                    return
                self._room -= 1
            await self._mark(subject, known)
            # The future content of the report: the object may change again before the next sweep.
            self._know(subject, findings, findings_digest, None if moved else known)

    async def gone(self, identity: Identity) -> None:
        """Does nothing for a deleted object's own report, which the garbage collector deletes."""
        known = None if self._known is None else self._known.pop(identity.uid, None)
        if known is not None and not self._reports.is_by_resource:
            await self._mark(known.subject, known)

    async def end(self, end: SweepEnd) -> None:
        """Ends a sweep: marks the resources that it did not find.

        Resources of kinds without audited policies are marked, too. A sweep may cover some kinds
        only. Each marked resource is read before its report changes, so a sweep that missed a
        resource does no harm.
        """
        complete = {gvk.group_kind for gvk in end.complete}
        known = {item.subject.group_kind for item in (self._known or {}).values()}
        forsaken = {
            kind
            for kind in {*known, *self._tallies}
            if kind not in self._tallied and not about(end.snapshot, kind, enforcement.AUDIT)
        }
        unlisted: list[str] = []
        for uid, item in list((self._known or {}).items()):
            subject = item.subject
            if uid in self._seen or not self._share(subject.gvk, subject.namespace):
                continue
            if subject.group_kind in complete:
                await self._mark(subject, item)
            elif subject.group_kind in forsaken:
                if item.admitted & admission_only(end.snapshot, subject.group_kind):
                    unlisted.append(uid)
                else:
                    await self._mark(subject, item)
        await self._look_at_some(unlisted)
        if end.is_whole and self._known is not None:
            self._confirmer.confirm(end)
        self._seen = set()
        self._tallies = {
            kind: tally
            for kind, tally in {**self._tallies, **self._tallied}.items()
            if kind not in forsaken
        }
        series = merged(self._tallies.values(), self._series_max)
        self._registry.replace(REPORT_RESULTS, series)

    async def _look_at_some(self, uids: list[str]) -> None:
        """Marks the next resources with results of admissions only, since no sweep lists them."""
        assert self._known is not None or not uids
        uids.sort()
        start = bisect_right(uids, self._looked_at)
        turn = (uids[start:] + uids[:start])[:UNLISTED_MAX]
        for uid in turn:
            item = (self._known or {})[uid]
            await self._mark(item.subject, item)
        self._looked_at = turn[-1] if turn else ""

    def _know(
        self,
        subject: ReportSubject,
        findings: tuple[Finding, ...],
        findings_digest: bytes,
        stays: Known | None,
    ) -> None:
        """Notes the future content of a report; keeps the findings of an admission in ``stays``."""
        assert self._known is not None
        state, admitted = ("", frozenset[Policy]()) if stays is None else stays[3:]
        if not findings and not admitted:
            self._known.pop(subject.uid, None)
            return
        policies = frozenset[Policy]()
        if not self._reports.is_by_resource:
            policies = admitted.union(Policy(item.policy, item.rule) for item in findings)
        self._known[subject.uid] = Known(subject, findings_digest, policies, state, admitted)
        self._seen.add(subject.uid)

    async def _mark(self, subject: ReportSubject, known: Known | None) -> None:
        refresher = self._reports.refresher
        await refresher.room()
        policies = () if known is None else known.policies
        refresher.mark(subject, is_new=known is None, policies=policies)


def _has_moved(known: Known, audited: Audited) -> bool:
    """Whether the findings of an admission about a resource no longer count."""
    if not known.state:
        return False
    only = admission_only(audited.snapshot, known.subject.group_kind)
    named = {policy for policy in known.admitted if not policy.kind.startswith("~")}
    return audited.excluded or not named <= only or state_of(audited.object) != known.state


def _subject(identity: Identity) -> ReportSubject:
    return ReportSubject(identity.gvk, identity.namespace, identity.name, identity.uid)
