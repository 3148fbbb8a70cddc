"""Why the API server does not trust the replicas: the Secret's certificate, and the CA bundles.

Replicas repair both within seconds. What is found here stays only where they lack rights, where
another writer is stronger, or where no replica runs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm

from webhook.api.gvk import name_of, text
from webhook.api.shapes import object_of, objects_of
from webhook.certificates.ca_bundle import writer_of
from webhook.certificates.pairs import CERTIFICATE
from webhook.certificates.reading import decoded, read_certificates, secret_data

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Iterable, Iterator, Mapping

WEBHOOKS: Final = ("ValidatingWebhookConfiguration", "MutatingWebhookConfiguration")

_CURE: Final = (
    "a replica writes the right one within seconds; if not, its log says why: kubectl -n {} logs -l "
    "gatekeeper.sh/operation=webhook --tail=1000 | grep certificate"
)


def certificate_faults(
    secret: Mapping[str, Any], service: str, now: dt.datetime, namespace: str
) -> Iterator[str]:
    """Returns what is wrong with the serving certificate in its Secret.

    ``service`` is the DNS name by which the API server calls.
    """
    where, cure = f"Secret {namespace}/{name_of(secret)}", _CURE.format(namespace)
    chain = read_certificates(secret_data(secret).get(CERTIFICATE, b""))
    if not chain:
        yield f"the {where} has no certificate: {cure}"
        return
    begins, ends = chain[0].not_valid_before_utc, chain[0].not_valid_after_utc
    if now >= ends:
        yield f"the certificate in the {where} has expired at {ends:%FT%TZ}: {cure}"
    elif now < begins:
        yield (
            f"the certificate in the {where} is not valid before {begins:%FT%TZ}, and calls fail until "
            "then: the clock of the node that issued it is wrong, or of this machine. Set it; then "
            + cure
        )
    if service and service not in _names(chain[0]):
        yield f"the certificate in the {where} is not for {service}, so calls fail with x509: {cure}"


def bundle_faults(
    configured: Iterable[Mapping[str, Any]], namespace: str, secret: Mapping[str, Any] | None
) -> Iterator[str]:
    """Returns the webhooks of Waddle's Service that do not trust the certificate in its Secret.

    ``secret`` is None if it may not be read: then only missing and unreadable bundles are found.
    """
    cure = _CURE.format(namespace)
    chain = read_certificates(secret_data(secret or {}).get(CERTIFICATE, b""))
    for configuration in configured:
        faults: dict[str, list[str]] = {}
        for webhook in objects_of(configuration.get("webhooks")):
            client = object_of(webhook.get("clientConfig"))
            if text(client, "service", "namespace") != namespace:
                continue
            if fault := _bundle_fault(text(client, "caBundle"), chain):
                faults.setdefault(fault, []).append(text(webhook, "name"))
        for fault, names in faults.items():
            writer = writer_of(configuration)
            yield (
                f"{name_of(configuration)}, webhook {', '.join(names)}: {fault}, so calls fail with "
                "x509"
                + (f" (caBundle was last written by {writer})" if writer else "")
                + f": {cure}"
            )


def _bundle_fault(bundle: str, chain: list[x509.Certificate]) -> str:
    """Returns what is wrong with a bundle for a certificate, or an empty text."""
    if not bundle:
        return "it has no caBundle"
    authorities = read_certificates(decoded(bundle))
    if not authorities:
        return "its caBundle is no certificate in PEM"
    if chain and not any(_issued(item, by) for item in chain for by in authorities):
        return "its caBundle is of another authority than the certificate that replicas serve"
    return ""


def _issued(certificate: x509.Certificate, by: x509.Certificate) -> bool:
    if certificate == by:
        return True
    try:
        certificate.verify_directly_issued_by(by)
    except (ValueError, TypeError, InvalidSignature, UnsupportedAlgorithm):
        return False
    return True


def _names(certificate: x509.Certificate) -> list[str]:
    try:
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName)
    except (ValueError, x509.ExtensionNotFound):
        return []
    return names.value.get_values_for_type(x509.DNSName)
