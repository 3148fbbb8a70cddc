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
        "Write policy reports. With --operation=audit they show what the audit finds, with "
        "--operation=webhook each resource soon after it is admitted. Needs --kubernetes and "
        "the reports' CRDs (manifests/reports).",
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
        "The results to store. Repeatable. pass: the object satisfies a matching constraint; "
        "skip: the constraint names the kind and does not match.",
        name="report-results",
        choices=RESULTS,
    )
    mode: str = flag(
        "resource",
        "resource: a report for each resource, which owns it. policy-namespace: a report for "
        "each policy in each namespace, owned by its constraint.",
        name="report-mode",
        choices=MODES,
    )
    max_resources: int = flag(
        20_000,
        "The largest number of reports, with those of other products; a report takes some "
        "2.6 KB in etcd. At the limit reports are updated and none is created. With "
        "--report-mode=policy-namespace it also limits the results of one policy in one "
        "namespace.",
        name="report-max-resources",
        at_least=1,
    )
    max_entries: int = flag(
        1000,
        "The largest number of results in a report of --report-mode=policy-namespace; more "
        "are split.",
        name="report-max-entries",
        at_least=1,
    )
    mutation_drift: bool = flag(
        False,
        "Report what mutators and others' mutating policies would change in existing objects "
        "at the next write. The audit adds it to its metrics and log and, with --reports, as "
        "results (warn). It also lists the kinds that they name.",
        name="report-mutation-drift",
    )
    debounce_seconds: float = flag(
        10.0,
        "The time from an admission to the report of its resource. Further admissions within "
        "it cost nothing.",
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
