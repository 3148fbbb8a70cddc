"""The existing reports with a digest of their content: some 300 bytes a resource."""

from __future__ import annotations

import sys
from collections import defaultdict
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from webhook.cluster.page_size import list_pages
from webhook.cluster.store import Key, key_of
from webhook.reports.finding import Finding, Policy, ReportSubject, digest, order
from webhook.reports.report import finding_in, is_ours, subject_in

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from webhook.cluster.client import ClusterClient
    from webhook.reports.report_api import ReportApi

SEVERAL_STATES: Final = "several"
"""The state of no resource: other states are hexadecimal."""


class Known(NamedTuple):
    """A resource with results, and their digest.

    ``policies`` are the policies with results, if the reports are by policy. ``state`` is the state
    of the resource in which an admission found results of the constraints ``admitted``, or
    :data:`SEVERAL_STATES`.
    """

    subject: ReportSubject
    digest: bytes
    policies: frozenset[Policy] = frozenset()
    state: str = ""
    admitted: frozenset[Policy] = frozenset()


class Stored(NamedTuple):
    """The content of Waddle's reports of one mode, and the reports of the other mode.

    The content is by the UID of the resource.
    """

    known: dict[str, Known]
    others: list[Key]


async def known_reports(client: ClusterClient, api: ReportApi, *, by_resource: bool) -> Stored:
    """Reads Waddle's reports page by page.

    Raises the exceptions of requests: :class:`~webhook.cluster.errors.ApiError` with ``is_absent``
    if the kinds are not served.
    """
    by_uid: dict[str, Known] = {}
    others: set[Key] = set()
    scattered: defaultdict[ReportSubject, list[Finding]] = defaultdict(list)
    for resource in api.resources:
        async for page in list_pages(client, resource):
            for document in page:
                if not is_ours(document):
                    continue
                if bool(document.get("scope")) != by_resource:
                    others.add(key_of(document))
                    continue
                for subject, findings in results_by_subject(document):
                    if by_resource:
                        by_uid[subject.uid] = _known(subject, findings)
                    else:
                        scattered[subject] += findings
    for subject, findings in scattered.items():
        known = _known(subject, sorted(findings, key=order))
        by_uid[subject.uid] = known._replace(policies=_policies(findings))
    return Stored(by_uid, sorted(others))


def _known(subject: ReportSubject, findings: Iterable[Finding]) -> Known:
    """Returns the summary of one resource's findings."""
    findings_digest = digest(findings)
    of_admission = [item for item in findings if item.point]
    if not of_admission:
        return Known(subject, findings_digest)
    states = {item.state for item in of_admission}
    # Results in several states: the reports of several policies are written one after the other,
    # and the resource is in one of the states at most.
    state = states.pop() if len(states) == 1 else SEVERAL_STATES
    return Known(subject, findings_digest, state=state, admitted=_policies(of_admission))


def _policies(findings: Iterable[Finding]) -> frozenset[Policy]:
    return frozenset(Policy(sys.intern(item.policy), sys.intern(item.rule)) for item in findings)


def results_by_subject(
    document: Mapping[str, Any],
) -> Iterator[tuple[ReportSubject, list[Finding]]]:
    """Yields the resources of a report with their findings, in the report's order."""
    results: Iterable[Mapping[str, Any]] = document.get("results") or ()
    if scope := document.get("scope"):
        yield _interned(subject_in(scope)), [finding_in(item) for item in results]
        return
    findings: defaultdict[ReportSubject, list[Finding]] = defaultdict(list)
    for item in results:
        for reference in item.get("resources") or ():
            findings[_interned(subject_in(reference))].append(finding_in(item))
    yield from findings.items()


def _interned(subject: ReportSubject) -> ReportSubject:
    """Returns the same value with interned texts, since thousands of them are equal."""
    gvk = type(subject.gvk)(*map(sys.intern, subject.gvk))
    return ReportSubject(gvk, sys.intern(subject.namespace), subject.name, subject.uid)
