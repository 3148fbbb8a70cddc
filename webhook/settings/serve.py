"""All flags of ``waddle serve``, and the settings derived from them.

Names are Gatekeeper's if it has the flag; units are in the field's name.
"""

from __future__ import annotations

from dataclasses import field
from typing import Final

from webhook.settings.audit import AUDIT, AuditSettings
from webhook.settings.flags import flag, group
from webhook.settings.log import LogSettings
from webhook.settings.reports import ReportSettings
from webhook.settings.telemetry import GenerationSettings, TelemetrySettings
from webhook.values import dataclass

KEY_SECRET: Final = "waddle-revision-keys"  # noqa: S105  # a Secret's name
"""The Secret of the manifests with the keys by which replicas verify each other's writes."""

OPERATIONS: Final = (
    "webhook",
    "mutation-webhook",
    "mutation-controller",
    "audit",
    "status",
    "mutation-status",
    "generate",
)
"""Gatekeeper's keys of ``--operation`` (pkg/operations)."""

CLUSTER_OPERATIONS: Final = frozenset(
    {"audit", "status", "generate", "mutation-status", "mutation-controller"}
)
"""The operations that need a cluster."""

TLS_VERSIONS: Final = ("1.2", "1.3")
"""Python's OpenSSL refuses 1.0 and 1.1, which RFC 8996 retired."""


@dataclass(frozen=True, slots=True)
class PolicySettings:
    """The source of policies, the operations of this process, and the data that it keeps."""

    paths: tuple[str, ...] = flag(
        (),
        "A directory or file with templates, constraints and data (YAML or JSON). "
        "Repeatable. It is read again when files change.",
        name="policies",
    )
    kubernetes: bool = flag(
        False,
        "Read policies from the API server of this cluster, or of --kubeconfig, instead of "
        "--policies. POD_NAME and POD_NAMESPACE must name the replica's Pod; POD_UID is "
        "optional.",
    )
    kubeconfig: str = flag(
        "",
        "The kubeconfig of the API server to read policies from. Implies --kubernetes.",
        gatekeeper=True,
    )
    keep_writers_history: bool = flag(
        False,
        "Keep metadata.managedFields and kubectl's last-applied annotation of synced objects "
        "and Namespaces, as Gatekeeper does. Turn it on for policies that read them; they "
        "are often half of an object, in each replica's memory.",
    )
    sync_projection: bool = flag(
        True,
        "Keep of synced objects only the fields that a template reads, and list a kind again "
        "when a template reads more. With --audit-from-cache, --enable-validate-policy or "
        "--kyverno-policies whole objects are kept.",
    )
    operation: tuple[str, ...] = flag(
        ("webhook",),
        "The tasks of this process; repeatable. With --kubernetes: webhook answers "
        "admissions and writes the replica's own status objects. generate creates the CRDs "
        "of constraints and ValidatingAdmissionPolicies. status copies all replicas' "
        "statuses into .status.byPod. audit reviews the objects in the cluster. "
        "mutation-webhook answers /v1/mutate. mutation-status and mutation-controller change "
        "nothing: status and every replica do that anyway. Name webhook, mutation-webhook or "
        "audit.",
        gatekeeper=True,
        choices=OPERATIONS,
    )
    readiness_retries: int = flag(
        0,
        "The number of failed loads to wait for before the process is ready without the "
        "broken policies; 0 for none, -1 for ever. Without any policy of --policies it is "
        "never ready. With --kubernetes: 0 does not wait for broken objects, any other value "
        "waits until they are repaired or deleted. An object with an enforced last good "
        "revision is not waited for.",
        gatekeeper=True,
        at_least=-1,
    )
    kept_revisions: int = flag(
        2,
        "The number of enforceable generations of each template and constraint that the "
        "cluster keeps as PolicyRevisions, for restarts and roll-backs. 0 neither keeps nor "
        "reads any.",
        at_least=0,
    )
    revision_key_secret_name: str = flag(
        KEY_SECRET,
        "The Secret in POD_NAMESPACE with the keys that sign PolicyRevisions; others do not "
        "count. Replicas create and rotate the keys. It must exist, and may be empty.",
    )
    exceptions_longest_seconds: float = flag(
        0.0,
        "The longest time that a new PolicyException or ClusterPolicyException may last, "
        "such as 2160h for 90 days. Longer and permanent ones are refused. 0 sets no limit.",
        kind="duration",
        at_least=0,
    )
    exceptions_keep_seconds: float = flag(
        90 * 24 * 3600.0,
        "How long an expired exception is kept before it is deleted; 0 for ever. A process "
        "with --operation=status and the right to delete it does so.",
        kind="duration",
        at_least=0,
    )
    kyverno_policies: str = flag(
        "off",
        "How to use Kyverno's policies in CEL (ValidatingPolicy, MutatingPolicy, their "
        "namespaced kinds and PolicyExceptions), from the cluster or --policies. enforce "
        "decides admissions by them and mutates objects, audit only audits and reports, off "
        "ignores them.",
        choices=("off", "enforce", "audit"),
    )
    tell_not_asked: bool = flag(
        True,
        "With --operation=status: report NotAsked for constraints and mutators if no webhook "
        "configuration in the cluster sends their objects. Turn it off if the API server "
        "reads its webhooks from files.",
    )
    admission_policies: str = flag(
        "off",
        "How to use the cluster's own ValidatingAdmissionPolicies. off ignores them. audit "
        "reviews existing objects by them, in the audit and in policy reports. The API "
        "server enforces them; this process never does. Policies generated from templates "
        "are left out.",
        choices=("off", "audit"),
    )
    webhook_rules: str = flag(
        "static",
        "The rules of the webhook configurations. static leaves them as they were applied. "
        "policies updates them from the constraints and mutators in force, for webhooks that "
        "call Waddle.",
        choices=("static", "policies"),
    )
    poll_interval_seconds: float = flag(
        10.0,
        "How often policies and certificates are compared with the disk if the system "
        "reports no change of a file.",
        kind="duration",
        at_least=0.05,
    )
    compiled_policies_dir: str = flag(
        "",
        "A directory for compiled policies, so that a restart does not compile them again. "
        "It is created with mode 0700, and refused if others can open it. Each replica needs "
        "its own.",
    )
    compile_in_parallel: bool = flag(
        True,
        "Compile policies in a second process at start. It needs two processors, 64 waiting "
        "templates or more, and an empty --compiled-policies-dir. It ends when all policies "
        "are served.",
    )
    specialise_after: int = flag(
        5000,
        "The number of evaluations of a constraint after which it gets compiled code of its "
        "own, with its parameters; 0 for never. All such code takes 8 MiB at most.",
        at_least=0,
    )
    memo_bytes: int = flag(
        16 * 1024 * 1024,
        "Memory for results of evaluations. A review reuses a result if the values that "
        "decide it are the same. 0 turns it off.",
        at_least=0,
    )


