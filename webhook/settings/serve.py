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
        "Directory or file with templates, constraints and data (YAML or JSON); repeatable. "
        "Reloaded when files change.",
        name="policies",
    )
    kubernetes: bool = flag(
        False,
        "Take policies from the API server: of the cluster that this process runs in, or of "
        "--kubeconfig. Instead of --policies; POD_NAME and POD_NAMESPACE must name the replica's "
        "Pod, and POD_UID may.",
    )
    kubeconfig: str = flag(
        "",
        "Kubeconfig file of the API server that policies are taken from; implies --kubernetes.",
        gatekeeper=True,
    )
    keep_writers_history: bool = flag(
        False,
        "Keep metadata.managedFields and kubectl's last-applied annotation of synced objects and "
        "Namespaces, as Gatekeeper does, for policies that read them; they are often half of an "
        "object, and every replica keeps all that is synced.",
    )
    sync_projection: bool = flag(
        True,
        "Keep of synced objects only what some template reads, and list a kind anew where a template "
        "reads more. Objects stay whole where something reads them whole: with --audit-from-cache, "
        "--enable-validate-policy and --kyverno-policies.",
    )
    operation: tuple[str, ...] = flag(
        ("webhook",),
        "What this process does; repeatable. With --kubernetes: webhook answers admissions and "
        "writes the replica's own status objects. generate makes the CRDs of constraints and "
        "ValidatingAdmissionPolicies. status copies all replicas' statuses into .status.byPod. "
        "audit reviews what is in the cluster already. mutation-webhook answers /v1/mutate. "
        "mutation-status and mutation-controller change nothing: status and every replica do that "
        "anyway. Name webhook, mutation-webhook or audit.",
        gatekeeper=True,
        choices=OPERATIONS,
    )
    readiness_retries: int = flag(
        0,
        "Failed loads that are waited for before the process is ready without what is broken; 0 "
        "for none, -1 for ever. It is never ready with no policy of --policies at all. With "
        "--kubernetes: 0 gives up on broken objects at once, anything else waits until they are "
        "repaired or deleted; one whose last good revision is enforced is not waited for.",
        gatekeeper=True,
        at_least=-1,
    )
    kept_revisions: int = flag(
        2,
        "Generations of each template and constraint that could be enforced and are kept in the "
        "cluster, as PolicyRevision objects, for restarts and for rolling back; 0 neither keeps "
        "nor reads any.",
        at_least=0,
    )
    revision_key_secret_name: str = flag(
        KEY_SECRET,
        "Secret in POD_NAMESPACE with the keys that sign PolicyRevisions, so that no other counts; "
        "replicas make and rotate them. It must exist, and may be empty.",
    )
    exceptions_longest_seconds: float = flag(
        0.0,
        "How long a PolicyException or ClusterPolicyException may hold when it is made: what ends "
        "later, or never, is refused. 0 for any length; 2160h are 90 days.",
        kind="duration",
        at_least=0,
    )
    exceptions_keep_seconds: float = flag(
        90 * 24 * 3600.0,
        "How long an expired exception stays before it is deleted, by a process with "
        "--operation=status that is given the right to delete it; 0 for ever.",
        kind="duration",
        at_least=0,
    )
    kyverno_policies: str = flag(
        "off",
        "What to make of Kyverno's policies in CEL (ValidatingPolicy, MutatingPolicy, their "
        "namespaced kinds and PolicyExceptions), of the cluster or of --policies: enforce decides "
        "admissions by them and changes objects, audit only audits and reports, off nothing.",
        choices=("off", "enforce", "audit"),
    )
    tell_not_asked: bool = flag(
        True,
        "With --operation=status: report NotAsked for constraints and mutators whose objects "
        "no webhook configuration in the cluster sends. Turn it off where the API server has its "
        "webhooks from files.",
    )
    admission_policies: str = flag(
        "off",
        "What is done with the cluster's own ValidatingAdmissionPolicies. off: nothing. audit: the "
        "audit and policy reports review what exists by them. They are never enforced here: the API "
        "server does that. Those that are generated of templates are left out.",
        choices=("off", "audit"),
    )
    webhook_rules: str = flag(
        "static",
        "What the API server asks about. static: the rules of the webhook configurations "
        "stay as they were applied. policies: those of entries that call Waddle follow constraints "
        "and mutators in force.",
        choices=("static", "policies"),
    )
    poll_interval_seconds: float = flag(
        10.0,
        "How often policies and certificates are compared with the disk when no change of a file "
        "was reported.",
        kind="duration",
        at_least=0.05,
    )
    compiled_policies_dir: str = flag(
        "",
        "Directory that keeps compiled policies, so that a restart does not compile them again; "
        "made with mode 0700, and refused if others can open it. One for each replica.",
    )
    compile_in_parallel: bool = flag(
        True,
        "Compile policies in a second process, too, while 64 templates or more wait at a start, if "
        "there are two processors and `--compiled-policies-dir` holds nothing yet. It ends when "
        "policies are served.",
    )
    specialise_after: int = flag(
        5000,
        "Evaluations of a constraint after which code is compiled for it alone, with its "
        "parameters in it (8 MiB for all such code at most); 0 for never.",
        at_least=0,
    )
    memo_bytes: int = flag(
        16 * 1024 * 1024,
        "Memory for results of evaluations, kept by what decides them: a review that repeats an "
        "earlier one in that is not evaluated again. 0 switches it off.",
        at_least=0,
    )


