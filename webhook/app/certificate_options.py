"""The options of the serving certificate from flags: its source, its place, its names."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from webhook.certificates.loader import CertificateOptions

if TYPE_CHECKING:
    from webhook.certificates.plan import CertificatePlace
    from webhook.settings.serve import ServeSettings


def certificate_options(settings: ServeSettings) -> CertificateOptions:
    """Returns the options for the certificate's source."""
    return CertificateOptions(
        Path(settings.tls.cert_dir) if settings.tls.cert_dir else None,
        _service_names(settings),
        settings.serving.host,
        settings.tls.tls_min_version,
        settings.tls.client_ca_name,
        Path(settings.tls.api_server_ca_file) if settings.tls.api_server_ca_file else None,
    )


def certificate_place(settings: ServeSettings) -> CertificatePlace:
    """Where the cluster keeps it."""
    # Imported here: it takes 8 MiB, and without a cluster nobody plans certificates.
    from webhook.certificates.plan import CertificatePlace  # noqa: PLC0415

    return CertificatePlace(
        settings.pod.namespace,
        settings.tls.cert_secret_name,
        settings.tls.validating_webhook_configuration_name,
        _service_names(settings),
        settings.tls.mutating_webhook_configuration_name if settings.mutates else "",
        _named(settings.tls.provider_ca_secret),
    )


def _named(secret: str) -> tuple[str, str] | None:
    namespace, _, name = secret.partition("/")
    return (namespace, name) if name else None


def _service_names(settings: ServeSettings) -> tuple[str, ...]:
    service, namespace = settings.tls.cert_service_name, settings.pod.namespace or "waddle-system"
    return f"{service}.{namespace}.svc", f"{service}.{namespace}.svc.cluster.local", "localhost"