@dataclass(frozen=True, slots=True)
class ServingSettings:
    """Ports, and the end of serving."""

    host: str = flag(
        "",
        "The address for admission; empty for all addresses.",
        gatekeeper=True,
    )
    port: int = flag(
        8443,
        "The port of admission; 0 for any.",
        gatekeeper=True,
    )
    health_addr: str = flag(
        ":9090",
        "The address and port of /healthz and /readyz.",
        gatekeeper=True,
    )
    prometheus_port: int = flag(
        8888,
        "The port of /metrics; 0 for any.",
        gatekeeper=True,
    )
    prometheus_host: str = flag(
        "",
        "The address for /metrics; empty for all addresses.",
    )
    shutdown_delay_seconds: int = flag(
        10,
        "Seconds after SIGTERM until the port is closed. Meanwhile the process is not ready, "
        "and closes each connection after its answer. Control-C skips them if no client is "
        "connected.",
        gatekeeper=True,
        at_least=0,
    )
    shutdown_grace_seconds: int = flag(
        30,
        "Seconds that open requests may take after the port is closed.",
        at_least=0,
    )
    enable_pprof: bool = flag(
        False,
        "Serve a sampled profile and the stacks of all threads under /debug/pprof on localhost.",
        gatekeeper=True,
    )
    pprof_port: int = flag(
        6060,
        "The port of --enable-pprof.",
        gatekeeper=True,
    )


