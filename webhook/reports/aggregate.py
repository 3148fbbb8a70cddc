"""``--report-mode=policy-namespace``, the pure part: packs results of a policy into reports.

A report has a limited number of entries; a policy with more in a namespace has several reports. An
entry stays in its report, so that a change of one resource changes one object.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from webhook.policy_kinds.known import constraint_gvk
from webhook.reports.finding import SOURCE, Finding, Policy, ReportSubject, order
from webhook.reports.report import fill, finding_in, frame, reference_to, result

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from webhook.api.shapes import Json
    from webhook.reports.report_api import ReportApi

ReportEntries = list["Json"]

SPARSE: Final = 2
"""Reports are packed again if they are this many times more than needed."""


class ReportPlace(NamedTuple):
    """The place of an aggregated report: a policy in a namespace, or among cluster-wide kinds."""

    policy: Policy
    namespace: str


class EntriesChange(NamedTuple):
    """The new findings of one resource.

    With a ``state`` the entries of an admission in that state of the resource stay, too: no audit
    can find them (:mod:`webhook.reports.admitted`).
    """

    entries: ReportEntries
    state: str = ""

    def after(self, earlier: EntriesChange) -> EntriesChange:
        """Returns both changes combined, if the earlier was not written."""
        if not self.state:
            return self
        kept = [entry for entry in earlier.entries if self.keeps(finding_in(entry))]
        return EntriesChange(
            [*self.entries, *kept], self.state if earlier.state == self.state else ""
        )

    def keeps(self, finding: Finding) -> bool:
        """Returns whether any stored entry stays."""
        return bool(finding.point and self.state) and finding.state == self.state


class Packing(NamedTuple):
    """Entries by report, and the number without room."""

    reports: list[ReportEntries]
    left_out: int


def name_of_report(place: ReportPlace, number: int) -> str:
    """Returns the name of a place's report; the first has number 0."""
    # A kind has no dot, so that no two places share a name.
    rule = f".{place.policy.name}" if place.policy.name else ""
    return f"{SOURCE}-{number}.{place.policy.kind.lower()}{rule}"


def document_of(
    place: ReportPlace, number: int, entries: ReportEntries, api: ReportApi, uid: str
) -> Json | None:
    """Returns a place's report; None without entries.

    The constraint with that ``uid`` owns it; an empty ``uid`` keeps the present owner.
    """
    if not entries:
        return None
    policy = place.policy
    owner: Json | None = None
    if uid:
        owner = {
            "apiVersion": constraint_gvk(policy.kind).group_version,
            "kind": policy.kind,
            "name": policy.name,
            "uid": uid,
        }
    return fill(frame(api, name_of_report(place, number), place.namespace, owner), entries)


def entries_of(subject: ReportSubject, findings: Iterable[Finding], seconds: int) -> ReportEntries:
    """Returns the entries of one resource."""
    reference = reference_to(subject)
    return [{**result(finding, seconds), "resources": [reference]} for finding in findings]


def repack(
    reports: Sequence[ReportEntries],
    changes: Mapping[str, EntriesChange],
    *,
    entries_max: int,
    reports_max: int,
) -> Packing:
    """Returns the reports with the entries of each changed resource (by UID) replaced.

    An entry that two writers have stored twice is kept once.
    """
    due = {
        uid: {finding_in(entry): entry for entry in change.entries}
        for uid, change in changes.items()
    }
    packed: list[ReportEntries] = []
    stayed: set[tuple[str, Finding]] = set()
    for report in reports:
        kept = []
        for entry in report:
            uid = _uid(entry)
            if uid not in changes:
                kept.append(entry)
                continue
            finding = finding_in(entry)
            if (uid, finding) not in stayed and (
                due[uid].pop(finding, None) is not None or changes[uid].keeps(finding)
            ):
                stayed.add((uid, finding))
                kept.append(entry)
        packed.append(kept)
    new = [entry for entries in due.values() for entry in entries.values()]
    left_out = _place(packed, sorted(new, key=_order), entries_max, reports_max)
    needed = -(-sum(map(len, packed)) // entries_max)
    if len(packed) > SPARSE * max(needed, 1):
        everything = sorted((entry for report in packed for entry in report), key=_order)
        packed = []
        _place(packed, everything, entries_max, reports_max)
    _close_gaps(packed)
    return Packing([sorted(report, key=_order) for report in packed], left_out)


def _place(
    packed: list[ReportEntries], entries: ReportEntries, entries_max: int, reports_max: int
) -> int:
    """Places entries into existing reports with room, then into new ones."""
    waiting = entries[::-1]
    for report in packed:
        while waiting and len(report) < entries_max:
            report.append(waiting.pop())
    while waiting and len(packed) < reports_max:
        packed.append([waiting.pop() for _ in range(min(entries_max, len(waiting)))])
    return len(waiting)


def _close_gaps(packed: list[ReportEntries]) -> None:
    """Removes empty reports between others: they are read by number until one is missing."""
    for number in range(len(packed)):
        while number < len(packed) and not packed[number]:
            last = packed.pop()
            if number < len(packed):
                packed[number] = last


def _uid(entry: Mapping[str, Any]) -> str:
    return str(_reference(entry).get("uid", ""))


def _reference(entry: Mapping[str, Any]) -> Mapping[str, Any]:
    references: Sequence[Mapping[str, Any]] = entry.get("resources") or ({},)
    return references[0]


def _order(entry: Mapping[str, Any]) -> tuple[Any, ...]:
    reference = _reference(entry)
    names = tuple(reference.get(name, "") for name in ("kind", "name", "uid"))
    return (*names, order(finding_in(entry)))
