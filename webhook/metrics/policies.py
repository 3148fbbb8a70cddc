"""The metrics of policies: known and enforced ones, and the results of loading."""

from __future__ import annotations

from typing import Final

from webhook.metrics.registry import Metric

INGESTION_SECONDS: Final = (
    *(0.001, 0.002, 0.005),
    *(n / 100 for n in range(1, 10)),
    *(0.1, 0.2, 0.3, 0.4, 0.5, 1.0, 2.0, 3.0, 4.0, 5.0),
)

CONSTRAINTS: Final = Metric(
    "gatekeeper_constraints",
    "gauge",
    "Known constraints.",
    ("enforcement_action", "status"),
    gatekeeper=True,
)

TEMPLATES: Final = Metric(
    "gatekeeper_constraint_templates", "gauge", "Known templates.", ("status",), gatekeeper=True
)

TEMPLATES_WITH_CEL: Final = Metric(
    "gatekeeper_constraint_templates_with_cel",
    "gauge",
    "Templates with the CEL engine.",
    gatekeeper=True,
)

VAP_POLICIES: Final = Metric(
    "gatekeeper_validating_admission_policies",
    "gauge",
    "ValidatingAdmissionPolicies of templates, or of constraints, by status: active if "
    "generated, else error.",
    ("status",),
    gatekeeper=True,
)

VAP_BINDINGS: Final = Metric(
    "gatekeeper_validating_admission_policy_bindings",
    "gauge",
    "ValidatingAdmissionPolicyBindings of constraints by status: active if generated, else error.",
    ("status",),
    gatekeeper=True,
)

CONSTRAINTS_WITHOUT_ENGINE: Final = Metric(
    "waddle_constraints_without_engine",
    "gauge",
    "Constraints that are not enforced because CEL, the engine of their template, is "
    "off. Their violations are warnings and records.",
)

EXCEPTIONS: Final = Metric(
    "waddle_exceptions",
    "gauge",
    "PolicyExceptions and ClusterPolicyExceptions, by state: pending, active, unused, expired, "
    "invalid.",
    ("state",),
)

UNSERVED_OBJECTS: Final = Metric(
    "waddle_unserved_objects",
    "gauge",
    "Objects of Gatekeeper's kinds that have no effect here: Providers, Connections.",
    ("kind",),
)

INGESTIONS: Final = Metric(
    "gatekeeper_constraint_template_ingestion_count",
    "counter",
    "Templates compiled, by outcome.",
    ("status",),
    gatekeeper=True,
)

TRIALS: Final = Metric(
    "waddle_policy_trials",
    "counter",
    "Trials of new policies in a separate process, by outcome: passed, refused, ended "
    "(by the limit of processor time or memory), environment (to be repeated), none (no "
    "process could start, compiled without trial).",
    ("outcome",),
)

INGESTION_DURATION: Final = Metric(
    "gatekeeper_constraint_template_ingestion_duration_seconds",
    "histogram",
    "Time to compile a template.",
    ("status",),
    gatekeeper=True,
    buckets=INGESTION_SECONDS,
)

SNAPSHOT: Final = Metric(
    "waddle_snapshot_info",
    "gauge",
    "Always 1. The label names the revision in force; it is equal on replicas that "
    "enforce the same.",
    ("digest",),
)

KYVERNO: Final = Metric(
    "waddle_kyverno_policies",
    "gauge",
    "Policies and exceptions of Kyverno in the cluster (--kyverno-policies): active, "
    "error if invalid, notasked if no webhook configuration sends their objects. Only "
    "replicas of --operation=status count notasked.",
    ("status",),
)

SNAPSHOT_REVISION: Final = Metric(
    "waddle_snapshot_revision", "gauge", "Number of the revision in force, 0 before the first."
)

WEBHOOK_RULES_WRITES: Final = Metric(
    "waddle_webhook_rules_writes",
    "counter",
    "Writes to the rules of our webhook configurations (--webhook-rules=policies), by "
    "outcome: widened, narrowed, failed.",
    ("change",),
)

RELOADS: Final = Metric(
    "waddle_reloads",
    "counter",
    "Loads of policies or certificates from the disk, by outcome.",
    ("subject", "status"),
)

RELOAD_FAULT: Final = Metric(
    "waddle_reload_failing",
    "gauge",
    "1 if the last load failed and the earlier revision is in force.",
    ("subject",),
)

RELOAD_SECONDS: Final = Metric(
    "waddle_last_reload_duration_seconds", "gauge", "Time of the last load.", ("subject",)
)

POLICY_STATES: Final = Metric(
    "waddle_policies",
    "gauge",
    "Templates, constraints, mutators and ExpansionTemplates by the state of their "
    "conditions, over all replicas. Every replica of --operation=status reports the same.",
    ("kind", "state"),
)

POLICIES_NOT_NEWEST: Final = Metric(
    "waddle_policies_not_newest",
    "gauge",
    "Templates and constraints whose newest generation this replica does not enforce: an "
    "earlier one because of an error, none because of an error, or another one by "
    "annotation.",
    ("kind", "cause"),
)

POLICY_REVISIONS: Final = Metric(
    "waddle_policy_revisions", "gauge", "PolicyRevision objects that the replica knows."
)

POLICY_REVISIONS_IGNORED: Final = Metric(
    "waddle_policy_revisions_ignored",
    "gauge",
    "PolicyRevision objects that are ignored, by reason: unsigned (of an earlier "
    "release, or forged), no_owner, unknown_key, wrong_signature (forged or altered) or "
    "unreadable.",
    ("why",),
)

ROLLOUT_RECORDS_IGNORED: Final = Metric(
    "waddle_rollout_records_ignored",
    "counter",
    "Roll-out records in statuses without a replica's valid signature, by reason: "
    "unsigned, unknown_key or wrong_signature.",
    ("why",),
)

SPECIALISED_CONSTRAINTS: Final = Metric(
    "waddle_specialised_constraints",
    "gauge",
    "Constraints with compiled code of their own, which often evaluated ones get.",
)

SPECIALISED_BYTES: Final = Metric(
    "waddle_specialised_bytes", "gauge", "Memory for the constraints' own code, about."
)

SPECIALISATIONS_REFUSED: Final = Metric(
    "waddle_specialisations_refused",
    "gauge",
    "Times that a constraint got no code of its own because the memory limit was reached.",
)