@dataclass(frozen=True, slots=True)
class TLSSettings:
    """The serving certificate, and client certificates."""

    cert_dir: str = flag(
        "",
        "The directory with tls.crt and tls.key, watched for changes. Without it, "
        "--kubernetes keeps a certificate in a Secret, rotates it and writes the CA bundle; "
        "otherwise a self-signed one is created.",
        gatekeeper=True,
    )
    cert_service_name: str = flag(
        "waddle-webhook-service",
        "The Service that the certificate is valid for, besides localhost.",
        gatekeeper=True,
    )
    cert_secret_name: str = flag(
        "waddle-webhook-server-cert",
        "The Secret in POD_NAMESPACE with the certificate and its authority. It must exist, "
        "and may be empty.",
    )
    validating_webhook_configuration_name: str = flag(
        "waddle-validating-webhook-configuration",
        "The ValidatingWebhookConfiguration whose webhooks get the CA bundle.",
        gatekeeper=True,
    )
    mutating_webhook_configuration_name: str = flag(
        "waddle-mutating-webhook-configuration",
        "The MutatingWebhookConfiguration whose webhooks get the CA bundle, with "
        "--operation=mutation-webhook.",
        gatekeeper=True,
    )
    disable_cert_rotation: bool = flag(
        False,
        "Write neither the Secret of the certificate nor the CA bundle.",
        gatekeeper=True,
    )
    provider_ca_secret: str = flag(
        "",
        "The Secret, as NAMESPACE/NAME, to which the authority of our own certificate is "
        "copied, as ca.crt. It is for providers of external data that verify clients. It "
        "must exist. A new authority then waits a day before it signs.",
    )
    tls_min_version: str = flag(
        "1.3",
        "The lowest version of TLS.",
        gatekeeper=True,
        choices=TLS_VERSIONS,
    )
    client_ca_name: str = flag(
        "",
        "The file in --cert-dir with the authorities of clients' certificates. If it is "
        "empty, no certificate is requested.",
        gatekeeper=True,
    )
    client_cn_name: str = flag(
        "kube-apiserver",
        "The common name of clients' certificates, with --client-ca-name or --api-server-ca-file.",
        gatekeeper=True,
    )
    api_server_ca_file: str = flag(
        "",
        "The file with the authorities of the API server's client certificate. Clients "
        "without such a certificate, with the name of --client-cn-name, are answered after "
        "the API server. They count as one more user.",
    )


@dataclass(frozen=True, slots=True)
class LimitSettings:
    """Limits of connections, bodies and times."""

    max_serving_threads: int = flag(
        -1,
        "Accepted for Gatekeeper's manifests, without effect: one thread evaluates policies. "
        "Add replicas for more.",
        gatekeeper=True,
    )
    # An API server runs 200 mutating requests at a time (--max-mutating-requests-inflight), and
    # there are usually three; at a millisecond each, the last waits half a second.
    max_in_flight: int = flag(
        512,
        "The largest number of accepted requests without an answer; more are refused at once "
        "with 429.",
        at_least=1,
    )
    max_connections: int = flag(
        2000,
        "The largest number of connections; more are closed at once. At most 256 may be in "
        "their TLS handshake; beyond that the oldest handshake is closed.",
        at_least=1,
    )
    max_header_bytes: int = flag(
        64 * 1024,
        "The largest number of bytes in a request's line and headers; more are refused with 431.",
        at_least=1024,
    )
    # The largest request body for an object that an API server accepts: 3 MiB (its
    # MaxRequestBodyBytes) as object and as much as oldObject, each byte a "<", which Go writes as
    # "\u003c", and the rest.
    max_body_bytes: int = flag(
        40 * 1024 * 1024,
        "The largest number of bytes in a request's body. For a larger body the API server "
        "gets a denial, any other client 413.",
        at_least=1024,
    )
    # One of the largest, or several large ones, with room for small ones.
    max_waiting_bytes: int = flag(
        64 * 1024 * 1024,
        "The largest number of bytes in all bodies that are not yet reviewed; more are "
        "refused with 429.",
        at_least=1024,
    )
    handshake_timeout_seconds: float = flag(
        5.0,
        "The time limit of a TLS handshake.",
        kind="duration",
        at_least=0.05,
    )
    header_timeout_seconds: float = flag(
        10.0,
        "The time limit from a request's first byte, or from connecting, to the end of its "
        "headers.",
        kind="duration",
        at_least=0.05,
    )
    # No API server waits longer for a webhook.
    body_timeout_seconds: float = flag(
        30.0,
        "The time limit from a request's headers to the end of its body.",
        kind="duration",
        at_least=0.05,
    )
    # Go's client, and so the API server, closes an idle connection after 90 s; a server that closes
    # first sometimes loses a request in transit.
    idle_timeout_seconds: float = flag(
        120.0,
        "How long a connection may be open without a request. Keep it above 90 s, after "
        "which the API server closes a connection: it then never sends into a closing one.",
        kind="duration",
        at_least=0.05,
    )
    review_timeout_seconds: float = flag(
        10.0,
        "The time limit of a review without ?timeout=; the API server sends it.",
        kind="duration",
        at_least=0.05,
    )