@dataclass(frozen=True, slots=True)
class ServingSettings:
    """Ports, and the end of serving."""

    host: str = flag(
        "",
        "Address that admission listens on; empty for all.",
        gatekeeper=True,
    )
    port: int = flag(
        8443,
        "Port of admission; 0 for any.",
        gatekeeper=True,
    )
    health_addr: str = flag(
        ":9090",
        "Address and port of /healthz and /readyz.",
        gatekeeper=True,
    )
    prometheus_port: int = flag(
        8888,
        "Port of /metrics; 0 for any.",
        gatekeeper=True,
    )
    prometheus_host: str = flag(
        "",
        "Address that /metrics listens on; empty for all.",
    )
    shutdown_delay_seconds: int = flag(
        10,
        "Seconds that serving goes on after SIGTERM, unready and closing each connection after its "
        "answer, before the port is closed. Control-C skips them when no client is connected.",
        gatekeeper=True,
        at_least=0,
    )
    shutdown_grace_seconds: int = flag(
        30,
        "Seconds that requests under way may take after the port is closed.",
        at_least=0,
    )
    enable_pprof: bool = flag(
        False,
        "Serve a sampled profile and the stacks of all threads under /debug/pprof on localhost.",
        gatekeeper=True,
    )
    pprof_port: int = flag(
        6060,
        "Port of --enable-pprof.",
        gatekeeper=True,
    )


@dataclass(frozen=True, slots=True)
class TLSSettings:
    """The serving certificate, and client certificates."""

    cert_dir: str = flag(
        "",
        "Directory with tls.crt and tls.key, watched for change. Without it, --kubernetes keeps a "
        "certificate in a Secret, rotates it and writes the CA bundle; else a self-signed one is "
        "made.",
        gatekeeper=True,
    )
    cert_service_name: str = flag(
        "waddle-webhook-service",
        "Service that a certificate is made for, beside localhost.",
        gatekeeper=True,
    )
    cert_secret_name: str = flag(
        "waddle-webhook-server-cert",
        "Secret in POD_NAMESPACE that keeps the certificate and its authority; it must exist, and "
        "may be empty.",
    )
    validating_webhook_configuration_name: str = flag(
        "waddle-validating-webhook-configuration",
        "ValidatingWebhookConfiguration whose webhooks get the CA bundle.",
        gatekeeper=True,
    )
    mutating_webhook_configuration_name: str = flag(
        "waddle-mutating-webhook-configuration",
        "MutatingWebhookConfiguration whose webhooks get the CA bundle, with "
        "--operation=mutation-webhook.",
        gatekeeper=True,
    )
    disable_cert_rotation: bool = flag(
        False,
        "Keep no certificate in the cluster: neither the Secret nor the CA bundle is written.",
        gatekeeper=True,
    )
    provider_ca_secret: str = flag(
        "",
        "NAMESPACE/NAME of a Secret whose ca.crt is kept as that of our own certificate, for providers "
        "of external data that ask for it; it must exist. With it a new authority stands there for a "
        "day before it signs.",
    )
    tls_min_version: str = flag(
        "1.3",
        "Lowest version of TLS.",
        gatekeeper=True,
        choices=TLS_VERSIONS,
    )
    client_ca_name: str = flag(
        "",
        "File in --cert-dir with the authorities that a client's certificate must come from; "
        "empty asks for none.",
        gatekeeper=True,
    )
    client_cn_name: str = flag(
        "kube-apiserver",
        "Common name that a client's certificate must have, with --client-ca-name or "
        "--api-server-ca-file.",
        gatekeeper=True,
    )
    api_server_ca_file: str = flag(
        "",
        "File with the authorities of the API server's client certificate. A client without such a "
        "certificate, with the name of --client-cn-name, is answered after the API server, and "
        "counts as one more user.",
    )


