"""The metrics of the audit."""

from __future__ import annotations

from typing import Final

from webhook.metrics.registry import Metric

AUDIT_SECONDS: Final = tuple(60.0 * n for n in (1, 3, 5, 10, 15, 20, 40, 80, 160, 320))
"""Gatekeeper's buckets of a sweep's duration, in seconds."""

AUDIT_DURATION: Final = Metric(
    "gatekeeper_audit_duration_seconds",
    "histogram",
    "Duration of the audit's sweeps.",
    gatekeeper=True,
    buckets=(1.0, 5.0, 15.0, 30.0, *AUDIT_SECONDS),
)

AUDIT_LAST_RUN: Final = Metric(
    "gatekeeper_audit_last_run_time",
    "gauge",
    "When the last sweep began, in seconds since 1970.",
    gatekeeper=True,
)

AUDIT_LAST_RUN_END: Final = Metric(
    "gatekeeper_audit_last_run_end_time",
    "gauge",
    "When the last sweep ended, in seconds since 1970.",
    gatekeeper=True,
)

AUDIT_VIOLATIONS: Final = Metric(
    "gatekeeper_violations",
    "gauge",
    "Violations in the cluster, as of the last audit.",
    ("enforcement_action",),
    gatekeeper=True,
)

EXCUSED_VIOLATIONS: Final = Metric(
    "waddle_excused_violations",
    "gauge",
    "Violations in the cluster that exceptions excuse, as of the last complete sweep, by "
    "the constraint's kind and the exception's effect. Totals do not include those of "
    "effect skip.",
    ("constraint_kind", "effect"),
)

ADMISSION_POLICIES: Final = Metric(
    "waddle_admission_policies",
    "gauge",
    "ValidatingAdmissionPolicies that the audit knows, with --admission-policies=audit, "
    "by status. unbound have no binding and review nothing; unusable also counts "
    "bindings and kinds of parameters.",
    ("state",),
)

ADMISSION_POLICY_VIOLATIONS: Final = Metric(
    "waddle_admission_policy_violations",
    "gauge",
    "Violations of ValidatingAdmissionPolicies as of the last complete sweep, by policy, "
    "binding and enforcement action; at most 1000 series.",
    ("policy", "binding", "enforcement_action"),
)

KYVERNO_POLICY_VIOLATIONS: Final = Metric(
    "waddle_kyverno_policy_violations",
    "gauge",
    "Violations of Kyverno's policies as of the last complete sweep, by kind, policy and "
    "enforcement action, with --kyverno-policies; at most 1000 series.",
    ("kind", "policy", "enforcement_action"),
)

AUDIT_SWEEPS: Final = Metric(
    "waddle_audit_sweeps",
    "counter",
    "Sweeps by outcome: complete; partial, if totals of some constraints are not known; "
    "failed, if no total is known.",
    ("outcome",),
)

AUDIT_OBJECTS: Final = Metric("waddle_audit_objects", "counter", "Objects that sweeps reviewed.")

AUDIT_LEFT_OUT: Final = Metric(
    "waddle_audit_objects_left_out",
    "counter",
    "Objects that sweeps could not audit; the log names them, and statuses count them.",
)

AUDIT_STRANDED: Final = Metric(
    "waddle_audit_objects_stranded",
    "counter",
    "Objects that sweeps did not review because their Namespace does not exist; statuses "
    "count them.",
)

AUDIT_UNCHANGED: Final = Metric(
    "waddle_audit_objects_unchanged",
    "counter",
    "Objects that an audit did not review again, because nothing that decides about them "
    "changed. They count as reviewed.",
)

AUDIT_KEPT_OBJECTS: Final = Metric(
    "waddle_audit_kept_objects", "gauge", "Objects whose findings are kept for the next sweep."
)

AUDIT_KEPT_BYTES: Final = Metric(
    "waddle_audit_kept_bytes",
    "gauge",
    "Memory for kept findings, about; at most --audit-kept-bytes.",
)

AUDIT_LISTS: Final = Metric(
    "waddle_audit_list_tokens_expired",
    "counter",
    "Lists whose continue token expired, by outcome: continued after the last object, or "
    "restarted.",
    ("how",),
)

AUDIT_UNREADABLE: Final = Metric(
    "waddle_audit_kinds_unreadable",
    "gauge",
    "Kinds that a constraint can match and that the audit has no right to list.",
)

AUDIT_UNDECIDED: Final = Metric(
    "waddle_audit_constraints_undecided",
    "gauge",
    "Constraints whose total the last sweep could not compute. Their status keeps the "
    "earlier total.",
)

AUDIT_EVENTS: Final = Metric(
    "waddle_audit_events",
    "counter",
    "Events of violations, by outcome.",
    ("outcome",),
)
