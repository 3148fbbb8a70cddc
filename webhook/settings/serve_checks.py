"""Refuses readable flags of ``waddle serve`` that contradict each other or are out of range."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from webhook.settings.flags import InvalidFlag, flags_of
from webhook.settings.reports import validate_reports
from webhook.settings.telemetry import validate_telemetry

if TYPE_CHECKING:
    from webhook.settings.serve import ServeSettings


def validate(settings: ServeSettings) -> None:
    """Refuses readable but contradictory or out-of-range flags; the error names the flag."""
    _check_bounds(settings)
    _check_source(settings)
    _check_operations(settings)
    validate_reports(settings.reports, in_cluster=settings.in_cluster)
    validate_telemetry(settings.telemetry)
    for path in settings.policies.paths:
        if not os.path.lexists(path):
            raise InvalidFlag(f"--policies: no such file or directory: {path!r}")
    for name in ("port", "prometheus_port", "pprof_port"):
        _check_port(name.replace("_", "-"), getattr(settings.serving, name))
    address(settings.serving.health_addr, "health-addr")
    if settings.tls.client_ca_name and not settings.tls.cert_dir:
        raise InvalidFlag("--client-ca-name names a file in --cert-dir, which is missing")
    if settings.tls.client_ca_name and settings.tls.api_server_ca_file:
        raise InvalidFlag(
            "--client-ca-name and --api-server-ca-file exclude each other: the first admits no "
            "other clients"
        )
    if settings.policies.webhook_rules == "policies" and not settings.in_cluster:
        raise InvalidFlag(
            "--webhook-rules=policies writes to the cluster's webhook configurations: it needs "
            "--kubernetes"
        )
    if settings.tls.provider_ca_secret:
        _check_provider_secret(settings)
    if settings.deciding.enable_validate_policy and not (
        settings.tls.client_ca_name or settings.in_cluster
    ):
        raise InvalidFlag(
            "--enable-validate-policy must know its callers: add --client-ca-name or --kubernetes"
        )


def _check_provider_secret(settings: ServeSettings) -> None:
    """Checks --provider-ca-secret: it copies a certificate that is kept in the cluster."""
    namespace, slash, name = settings.tls.provider_ca_secret.partition("/")
    if not (namespace and slash and name) or "/" in name:
        raise InvalidFlag(
            f"--provider-ca-secret: must be NAMESPACE/NAME, got {settings.tls.provider_ca_secret!r}"
        )
    if not settings.keeps_certificate:
        raise InvalidFlag(
            "--provider-ca-secret copies a certificate that the cluster keeps: add --kubernetes, "
            "and remove --cert-dir and --disable-cert-rotation"
        )


def _check_bounds(settings: ServeSettings) -> None:
    """Checks that no number is below its declared minimum."""
    for item in flags_of(type(settings)):
        value = getattr(getattr(settings, item.section), item.field)
        if item.at_least is not None and value < item.at_least:
            raise InvalidFlag(f"--{item.name} must be at least {item.at_least:g}")


def _check_source(settings: ServeSettings) -> None:
    """Checks that policies have one source.

    Objects of a second one could be neither seen nor removed.
    """
    if settings.in_cluster:
        if settings.policies.paths:
            raise InvalidFlag("--policies and --kubernetes exclude each other: give one of them")
        if not settings.pod.name or not settings.pod.namespace:
            raise InvalidFlag(
                "--kubernetes needs POD_NAME and POD_NAMESPACE in the environment: the replica's "
                "status objects belong to its Pod"
            )
        if settings.policies.kubeconfig and not os.path.lexists(settings.policies.kubeconfig):
            raise InvalidFlag(f"--kubeconfig: no such file: {settings.policies.kubeconfig!r}")
    elif not settings.policies.paths:
        raise InvalidFlag(
            "no policies are given: add --policies with a directory or file of templates and "
            "constraints, or --kubernetes to read them from a cluster"
        )


def _check_operations(settings: ServeSettings) -> None:
    """Checks that the process decides: admissions, or existing objects in an audit."""
    if not settings.serves_admission and not settings.audits:
        raise InvalidFlag(
            f"--operation={','.join(settings.policies.operation)} decides nothing: add webhook or "
            "mutation-webhook to answer admission reviews, or audit (with --kubernetes)"
        )


def _check_port(name: str, port: int) -> None:
    if not 0 <= port <= 65535:
        raise InvalidFlag(f"--{name} must be between 0 and 65535, got {port}")


def address(text: str, name: str) -> tuple[str, int]:
    """Returns host and port of Go's ``host:port``; raises :class:`InvalidFlag`."""
    host, colon, port = text.rpartition(":")
    if not colon or not port.isascii() or not port.isdigit():
        raise InvalidFlag(f"invalid value {text!r} for flag --{name}: want host:port or :port")
    _check_port(name, int(port))
    return host.removeprefix("[").removesuffix("]"), int(port)