@dataclass(frozen=True, slots=True)
class LimitSettings:
    """Limits of connections, bodies and times."""

    max_serving_threads: int = flag(
        -1,
        "Accepted for Gatekeeper's manifests: policies are evaluated on one thread, replicas give "
        "more.",
        gatekeeper=True,
    )
    # An API server runs 200 mutating requests at a time (--max-mutating-requests-inflight), and
    # there are usually three; at a millisecond each, the last waits half a second.
    max_in_flight: int = flag(
        512,
        "Requests accepted and not yet answered; more are refused at once with 429.",
        at_least=1,
    )
    max_connections: int = flag(
        2000,
        "Connections at a time, counted from their first moment on; more are closed at once. At "
        "most 256 may be in their TLS handshake: of more the oldest is given up.",
        at_least=1,
    )
    max_header_bytes: int = flag(
        64 * 1024,
        "Bytes of a request's line and headers; more are refused with 431.",
        at_least=1024,
    )
    # The largest request body for an object that an API server accepts: 3 MiB (its
    # MaxRequestBodyBytes) as object and as much as oldObject, each byte a "<", which Go writes as
    # "\u003c", and the rest.
    max_body_bytes: int = flag(
        40 * 1024 * 1024,
        "Bytes of a request's body. An object for which the API server sends more is refused; "
        "any other sender gets 413.",
        at_least=1024,
    )
    # One of the largest, or several large ones, with room for small ones.
    max_waiting_bytes: int = flag(
        64 * 1024 * 1024,
        "Bytes of all bodies received and not yet reviewed; more are refused with 429.",
        at_least=1024,
    )
    handshake_timeout_seconds: float = flag(
        5.0,
        "Time for a TLS handshake.",
        kind="duration",
        at_least=0.05,
    )
    header_timeout_seconds: float = flag(
        10.0,
        "Time from a request's first byte, or from connecting, to the end of its headers.",
        kind="duration",
        at_least=0.05,
    )
    # No API server waits longer for a webhook.
    body_timeout_seconds: float = flag(
        30.0,
        "Time from a request's headers to the end of its body.",
        kind="duration",
        at_least=0.05,
    )
    # Go's client, and so the API server, closes an idle connection after 90 s; a server that closes
    # first sometimes loses a request in transit.
    idle_timeout_seconds: float = flag(
        120.0,
        "Time that a connection may stay open without a request; above the 90 s after which the "
        "API server closes it, so that it never sends into a closing one.",
        kind="duration",
        at_least=0.05,
    )
    review_timeout_seconds: float = flag(
        10.0,
        "Time for a review that names none; the API server names one with ?timeout=.",
        kind="duration",
        at_least=0.05,
    )


