"""``--report-mode=policy-namespace``: one report for each policy and namespace.

Changes of a place are gathered for a moment and then written by one worker: several resources that
change together cost one write.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Final

from webhook.backoff import Backoff
from webhook.cluster.errors import ApiError, ApiUnreachable
from webhook.cluster.work_queue import WorkQueue
from webhook.reports.aggregate import (
    EntriesChange,
    ReportPlace,
    document_of,
    entries_of,
    name_of_report,
    repack,
)
from webhook.reports.finding import Assessment, Finding, Policy, ReportSubject
from webhook.reports.writer import RETRIES, TRIES, Faults, NotServed, ReportWriter

if TYPE_CHECKING:
    from webhook.api.shapes import Json
    from webhook.log import Logger
    from webhook.reports.report_api import ReportApi

GATHER_SECONDS: Final = 2.0
"""The time in which changes of a place are gathered; an audit reports a thousand resources in it.
"""

WRITERS: Final = 4
PLACES_MAX: Final = 20_000
CHANGES_MAX: Final = 20_000
"""The number of unwritten changes at most; beyond it :meth:`PolicyReports.put` waits."""


class PolicyReports:
    """Writes reports; for one event loop. :meth:`run` needs a task of its own."""

    def __init__(
        self,
        writer: ReportWriter,
        api: ReportApi,
        log: Logger,
        *,
        entries_max: int,
        resources_max: int,
        faults: Faults | None = None,
    ) -> None:
        """``resources_max`` bounds the entries of a policy in a namespace.

        ``faults`` receives unexpected exceptions about one place.
        """
        self._faults = faults or Faults(log)
        self._faulty: Counter[ReportPlace] = Counter()
        self._writer = writer
        self._api = api
        self._log = log
        self._entries_max = entries_max
        self._reports_max = max(1, -(-resources_max // entries_max))
        self._queue: WorkQueue[ReportPlace] = WorkQueue(PLACES_MAX)
        self._changes: defaultdict[ReportPlace, dict[str, EntriesChange]] = defaultdict(dict)
        self._uids: dict[Policy, str] = {}
        self._waiting = 0
        self._room = asyncio.Condition()
        self._backoff = Backoff(initial_seconds=1.0, max_seconds=15.0)
        self._full: set[ReportPlace] = set()
        self.failures = 0
        self._given_up = 0

    @property
    def unwritten(self) -> int:
        """Returns the number of unwritten changes, including those given up."""
        return self._waiting + self._given_up

    @property
    def left_out(self) -> int:
        """Returns the number of places with more entries than fit."""
        return len(self._full)

    @property
    def is_idle(self) -> bool:
        """Whether all changes are written."""
        return self._queue.is_idle

    async def put(self, subject: ReportSubject, assessment: Assessment, *, is_new: bool) -> None:
        """Replaces the stored results of a resource after the gathering time."""
        del is_new
        findings: defaultdict[Policy, list[Finding]] = defaultdict(list)
        for finding in assessment.findings:
            findings[Policy(finding.policy, finding.rule)].append(finding)
        admitted = assessment.admitted
        if is_confirmed := admitted is not None and admitted.state == assessment.state:
            for finding in admitted.findings if admitted is not None else ():
                if (policy := Policy(finding.policy, finding.rule)) in assessment.only:
                    findings[policy].append(finding)
        self._uids |= {policy: uid for policy, uid in assessment.policies.items() if uid}
        seconds = int(time.time())
        async with self._room:
            await self._room.wait_for(lambda: self._waiting < CHANGES_MAX)
            for policy in {*findings, *assessment.policies}:
                place = ReportPlace(policy, subject.namespace)
                entries = entries_of(subject, findings.get(policy, ()), seconds)
                stays = policy in assessment.only and not is_confirmed
                change = EntriesChange(entries, assessment.state if stays else "")
                self._change(place, subject.uid, change)

    def _change(self, place: ReportPlace, uid: str, change: EntriesChange) -> None:
        changes = self._changes[place]
        if (earlier := changes.get(uid)) is None:
            self._waiting += 1
        else:
            change = change.after(earlier)
        changes[uid] = change
        if not self._queue.add(place, GATHER_SECONDS):
            self._given_up += len(self._forget(place))
            self.failures += 1

    def _forget(self, place: ReportPlace) -> dict[str, EntriesChange]:
        changes = self._changes.pop(place, {})
        self._waiting -= len(changes)
        return changes

    async def run(self) -> None:
        """Writes until cancelled."""
        await self._queue.run(self._settle, WRITERS)

    async def _settle(self, place: ReportPlace) -> None:
        changes = self._forget(place)
        async with self._room:
            self._room.notify_all()
        try:
            await self._write(place, changes)
        except (ApiError, ApiUnreachable, NotServed) as error:
            self.failures += 1
            self._log.warning(
                "the reports of a policy were not written", error=str(error), **_fields_of(place)
            )
            # A permanent refusal is not retried; the next audit writes it again.
            refused = isinstance(error, ApiError) and error.status in (403, 422)
            self._put_back(place, changes, given_up=refused or isinstance(error, NotServed))
        except Exception as error:  # noqa: BLE001  # isolates one place: counted, logged, retried
            self.failures += 1
            self._faulty[place] += 1
            self._faults.take(
                "bug: reports of a policy are not written; all others are",
                error,
                **_fields_of(place),
            )
            self._put_back(place, changes, given_up=self._faulty[place] > RETRIES)
        else:
            del self._faulty[place]

    def _put_back(
        self, place: ReportPlace, changes: dict[str, EntriesChange], *, given_up: bool
    ) -> None:
        """Queues the changes again, unless they changed meanwhile or are given up."""
        if given_up:
            self._given_up += len(changes)
            del self._faulty[place]
            return
        waiting = self._changes[place]
        for uid, change in changes.items():
            if (later := waiting.get(uid)) is not None:
                waiting[uid] = later.after(change)
            elif self._waiting < CHANGES_MAX:
                waiting[uid] = change
                self._waiting += 1
            else:
                self._given_up += 1
        self._queue.add(place, self._backoff.next_seconds())

    async def _write(self, place: ReportPlace, changes: dict[str, EntriesChange]) -> None:
        backoff = Backoff(initial_seconds=0.05, max_seconds=1.0)
        for _ in range(TRIES):
            reports = await self._read(place)
            packing = repack(
                [list(report.get("results") or ()) for report in reports],
                changes,
                entries_max=self._entries_max,
                reports_max=self._reports_max,
            )
            self._note(place, full=packing.left_out > 0)
            if await self._swap(place, reports, packing.reports):
                return
            await asyncio.sleep(backoff.next_seconds())
        raise self._writer.lost_race(name_of_report(place, 0))

    async def _read(self, place: ReportPlace) -> list[Json]:
        reports: list[Json] = []
        while True:
            name = name_of_report(place, len(reports))
            report = await self._writer.read(name, place.namespace)
            if report is None:
                return reports
            reports.append(report)

    async def _swap(
        self, place: ReportPlace, reports: list[Json], packed: list[list[Json]]
    ) -> bool:
        """Writes the changed reports; returns False if another writer was faster.

        Growing reports are written before shrinking ones: a moved entry exists twice for a moment,
        but is never missing.
        """
        steps = []
        for number in range(max(len(reports), len(packed))):
            before = reports[number] if number < len(reports) else None
            after = packed[number] if number < len(packed) else []
            grows = len(after) - len((before or {}).get("results") or ())
            uid = self._uids.get(place.policy, "")
            desired = document_of(place, number, after, self._api, uid)
            steps.append((-grows, number, before, desired))
        for _, _, before, desired in sorted(steps, key=lambda step: step[:2]):
            outcome = await self._writer.swap(before, desired, place.namespace)
            self._writer.outcomes[outcome] += 1
            if outcome == "conflict":
                return False
        return True

    def _note(self, place: ReportPlace, *, full: bool) -> None:
        if full and place not in self._full:
            self._full.add(place)
            self._log.error(
                "results are missing from reports: --report-max-resources is reached",
                **_fields_of(place),
            )
        elif not full:
            self._full.discard(place)


def _fields_of(place: ReportPlace) -> dict[str, str]:
    """Returns the log fields of a place."""
    return {
        "constraint_kind": place.policy.kind,
        "constraint_name": place.policy.name,
        "namespace": place.namespace,
    }