@dataclass(frozen=True, slots=True)
class DecidingSettings:
    """The way of deciding admissions, and the exempt namespaces."""

    evaluation_errors: str = flag(
        "violation",
        "The result of a template's failed evaluation. violation: a violation of each "
        "constraint, as in Gatekeeper; error: the answer is 500, and failurePolicy decides.",
        choices=("violation", "error"),
    )
    on_error: str = flag(
        "lastGood",
        "The answer to a request if a matching policy is broken or exceeds its budget. "
        "lastGood decides by its last good revision and otherwise refuses, reject refuses, "
        "allow warns. The annotation waddle.dev/on-error overrides it for a policy; only "
        "constraints that deny ever refuse. docs/isolation.md has the table.",
        choices=("lastGood", "reject", "allow"),
    )
    on_undecidable: str = flag(
        "refuse",
        "The answer to a request if a denying constraint cannot be decided in time, because "
        "of the object itself or the same user's other requests. It also applies if mutators "
        "run out of time. refuse refuses the request (422 or 429), ignore warns. The "
        "annotation waddle.dev/on-undecidable overrides it for a policy.",
        choices=("refuse", "ignore"),
    )
    enable_generator_resource_expansion: bool = flag(
        True,
        "Also review the objects that a reviewed object creates (a Deployment's Pods), by "
        "ExpansionTemplates.",
        gatekeeper=True,
    )
    enable_external_data: bool = flag(
        True,
        "Send requests to the providers of Provider objects, for mutators and templates that "
        "call external_data. Without it such templates are refused.",
        gatekeeper=True,
    )
    external_data_cache_seconds: float = flag(
        180.0,
        "How long a provider's value for a key is kept for templates; 0 turns it off.",
        name="external-data-provider-response-cache-ttl",
        kind="duration",
        gatekeeper=True,
        at_least=0,
    )
    external_data_error_cache_seconds: float = flag(
        10.0,
        "How long a provider's error for a key is kept for templates; 0 turns it off.",
        name="external-data-error-cache-ttl",
        kind="duration",
        at_least=0,
    )
    mutation_on_error: str = flag(
        "skip",
        "The answer to a request if a mutator cannot be applied. skip leaves the mutator "
        "out, with a warning and a record; reject refuses the request, as Gatekeeper does.",
        choices=("skip", "reject"),
    )
    mutation_fights_per_hour: int = flag(
        20,
        "How often mutators may make the same change to the same object within an hour, at "
        "each replica. Beyond it their status reports a fight with another writer. 0 turns "
        "the check off.",
        at_least=0,
    )
    mutation_annotations: bool = flag(
        False,
        "Write the names of the mutators that changed an object into its annotations "
        "gatekeeper.sh/mutations and gatekeeper.sh/mutation-id.",
        gatekeeper=True,
    )
    evaluation_budget_seconds: float = flag(
        0.1,
        "The processor time of one evaluation of one constraint. A longer evaluation is "
        "stopped and is no violation. After three within a minute the constraint is "
        "suspended for a while.",
        kind="duration",
        at_least=0.01,
    )
    disable_opa_builtin: tuple[str, ...] = flag(
        (),
        "A built-in function that templates must not use. Repeatable.",
        gatekeeper=True,
    )
    enable_k8s_native_validation: bool = flag(
        True,
        "Evaluate the code of templates for K8sNativeValidation (CEL), even if a template "
        "also has Rego. Without it, templates with CEL alone warn and record instead of "
        "deciding.",
        gatekeeper=True,
    )
    default_k8s_native_validation_failure_policy: str = flag(
        "Fail",
        "The meaning of a CEL error if the template's source has no failurePolicy: Fail "
        "makes it a violation, Ignore ignores it.",
        gatekeeper=True,
        choices=("Fail", "Ignore"),
    )
    validate_templates: str = flag(
        "compile",
        "How templates are checked at admission. compile refuses source that does not "
        "compile, with line and column. schema admits it, as Gatekeeper does, and the "
        "template's status shows the error.",
        choices=("compile", "schema"),
    )
    enable_validate_policy: bool = flag(
        False,
        "Answer POST /v1/validate-policy, which shows what admission would answer to "
        "policies, and their effect. Callers need a client certificate (--client-ca-name), "
        "or with --kubernetes a bearer token with the right to post to that path. Effects "
        "need the right to list all synced kinds.",
    )
    disable_enforcementaction_validation: bool = flag(
        False,
        "Admit constraints with any enforcementAction.",
        gatekeeper=True,
    )
    exempt_namespace: tuple[str, ...] = flag(
        (),
        "A namespace that may have the label admission.gatekeeper.sh/ignore. Repeatable.",
        gatekeeper=True,
    )
    exempt_namespace_prefix: tuple[str, ...] = flag(
        (),
        "The prefix of namespaces that may have that label. Repeatable.",
        gatekeeper=True,
    )
    exempt_namespace_suffix: tuple[str, ...] = flag(
        (),
        "The suffix of namespaces that may have that label. Repeatable.",
        gatekeeper=True,
    )


