"""The flags of policy reports, for all processes that write them."""

from __future__ import annotations

from typing import Final, Literal

from webhook.settings.flags import InvalidFlag, flag
from webhook.values import dataclass

RESULTS: Final = ("pass", "fail", "warn", "error", "skip")
APIS: Final = ("wgpolicyk8s", "openreports")
MODES: Final = ("resource", "policy-namespace")

STORED: Final[tuple[Literal["pass", "fail", "warn", "error", "skip"], ...]] = (
    "fail",
    "warn",
    "error",
)
"""The default results: most results are passes, which need no action."""


@dataclass(frozen=True, slots=True)
class ReportSettings:
    """The settings of reports: their content, form and limits."""

    enabled: bool = flag(
        False,
        "Write policy reports: of what the audit finds, with --operation=audit, and of resources "
        "soon after they are admitted, with --operation=webhook. Needs --kubernetes and the "
        "reports' CRDs (manifests/reports).",
        name="reports",
    )
    api: str = flag(
        "wgpolicyk8s",
        "API of the reports: PolicyReport of wgpolicyk8s.io/v1alpha2, or Report of "
        "openreports.io/v1alpha1.",
        name="report-api",
        choices=APIS,
    )
    results: tuple[Literal["pass", "fail", "warn", "error", "skip"], ...] = flag(
        STORED,
        "Results that are stored; repeatable. pass is a constraint that matches and is met, skip "
        "one that is about the kind and does not match.",
        name="report-results",
        choices=RESULTS,
    )
    mode: str = flag(
        "resource",
        "A report for each resource, owned by it; or for each policy in each namespace, owned by "
        "its constraint.",
        name="report-mode",
        choices=MODES,
    )
    max_resources: int = flag(
        20_000,
        "Reports that there may be, those of other products included; some 2.6 KB of etcd each. "
        "When it is reached, reports are kept up to date and no new one is made. With "
        "--report-mode=policy-namespace also the results of one policy in one namespace.",
        name="report-max-resources",
        at_least=1,
    )
    max_entries: int = flag(
        1000,
        "Results in a report of --report-mode=policy-namespace; more are split.",
        name="report-max-entries",
        at_least=1,
    )
    mutation_drift: bool = flag(
        False,
        "Tell what mutators, and mutating policies of others, would change in objects that exist if "
        "they were written now: by the audit in metrics and its log, and as results (warn) with "
        "--reports. Kinds that they name are listed, too.",
        name="report-mutation-drift",
    )
    debounce_seconds: float = flag(
        10.0,
        "Time from an admission to the report of its resource, in which further admissions of it "
        "cost nothing.",
        name="report-debounce",
        kind="duration",
        at_least=0,
    )


ENTRIES_MAX: Final = 2500
"""The most results of a report: at some 500 bytes each they fill etcd's limit of 1.5 MB."""


def validate_reports(settings: ReportSettings, *, in_cluster: bool) -> None:
    """Checks the flags of reports; raises :class:`~webhook.settings.flags.InvalidFlag`."""
    if settings.max_entries > ENTRIES_MAX:
        raise InvalidFlag(
            f"--report-max-entries must be at most {ENTRIES_MAX}: larger objects do not fit into etcd"
        )
    if settings.enabled and not in_cluster:
        raise InvalidFlag("--reports needs --kubernetes: reports are objects of a cluster")