@dataclass(frozen=True, slots=True)
class DecidingSettings:
    """The way of deciding admissions, and the exempt namespaces."""

    evaluation_errors: str = flag(
        "violation",
        "What a template's failed evaluation is: a violation of each constraint that it was to "
        "decide, as in Gatekeeper, or an error that is answered 500 and left to failurePolicy.",
        choices=("violation", "error"),
    )
    on_error: str = flag(
        "lastGood",
        "What a request gets that a policy matches which cannot be used, or takes more than its "
        "budget: lastGood decides by its last good revision and else refuses, reject refuses, "
        "allow warns. For policies without the annotation waddle.dev/on-error; only constraints "
        "that deny ever refuse. docs/isolation.md has the table.",
        choices=("lastGood", "reject", "allow"),
    )
    on_undecidable: str = flag(
        "refuse",
        "What a request gets that a denying constraint cannot be decided for in time because of its "
        "own object, or of the same user's other requests: refuse refuses it (422 or 429), ignore "
        "warns. Also of an object whose mutators find no time. For constraints, templates and mutators "
        "without the annotation waddle.dev/on-undecidable.",
        choices=("refuse", "ignore"),
    )
    enable_generator_resource_expansion: bool = flag(
        True,
        "Review what an object would make (a Deployment's Pods) with it, as ExpansionTemplates say.",
        gatekeeper=True,
    )
    enable_external_data: bool = flag(
        True,
        "Ask the providers that Provider objects name, for templates that call external_data and for "
        "mutators. Without it such templates are refused.",
        gatekeeper=True,
    )
    external_data_cache_seconds: float = flag(
        180.0,
        "How long what a provider said of a key is kept for templates; 0 for not at all.",
        name="external-data-provider-response-cache-ttl",
        kind="duration",
        gatekeeper=True,
        at_least=0,
    )
    external_data_error_cache_seconds: float = flag(
        10.0,
        "The same of a key for which a provider answered an error.",
        name="external-data-error-cache-ttl",
        kind="duration",
        at_least=0,
    )
    mutation_on_error: str = flag(
        "skip",
        "What a request gets whose object a mutator cannot be applied to: skip leaves that mutator "
        "out, with a warning and a record; reject refuses the request, as Gatekeeper does.",
        choices=("skip", "reject"),
    )
    mutation_fights_per_hour: int = flag(
        20,
        "How often mutators may make the same change to the same object within an hour, at each "
        "replica. More is a fight with whoever undoes it: the mutators' status says so. 0 for never.",
        at_least=0,
    )
    mutation_annotations: bool = flag(
        False,
        "Name the mutators that changed an object in its annotations gatekeeper.sh/mutations and "
        "gatekeeper.sh/mutation-id.",
        gatekeeper=True,
    )
    evaluation_budget_seconds: float = flag(
        0.1,
        "Processor time of one evaluation of one constraint; what takes more is ended, is no "
        "violation, and after three times within a minute not evaluated for a while.",
        kind="duration",
        at_least=0.01,
    )
    disable_opa_builtin: tuple[str, ...] = flag(
        (),
        "Built-in function that templates may not use; repeatable.",
        gatekeeper=True,
    )
    enable_k8s_native_validation: bool = flag(
        True,
        "Evaluate templates' code for K8sNativeValidation (CEL), and of a template that has both that "
        "in place of its Rego. Without it templates in CEL alone warn and record instead of deciding.",
        gatekeeper=True,
    )
    default_k8s_native_validation_failure_policy: str = flag(
        "Fail",
        "What an error of CEL is where a template's source has no failurePolicy: Fail makes it a "
        "violation, Ignore nothing.",
        gatekeeper=True,
        choices=("Fail", "Ignore"),
    )
    validate_templates: str = flag(
        "compile",
        "How templates are checked when they are admitted: compile refuses source that does not "
        "compile, with line and column; schema admits it, as Gatekeeper does, and the fault "
        "appears in the template's status.",
        choices=("compile", "schema"),
    )
    enable_validate_policy: bool = flag(
        False,
        "Answer POST /v1/validate-policy: what admission would say of policies, and what they would "
        "change. Callers show a certificate (--client-ca-name), or with --kubernetes a bearer token "
        "whose user may post to that path; users who may list all that is synced see effects.",
    )
    disable_enforcementaction_validation: bool = flag(
        False,
        "Admit constraints with any enforcementAction.",
        gatekeeper=True,
    )
    exempt_namespace: tuple[str, ...] = flag(
        (),
        "Namespace that may carry the label admission.gatekeeper.sh/ignore; repeatable.",
        gatekeeper=True,
    )
    exempt_namespace_prefix: tuple[str, ...] = flag(
        (),
        "Prefix of namespaces that may carry that label; repeatable.",
        gatekeeper=True,
    )
    exempt_namespace_suffix: tuple[str, ...] = flag(
        (),
        "Suffix of namespaces that may carry that label; repeatable.",
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