@dataclass(frozen=True, slots=True)
class PodSettings:
    """The replica's Pod, from environment variables."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    service_account: str = ""


@dataclass(frozen=True, slots=True)
class ServeSettings:
    """The settings of one server process, validated by :func:`webhook.settings.reading.read`.

    Each group is a separate value, and its flags are listed under its title.
    """

    policies: PolicySettings = group("Policies", PolicySettings)
    serving: ServingSettings = group("Serving", ServingSettings)
    tls: TLSSettings = group("TLS", TLSSettings)
    limits: LimitSettings = group("Limits", LimitSettings)
    deciding: DecidingSettings = group("Deciding", DecidingSettings)
    logging: LogSettings = group("Logging", LogSettings)
    reports: ReportSettings = group("Reports", ReportSettings)
    audit: AuditSettings = group(AUDIT, AuditSettings)
    generation: GenerationSettings = group("ValidatingAdmissionPolicies", GenerationSettings)
    telemetry: TelemetrySettings = group("Telemetry", TelemetrySettings)

    pod: PodSettings = field(default=PodSettings())
    notices: tuple[str, ...] = field(default=())
    """The notices for the operator about flags that were accepted without effect."""

    @property
    def in_cluster(self) -> bool:
        """Whether policies come from an API server."""
        return self.policies.kubernetes or bool(self.policies.kubeconfig)

    @property
    def keeps_certificate(self) -> bool:
        """Whether the certificate is kept in a Secret of the cluster."""
        return (
            self.in_cluster
            and self.serves_admission
            and not self.tls.cert_dir
            and not self.tls.disable_cert_rotation
        )

    @property
    def serves_admission(self) -> bool:
        """Whether this process answers validating or mutating admission reviews."""
        return "webhook" in self.policies.operation or self.mutates

    @property
    def operations_carried_out(self) -> tuple[str, ...]:
        """Returns the effective operations of ``--operation``, sorted, for statuses.

        ``status`` alone copies statuses of mutators, with all others.
        """
        operations = set(self.policies.operation)
        if "status" not in operations:
            operations.discard("mutation-status")
        if not self.in_cluster:
            operations -= CLUSTER_OPERATIONS
        return tuple(sorted(operations))

    @property
    def mutates(self) -> bool:
        """Whether objects are mutated."""
        return "mutation-webhook" in self.policies.operation

    @property
    def audits(self) -> bool:
        """Whether the cluster is audited."""
        return self.in_cluster and "audit" in self.policies.operation

    @property
    def projects_synced(self) -> bool:
        """Whether only the fields of synced objects that templates read are kept.

        No other feature that reads synced objects is on.
        """
        return (
            self.policies.sync_projection
            and self.policies.kyverno_policies == "off"
            and not self.deciding.enable_validate_policy
            and not (self.audits and self.audit.from_cache)
        )
