"""The findings about a resource: the values that reports are built from."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import field, replace
from typing import Final, Literal, NamedTuple

import orjson

from webhook.api.gvk import GroupKind, GroupVersionKind
from webhook.values import dataclass

ReportResult = Literal["pass", "fail", "warn", "error", "skip"]

VERDICTS: Final[tuple[ReportResult, ...]] = ("pass", "fail", "warn", "error", "skip")
"""In the order of a report's summary (policy report API, ``summary``)."""

SOURCE: Final = "waddle"
"""``source`` of each result: viewers group by it."""

MESSAGE_BYTES_MAX: Final = 1024
"""The longest message, in bytes of UTF-8: etcd stores it as long as the resource exists."""

RESULTS_MAX: Final = 250
"""The most results of one resource: with full messages a quarter of etcd's 1.5 MB for an object."""


_UNREPORTED_GROUPS: Final = frozenset(
    {"wgpolicyk8s.io", "openreports.io", "reports.kyverno.io", "coordination.k8s.io"}
    | {"events.k8s.io", "authentication.k8s.io", "authorization.k8s.io"}
)


def is_reportable(kind: GroupKind) -> bool:
    """Returns whether resources of a kind may have reports.

    Reports have none, which would be endless; nor have Events and leases, which are short-lived and
    numerous; nor have kinds that are never stored.
    """
    return kind.group not in _UNREPORTED_GROUPS and kind != ("", "Event")


class ReportSubject(NamedTuple):
    """The resource that a report is about; its namespace is empty for cluster-wide kinds."""

    gvk: GroupVersionKind
    namespace: str
    name: str
    uid: str

    @property
    def group_kind(self) -> GroupKind:
        """The kind without its version: the same resource is served at several."""
        return self.gvk.group_kind


class Policy(NamedTuple):
    """A constraint in results; without a name it means its kind's template."""

    kind: str
    name: str


@dataclass(frozen=True, slots=True)
class Finding:
    """The finding of one constraint about a resource.

    ``policy`` is the constraint's kind, ``rule`` its name. ``action`` is the enforcement action,
    empty if none applies. ``point`` and ``state`` are set only for admission-only constraints
    (:mod:`webhook.reports.admitted`): the enforcement point, and the state of the resource at its
    admission. ``exception`` is the exception that excuses a violation, with its ``reason`` and end.
    ``annotations`` are the policy's audit annotations, sorted.
    """

    policy: str
    rule: str
    verdict: ReportResult
    message: str = ""
    severity: str = ""
    category: str = ""
    action: str = ""
    point: str = ""
    state: str = ""
    exception: str = ""
    reason: str = ""
    expires: str = ""
    annotations: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Admitted:
    """The findings of a resource's admission, by admission-only constraints."""

    findings: tuple[Finding, ...]
    state: str


@dataclass(frozen=True, slots=True)
class Assessment:
    """All findings about a resource, in order.

    ``policies`` are the policies that may have findings, each with its constraint's UID: the
    findings of each are complete. ``only`` are the admission-only policies. Their findings are in
    ``admitted`` if an admission marked the resource. ``state`` is the present state of the
    resource.
    """

    findings: tuple[Finding, ...] = ()
    policies: Mapping[Policy, str] = field(default_factory=dict)
    state: str = ""
    only: frozenset[Policy] = frozenset()
    admitted: Admitted | None = None


def order(finding: Finding) -> tuple[str, str, str, str, str]:
    """Returns the sort key of results in a report: equal findings give equal bytes."""
    return finding.policy, finding.rule, finding.verdict, finding.message, finding.action


def settled(
    findings: Iterable[Finding], results_max: int | None = RESULTS_MAX
) -> tuple[Finding, ...]:
    """Returns findings for storage: limited in size and number, without duplicates, in order.

    A viewer (Policy Reporter 3.9) identifies a result of a resource by policy, rule, verdict,
    category and message, so findings equal in these are one result. Findings above the limit are
    counted by an additional error result, so that none is missing silently.
    """
    by_key: dict[tuple[str, ...], Finding] = {}
    for finding in sorted(map(_bounded, findings), key=order):
        key = (finding.policy, finding.rule, finding.verdict, finding.category, finding.message)
        by_key.setdefault(key, finding)
    kept = tuple(by_key.values())
    if results_max is None or len(kept) <= results_max:
        return kept
    shown = results_max - 1
    message = f"{len(kept) - shown} more results cannot be shown: a report holds {results_max}"
    # "~" sorts after every name of a kind: the note is the last result.
    return (*kept[:shown], Finding(f"~{SOURCE}", "report-limit", "error", message))


def _bounded(finding: Finding) -> Finding:
    message = bounded(finding.message)
    if message is finding.message:
        return finding
    return replace(finding, message=message)


def bounded(text: str, bytes_max: int = MESSAGE_BYTES_MAX) -> str:
    """Returns the text, cut at a character with an ellipsis if it is too long."""
    if len(text) * 4 <= bytes_max:  # no character takes more than four bytes
        return text
    data = text.encode("utf-8", "replace")
    if len(data) <= bytes_max:
        return text
    return data[: bytes_max - 3].decode("utf-8", "ignore") + "…"


def digest(findings: Iterable[Finding]) -> bytes:
    """Returns 16 bytes, equal for equal findings in equal order: kept of each known report.

    Findings of admissions do not count: no audit can find them.
    """
    items = [
        (
            *(*order(item), item.severity, item.category),
            *(item.exception, item.reason, item.expires, item.annotations),
        )
        for item in findings
        if not item.point
    ]
    return hashlib.blake2b(orjson.dumps(items), digest_size=16).digest() if items else b""
