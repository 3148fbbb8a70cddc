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
    "ValidatingAdmissionPolicies of templates, or of constraints: generated (active), or not (error).",
    ("status",),
    gatekeeper=True,
)

VAP_BINDINGS: Final = Metric(
    "gatekeeper_validating_admission_policy_bindings",
    "gauge",
    "ValidatingAdmissionPolicyBindings of constraints: generated (active), or not (error).",
    ("status",),
    gatekeeper=True,
)

CONSTRAINTS_WITHOUT_ENGINE: Final = Metric(
    "waddle_constraints_without_engine",
    "gauge",
    "Constraints that are not enforced because the engine of their template (CEL) is off: what "
    "they would decide is warned about and recorded.",
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
    "Policies tried in a process of their own before they are in force, by outcome: passed, refused, "
    "ended (beyond processor time or memory), environment (not tried, to be tried again), none (no "
    "process could be begun: compiled without).",
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
    "Always 1; the label names the revision in force, equal on replicas that enforce the same.",
    ("digest",),
)

KYVERNO: Final = Metric(
    "waddle_kyverno_policies",
    "gauge",
    "Policies and exceptions of Kyverno in the cluster (--kyverno-policies): active, error for those "
    "that cannot be used, or notasked for those that no webhook configuration sends anything of. Only "
    "replicas of --operation=status count notasked.",
    ("status",),
)

SNAPSHOT_REVISION: Final = Metric(
    "waddle_snapshot_revision", "gauge", "Number of the revision in force, 0 before the first."
)

WEBHOOK_RULES_WRITES: Final = Metric(
    "waddle_webhook_rules_writes",
    "counter",
    "Writes of the rules of our webhook configurations (--webhook-rules=policies), by what they did: "
    "widened, narrowed, failed.",
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
    "1 while the last load failed and the revision before it is kept.",
    ("subject",),
)

RELOAD_SECONDS: Final = Metric(
    "waddle_last_reload_duration_seconds", "gauge", "Time of the last load.", ("subject",)
)

POLICY_STATES: Final = Metric(
    "waddle_policies",
    "gauge",
    "Templates, constraints, mutators and ExpansionTemplates by the state that their conditions tell, of all replicas together; "
    "every replica of --operation=status says the same.",
    ("kind", "state"),
)

POLICIES_NOT_NEWEST: Final = Metric(
    "waddle_policies_not_newest",
    "gauge",
    "Templates and constraints of which this replica does not enforce the newest generation: an "
    "earlier one because of an error, none because of an error, or another one by annotation.",
    ("kind", "cause"),
)

POLICY_REVISIONS: Final = Metric(
    "waddle_policy_revisions", "gauge", "PolicyRevision objects that the replica knows."
)

POLICY_REVISIONS_IGNORED: Final = Metric(
    "waddle_policy_revisions_ignored",
    "gauge",
    "PolicyRevision objects that do not count, by why: unsigned (of an earlier release, or "
    "forged), no_owner, unknown_key, wrong_signature (forged or altered) or unreadable.",
    ("why",),
)

ROLLOUT_RECORDS_IGNORED: Final = Metric(
    "waddle_rollout_records_ignored",
    "counter",
    "Records of staged roll-outs in statuses that no replica has signed as they are, by why: "
    "unsigned, unknown_key or wrong_signature.",
    ("why",),
)

SPECIALISED_CONSTRAINTS: Final = Metric(
    "waddle_specialised_constraints",
    "gauge",
    "Constraints with compiled code of their own, which those get that are evaluated often.",
)

SPECIALISED_BYTES: Final = Metric(
    "waddle_specialised_bytes", "gauge", "Memory that constraints' own code takes, about."
)

SPECIALISATIONS_REFUSED: Final = Metric(
    "waddle_specialisations_refused",
    "gauge",
    "Times that a constraint got no code of its own because the total was used up.",
)
