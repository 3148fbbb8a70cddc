"""Counts an audit's violations of the API server's own policies, and of Kyverno's."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final, NamedTuple

from webhook.admission_policies.kinds import POLICY
from webhook.audit.sink import Audited, AuditSink, SweepEnd, SweepStart
from webhook.kyverno.kinds import KINDS, is_evaluated
from webhook.metrics.audit import ADMISSION_POLICY_VIOLATIONS, KYVERNO_POLICY_VIOLATIONS

if TYPE_CHECKING:
    from collections.abc import Callable

    from webhook.constraint.result import Result
    from webhook.log import Logger
    from webhook.metrics.registry import Metric, Registry

SERIES_MAX: Final = 1000
"""The most series of a metric: those with the most violations are shown."""


class Counted(NamedTuple):
    """A counted result, and its report; ``key`` is None for API server and Kyverno policies."""

    metric: Metric
    title: str
    fields: tuple[str, ...]
    key: Callable[[Result], tuple[str, ...] | None]


def _admission_key(result: Result) -> tuple[str, ...] | None:
    if result.constraint.kind != POLICY:
        return None
    return result.constraint.name, str(result.details["binding"]), result.actions[0]


def _kyverno_key(result: Result) -> tuple[str, ...] | None:
    kind = result.constraint.kind
    if kind not in KINDS or not is_evaluated(result.constraint.document):
        return None
    return kind, result.constraint.name, result.actions[0]


OF_ADMISSION_POLICIES: Final = Counted(
    ADMISSION_POLICY_VIOLATIONS,
    "admission policy",
    ("admission_policy", "admission_policy_binding", "enforcement_action"),
    _admission_key,
)
OF_KYVERNO_POLICIES: Final = Counted(
    KYVERNO_POLICY_VIOLATIONS,
    "Kyverno policy",
    ("kyverno_policy_kind", "kyverno_policy", "enforcement_action"),
    _kyverno_key,
)


class ForeignTotals(AuditSink):
    """A sink of the audit: violations by policy and action. Used by one task."""

    def __init__(self, counted: Counted, registry: Registry, log: Logger) -> None:
        self._counted = counted
        self._registry = registry
        self._log = log
        self._counts: Counter[tuple[str, ...]] = Counter()

    async def start(self, start: SweepStart) -> None:
        """A sweep begins."""
        del start
        self._counts.clear()

    async def audited(self, audited: Audited) -> None:
        """Counts the violations of an object."""
        if audited.audit_id:
            keys = map(self._counted.key, audited.responses.results)
            self._counts.update(key for key in keys if key is not None)

    async def end(self, end: SweepEnd) -> None:
        """Reports the numbers of a sweep of every kind."""
        if not end.is_whole:
            return
        counts = {key: float(count) for key, count in self._counts.most_common(SERIES_MAX)}
        self._registry.replace(self._counted.metric, counts)
        for key, count in sorted(self._counts.items()):
            self._log.info(
                f"audit results for {self._counted.title}",
                process="audit",
                audit_id=end.audit_id,
                event_type=f"{self._counted.title.lower().replace(' ', '_')}_audited",
                violations=count,
                **dict(zip(self._counted.fields, key, strict=True)),
            )
