"""The findings about a resource: the values that reports are built from."""

from __future__ import annotations

import hashlib
from dataclasses import field, replace
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

import orjson

from webhook.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from webhook.api.gvk import GroupKind, GroupVersionKind

ReportResult = Literal["pass", "fail", "warn", "error", "skip"]

VERDICTS: Final[tuple[ReportResult, ...]] = ("pass", "fail", "warn", "error", "skip")
"""In the order of a report's summary (policy report API, ``summary``)."""

SOURCE: Final = "waddle"
"""``source`` of each result: viewers group by it."""

MESSAGE_BYTES_MAX: Final = 1024
"""Of one message in UTF-8: etcd holds it as long as the resource lives, and people read a line."""

RESULTS_MAX: Final = 250
"""Of one resource: with full messages a quarter of etcd's 1.5 MB for an object."""


_UNREPORTED_GROUPS: Final = frozenset(
    {"wgpolicyk8s.io", "openreports.io", "reports.kyverno.io", "coordination.k8s.io"}
    | {"events.k8s.io", "authentication.k8s.io", "authorization.k8s.io"}
)


def is_reportable(kind: GroupKind) -> bool:
    """Whether resources of a kind may have reports.

    Reports have none, or each would have the next; nor have Events and leases, which
    come and go by the thousand; nor what is asked and never stored.
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
    """A constraint, as results name it; without a name it stands for its kind's template."""

    kind: str
    name: str


@dataclass(frozen=True, slots=True)
class Finding:
    """The finding of one constraint about a resource.

    ``policy`` is the constraint's kind, ``rule`` its name. ``action`` is the
    enforcement action, empty where nothing is to be enforced. ``point`` and ``state``
    are those of an admission, and of the resource then, where the constraint is
    enforced nowhere else (:mod:`webhook.reports.admitted`); empty otherwise.
    ``exception`` is what excuses a violation, with its ``reason`` and end.
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


@dataclass(frozen=True, slots=True)
class Admitted:
    """The findings of a resource's admission, by constraints of admission alone."""

    findings: tuple[Finding, ...]
    state: str


@dataclass(frozen=True, slots=True)
class Assessment:
    """Everything that was found about a resource, in order.

    ``policies`` are those that could have found something, each with its constraint's
    UID: of each of them that is all there is. ``only`` are those that are enforced at
    admission alone: of these ``admitted`` says what was found, where the resource was
    marked by an admission, and ``state`` which state the resource is in.
    """

    findings: tuple[Finding, ...] = ()
    policies: Mapping[Policy, str] = field(default_factory=dict)
    state: str = ""
    only: frozenset[Policy] = frozenset()
    admitted: Admitted | None = None


def order(finding: Finding) -> tuple[str, str, str, str, str]:
    """The order of results in a report: the same findings give the same bytes."""
    return finding.policy, finding.rule, finding.verdict, finding.message, finding.action


def settled(
    findings: Iterable[Finding], results_max: int | None = RESULTS_MAX
) -> tuple[Finding, ...]:
    """Findings as they are stored: messages and number bounded, each once, in order.

    A viewer (Policy Reporter 3.9) tells results of a resource apart by policy, rule,
    verdict, category and message: two that agree in these are one. What does not
    fit is counted by one more result, an error, so that nothing is missing unseen.
    """
    by_key: dict[tuple[str, ...], Finding] = {}
    for finding in sorted(map(_bounded, findings), key=order):
        key = (finding.policy, finding.rule, finding.verdict, finding.category, finding.message)
        by_key.setdefault(key, finding)
    kept = tuple(by_key.values())
    if results_max is None or len(kept) <= results_max:
        return kept
    shown = results_max - 1
    message = f"{len(kept) - shown} more results are not shown: a report holds {results_max}"
    # "~" sorts after every name of a kind: the note is the last result.
    return (*kept[:shown], Finding(f"~{SOURCE}", "report-limit", "error", message))


def _bounded(finding: Finding) -> Finding:
    message = bounded(finding.message)
    if message is finding.message:
        return finding
    return replace(finding, message=message)


def bounded(text: str, bytes_max: int = MESSAGE_BYTES_MAX) -> str:
    """The text, cut at a character with an ellipsis where it is too long."""
    if len(text) * 4 <= bytes_max:  # no character takes more than four bytes
        return text
    data = text.encode("utf-8", "replace")
    if len(data) <= bytes_max:
        return text
    return data[: bytes_max - 3].decode("utf-8", "ignore") + "…"


def digest(findings: Iterable[Finding]) -> bytes:
    """Equal for equal findings in equal order, 16 bytes: what is kept of each known report.

    Those of admissions do not count: no audit can find them.
    """
    items = [
        (*order(item), item.severity, item.category, item.exception, item.reason, item.expires)
        for item in findings
        if not item.point
    ]
    return hashlib.blake2b(orjson.dumps(items), digest_size=16).digest() if items else b""
