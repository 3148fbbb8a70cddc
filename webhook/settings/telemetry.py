"""The flags of generated policies and of an OpenTelemetry collector."""

from __future__ import annotations

import os
from typing import Final, NamedTuple
from urllib.parse import urlsplit

from webhook.settings.flags import InvalidFlag, flag
from webhook.values import dataclass

METRICS_BACKENDS: Final = ("prometheus", "opentelemetry")

_PORTS: Final = {"grpc": 4317, "grpcs": 4317, "http": 4318, "https": 4318}
"""The ports of OTLP's specification by scheme."""


@dataclass(frozen=True, slots=True)
class GenerationSettings:
    """The settings of generated policies."""

    default_create_vap_for_templates: bool = flag(
        True,
        "With --operation=generate: create a ValidatingAdmissionPolicy for each template "
        "with CEL, unless its generateVAP says otherwise.",
        gatekeeper=True,
    )
    default_create_vap_binding_for_constraints: bool = flag(
        True,
        "Create a ValidatingAdmissionPolicyBinding for each constraint of such a template. "
        "Without it, only constraints whose scopedEnforcementActions name vap.k8s.io get one.",
        gatekeeper=True,
    )
    default_wait_for_vapb_generation: int = flag(
        30,
        "How many seconds the API server must have served a constraint's CRD before bindings "
        "of its constraints are created.",
        gatekeeper=True,
        at_least=0,
    )
    sync_vap_enforcement_scope: bool = flag(
        True,
        "Limit policies to the scope of the webhook: its configuration "
        "(--validating-webhook-configuration-name), Config and the exempt namespaces. "
        "Without it they match every creation and update.",
        gatekeeper=True,
    )
    vap_generation_mode: str = flag(
        "template",
        "template generates one policy for each template, as Gatekeeper does. It reads "
        "constraints as parameters, and leaves errors of its evaluation to the webhook. "
        "constraint generates one for each constraint, with its parameters as constants; it "
        "can fail closed.",
        choices=("template", "constraint"),
    )


@dataclass(frozen=True, slots=True)
class TelemetrySettings:
    """The settings of traces and metrics for a collector."""

    otlp_endpoint: str = flag(
        "",
        "The OpenTelemetry collector: grpc://host:4317 or http://host:4318 (grpcs and https "
        "with TLS); host:port alone is http, as in Gatekeeper. Other flags turn on what is "
        "sent.",
        gatekeeper=True,
    )
    otlp_ca_file: str = flag(
        "",
        "The file with the authorities of the collector's certificate; empty for the system's.",
    )
    metrics_backend: tuple[str, ...] = flag(
        ("prometheus",),
        "Where metrics go: opentelemetry sends them to --otlp-endpoint. /metrics is always served.",
        gatekeeper=True,
        choices=METRICS_BACKENDS,
    )
    otlp_metric_interval_seconds: float = flag(
        10.0,
        "How often metrics are sent to --otlp-endpoint.",
        kind="duration",
        gatekeeper=True,
        at_least=1,
    )
    enable_tracing: bool = flag(
        False,
        "Send traces of sampled requests to --otlp-endpoint: those that the API server samples "
        "(traceparent), 100 a second at most.",
    )
    trace_samples_per_million: int = flag(
        0,
        "The number of traces per million requests without a trace of the API server.",
    )

    @property
    def sends_metrics(self) -> bool:
        """Whether metrics are sent to a collector."""
        return "opentelemetry" in self.metrics_backend


class OTLPEndpoint(NamedTuple):
    """The parts of a collector's address."""

    scheme: str
    host: str
    port: int
    path: str


def read_endpoint(text: str) -> OTLPEndpoint:
    """Returns the address of a collector; raises :class:`~webhook.settings.flags.InvalidFlag`."""
    wrong = f"invalid value {text!r} for flag --otlp-endpoint: want grpc://host:port, http://host:port or host:port"
    try:
        parts = urlsplit(text if "://" in text else f"http://{text}")
        port = parts.port
    except ValueError:
        raise InvalidFlag(wrong) from None
    if parts.scheme not in _PORTS or not parts.hostname or parts.username or parts.query:
        raise InvalidFlag(wrong)
    if parts.scheme.startswith("grpc") and parts.path not in ("", "/"):
        raise InvalidFlag(f"{wrong}; gRPC has no path")
    return OTLPEndpoint(parts.scheme, parts.hostname, port or _PORTS[parts.scheme], parts.path)


def validate_telemetry(settings: TelemetrySettings) -> None:
    """Checks the flags of telemetry; raises :class:`~webhook.settings.flags.InvalidFlag`."""
    if settings.otlp_endpoint:
        read_endpoint(settings.otlp_endpoint)
    elif settings.sends_metrics:
        raise InvalidFlag("--metrics-backend=opentelemetry needs --otlp-endpoint")
    elif settings.enable_tracing:
        raise InvalidFlag("--enable-tracing needs --otlp-endpoint")
    if settings.otlp_ca_file and not os.path.lexists(settings.otlp_ca_file):
        raise InvalidFlag(f"--otlp-ca-file: no such file: {settings.otlp_ca_file!r}")
    if not 0 <= settings.trace_samples_per_million <= 1_000_000:
        raise InvalidFlag("--trace-samples-per-million must be between 0 and 1000000")
