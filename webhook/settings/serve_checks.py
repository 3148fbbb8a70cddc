"""What ``waddle serve`` refuses: flags that can be read and make no sense, each by its name."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

from webhook.settings.flags import InvalidFlag
from webhook.settings.reports import validate_reports
from webhook.settings.telemetry import validate_telemetry

if TYPE_CHECKING:
    from webhook.settings.serve import ServeSettings

_AT_LEAST: Final = {
    "max_in_flight": 1,
    "max_connections": 1,
    "max_header_bytes": 1024,
    "max_body_bytes": 1024,
    "max_waiting_bytes": 1024,
    "shutdown_delay_seconds": 0,
    "shutdown_grace_seconds": 0,
    "max_constraint_series": 0,
    "mutation_fights_per_hour": 0,
    "readiness_retries": -1,
    "kept_revisions": 0,
    "exceptions_longest_seconds": 0,
    "exceptions_keep_seconds": 0,
    "poll_interval_seconds": 0.05,
    "handshake_timeout_seconds": 0.05,
    "header_timeout_seconds": 0.05,
    "body_timeout_seconds": 0.05,
    "idle_timeout_seconds": 0.05,
    "review_timeout_seconds": 0.05,
    "evaluation_budget_seconds": 0.01,
    "decision_log_grace_seconds": 0,
    "audit_interval_seconds": 0,
    "constraint_violations_limit": 0,
    "audit_chunk_size": 0,
    "specialise_after": 0,
    "memo_bytes": 0,
    "default_wait_for_vapb_generation": 0,
    "external_data_cache_seconds": 0,
    "external_data_error_cache_seconds": 0,
}


def validate(settings: ServeSettings) -> None:
    """Refuse what can be read but makes no sense, naming the flag."""
    _check_source(settings)
    _check_operations(settings)
    validate_reports(settings, in_cluster=settings.in_cluster)
    validate_telemetry(settings)
    for path in settings.policies:
        if not os.path.lexists(path):
            raise InvalidFlag(f"--policies: no such file or directory: {path!r}")
    for name in ("port", "prometheus_port", "pprof_port"):
        _check_port(name.replace("_", "-"), getattr(settings, name))
    address(settings.health_addr, "health-addr")
    for name, least in _AT_LEAST.items():
        if getattr(settings, name) < least:
            shown = name.removesuffix("_seconds").replace("_", "-")
            raise InvalidFlag(f"--{shown} must be at least {least:g}")
    if settings.client_ca_name and not settings.cert_dir:
        raise InvalidFlag("--client-ca-name names a file in --cert-dir, which is missing")
    if settings.client_ca_name and settings.api_server_ca_file:
        raise InvalidFlag(
            "--client-ca-name and --api-server-ca-file exclude each other: the former admits no other client"
        )
    if settings.webhook_rules == "policies" and settings.kyverno_policies == "enforce":
        raise InvalidFlag(
            "--webhook-rules=policies and --kyverno-policies=enforce exclude each other: rules follow "
            "constraints and mutators, so requests that only Kyverno's policies are about would not "
            "be sent"
        )
    if settings.webhook_rules == "policies" and not settings.in_cluster:
        raise InvalidFlag(
            "--webhook-rules=policies writes to the cluster's webhook configurations: it needs "
            "--kubernetes"
        )
    if settings.provider_ca_secret:
        _check_provider_secret(settings)
    if settings.enable_validate_policy and not (settings.client_ca_name or settings.in_cluster):
        raise InvalidFlag(
            "--enable-validate-policy needs --client-ca-name, or --kubernetes, to know who calls"
        )


def _check_provider_secret(settings: ServeSettings) -> None:
    """The copy of what is kept in the cluster has a place there, too."""
    namespace, slash, name = settings.provider_ca_secret.partition("/")
    if not (namespace and slash and name) or "/" in name:
        raise InvalidFlag(
            f"--provider-ca-secret: want NAMESPACE/NAME, got {settings.provider_ca_secret!r}"
        )
    if not settings.keeps_certificate:
        raise InvalidFlag(
            "--provider-ca-secret copies what is kept in the cluster: it needs --kubernetes, and "
            "neither --cert-dir nor --disable-cert-rotation"
        )


def _check_source(settings: ServeSettings) -> None:
    """Policies have one source: what the other one said could be neither seen nor removed."""
    if settings.in_cluster:
        if settings.policies:
            raise InvalidFlag(
                "--policies and --kubernetes exclude each other: policies have one source"
            )
        if not settings.pod_name or not settings.pod_namespace:
            raise InvalidFlag(
                "--kubernetes needs POD_NAME and POD_NAMESPACE in the environment: the replica's "
                "status objects belong to its Pod"
            )
        if settings.kubeconfig and not os.path.lexists(settings.kubeconfig):
            raise InvalidFlag(f"--kubeconfig: no such file: {settings.kubeconfig!r}")
    elif not settings.policies:
        raise InvalidFlag(
            "--policies is needed: a directory or file with templates and constraints; or "
            "--kubernetes, to take them from a cluster"
        )


def _check_operations(settings: ServeSettings) -> None:
    """A process decides about something: admissions, or what is in the cluster already."""
    if not settings.serves_admission and not settings.audits:
        raise InvalidFlag(
            f"--operation={','.join(settings.operation)}: this process would decide nothing: "
            "add webhook or mutation-webhook to answer admission reviews, or audit (with --kubernetes)"
        )


def _check_port(name: str, port: int) -> None:
    if not 0 <= port <= 65535:
        raise InvalidFlag(f"--{name} must be between 0 and 65535, got {port}")


def address(text: str, name: str) -> tuple[str, int]:
    """Host and port of Go's ``host:port``; raises :class:`InvalidFlag`."""
    host, colon, port = text.rpartition(":")
    if not colon or not port.isascii() or not port.isdigit():
        raise InvalidFlag(f"invalid value {text!r} for flag --{name}: want host:port or :port")
    _check_port(name, int(port))
    return host.removeprefix("[").removesuffix("]"), int(port)
