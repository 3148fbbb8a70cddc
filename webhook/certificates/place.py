"""Where the cluster keeps the serving certificate."""

from __future__ import annotations

from webhook.values import dataclass


@dataclass(frozen=True, slots=True)
class CertificatePlace:
    """Where the certificate is kept, and the DNS names that it is for."""

    namespace: str
    secret: str
    configuration: str
    names: tuple[str, ...]
    mutating_configuration: str = ""
    """The name of a MutatingWebhookConfiguration; empty where nothing is mutated."""
