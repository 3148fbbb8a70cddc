"""The options of the serving certificate from flags: its source, its place, its names."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from webhook.certificates.loader import CertificateOptions

if TYPE_CHECKING:
    from webhook.certificates.loader import CertificateLoader
    from webhook.certificates.plan import CertificatePlace
    from webhook.certificates.session import ClusterCertificate
    from webhook.log import Logger
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


def kept_certificate(
    settings: ServeSettings, loader: CertificateLoader | None, log: Logger
) -> ClusterCertificate | None:
    """Returns the part that keeps the listener's certificate in the cluster, if this process does."""
    if loader is None or not settings.keeps_certificate:
        return None
    # Imported here: it takes 8 MiB that a process with a directory of certificates does not need.
    from webhook.certificates.session import ClusterCertificate  # noqa: PLC0415

    return ClusterCertificate(certificate_place(settings), loader, log)


def certificate_place(settings: ServeSettings) -> CertificatePlace:
    """Where the cluster keeps it."""
    # Imported here: see kept_certificate.
    from webhook.certificates.plan import CertificatePlace  # noqa: PLC0415

    return CertificatePlace(
        settings.pod.namespace,
        settings.tls.cert_secret_name,
        settings.tls.validating_webhook_configuration_name,
        _service_names(settings),
        settings.tls.mutating_webhook_configuration_name if settings.mutates else "",
        _named(settings.tls.provider_ca_secret),
        validates="webhook" in settings.policies.operation,
    )


def _named(secret: str) -> tuple[str, str] | None:
    namespace, _, name = secret.partition("/")
    return (namespace, name) if name else None


def _service_names(settings: ServeSettings) -> tuple[str, ...]:
    service, namespace = settings.tls.cert_service_name, settings.pod.namespace or "waddle-system"
    return f"{service}.{namespace}.svc", f"{service}.{namespace}.svc.cluster.local", "localhost"
