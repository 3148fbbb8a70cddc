"""Verification of a certificate chain as Go's ``Certificate.Verify`` does it.

``cryptography``'s verifier follows the Web PKI's profile, which refuses chains
that Go accepts (no subject alternative name, long validity …), so the path is
built here; signatures are checked by ``cryptography``.

Where a certificate demands an explicit policy (RFC 5280, 4.2.1.11), the chain is
refused: policy trees are not computed.
"""

from __future__ import annotations

import base64
import datetime as dt
import ipaddress
from typing import TYPE_CHECKING, Any, Final

from cryptography import x509
from cryptography.exceptions import InvalidSignature

from webhook.golang import url as go_url
from webhook.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from webhook.rego.builtins.x509.certificate import Fields

SERVER_AUTH: Final = 1
"""Go's ExtKeyUsageServerAuth, the default requirement."""

_ANY_USAGE: Final = 0
_CERT_SIGN: Final = 1 << 5  # Go's KeyUsageCertSign
_INSECURE: Final = frozenset((0, 1, 2, 3, 7, 8, 9))  # unknown, MD2, MD5, SHA-1 and DSA
_SUBJECT_ALT_NAME: Final = [2, 5, 29, 17]
# crypto/x509, maxChainSignatureChecks: bounds the search among intermediates.
_SIGNATURE_CHECKS_MAX: Final = 100


@dataclass(frozen=True, slots=True)
class Options:
    """The requirements of a verification."""

    now_ns: int
    dns_name: str = ""
    usages: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Certificate:
    """A certificate in both forms: Go's fields, and the bytes for checking signatures."""

    fields: Fields

    @property
    def data(self) -> bytes:
        """The certificate in DER."""
        return base64.b64decode(self.fields["Raw"])


def verify(certificates: Sequence[Fields], options: Options) -> list[Fields] | None:
    """Returns the chain from leaf to root, ``None`` without one; the given root is first."""
    if len(certificates) < 2:
        return None
    root, *intermediates, leaf = map(Certificate, certificates)
    if not _is_valid(leaf, (), options, intermediate=False):
        return None
    if options.dns_name and not _matches_host(leaf.fields, options.dns_name):
        return None
    if leaf.data == root.data:
        chains: list[tuple[Certificate, ...]] = [(leaf,)]
    else:
        search = _Search(root, intermediates, options)
        chains = search.from_chain((leaf,))
    for chain in chains:
        if _is_acceptable(chain, options):
            return [certificate.fields for certificate in chain]
    return None


class _Search:
    """A search for paths to the root, bounded by the signatures it may check."""

    def __init__(
        self, root: Certificate, intermediates: Sequence[Certificate], options: Options
    ) -> None:
        self._root = root
        self._intermediates = intermediates
        self._options = options
        self._checks_left = _SIGNATURE_CHECKS_MAX

    def from_chain(self, chain: tuple[Certificate, ...]) -> list[tuple[Certificate, ...]]:
        """Returns all completions of ``chain``."""
        chains = []
        if self._accepts(chain, self._root, intermediate=False):
            chains.append((*chain, self._root))
        for candidate in self._intermediates:
            if self._accepts(chain, candidate, intermediate=True):
                chains += self.from_chain((*chain, candidate))
        return chains

    def _accepts(
        self, chain: tuple[Certificate, ...], candidate: Certificate, *, intermediate: bool
    ) -> bool:
        if candidate.fields["RawSubject"] != chain[-1].fields["RawIssuer"]:
            return False
        self._checks_left -= 1
        return (
            self._checks_left >= 0
            and candidate.fields["PublicKey"] is not None
            and not _is_in(candidate.fields, chain)
            and _signed_by(chain[-1], candidate)
            and _is_valid(candidate, chain, self._options, intermediate=intermediate)
        )


def _is_in(candidate: Fields, chain: Iterable[Certificate]) -> bool:
    identity = _identity(candidate)
    return any(_identity(certificate.fields) == identity for certificate in chain)


def _identity(fields: Fields) -> tuple[Any, ...]:
    names = [e["Value"] for e in fields["Extensions"] or () if e["Id"] == _SUBJECT_ALT_NAME]
    return fields["RawSubject"], fields["RawSubjectPublicKeyInfo"], *names


def _signed_by(child: Certificate, parent: Certificate) -> bool:
    fields = parent.fields
    if fields["Version"] == 3 and not fields["BasicConstraintsValid"]:
        return False
    if fields["BasicConstraintsValid"] and not fields["IsCA"]:
        return False
    if fields["KeyUsage"] and not fields["KeyUsage"] & _CERT_SIGN:
        return False
    if child.fields["SignatureAlgorithm"] in _INSECURE:
        return False
    try:
        issued = x509.load_der_x509_certificate(child.data)
        issued.verify_directly_issued_by(x509.load_der_x509_certificate(parent.data))
    except (ValueError, TypeError, InvalidSignature):
        return False
    return True


def _is_valid(
    certificate: Certificate,
    chain: tuple[Certificate, ...],
    options: Options,
    *,
    intermediate: bool,
) -> bool:
    fields = certificate.fields
    if fields["UnhandledCriticalExtensions"]:
        return False
    if not _nanoseconds(fields["NotBefore"]) <= options.now_ns <= _nanoseconds(fields["NotAfter"]):
        return False
    if intermediate and not (fields["BasicConstraintsValid"] and fields["IsCA"]):
        return False
    limit = fields["MaxPathLen"]
    return not (fields["BasicConstraintsValid"] and 0 <= limit < len(chain) - 1)


def _nanoseconds(time: str) -> int:
    return int(dt.datetime.fromisoformat(time).timestamp()) * 1_000_000_000


def _matches_host(fields: Fields, host: str) -> bool:
    literal = host[1:-1] if host.startswith("[") and host.endswith("]") else host
    try:
        address = ipaddress.ip_address(literal)
    except ValueError:
        pass
    else:
        return any(
            ipaddress.ip_address(own_address) == address
            for own_address in fields["IPAddresses"] or ()
        )
    name = host.lower()
    labels = name.removesuffix(".").split(".")
    if not _is_hostname(labels, pattern=False):
        return any(pattern.lower() == name for pattern in fields["DNSNames"] or ())
    for pattern in fields["DNSNames"] or ():
        parts = pattern.lower().split(".")
        if _is_hostname(parts, pattern=True) and len(parts) == len(labels):
            if parts[0] in ("*", labels[0]) and parts[1:] == labels[1:]:
                return True
        elif pattern.lower() == name:
            return True
    return False


def _is_hostname(labels: list[str], *, pattern: bool) -> bool:
    rest = labels[1:] if pattern and len(labels) > 1 and labels[0] == "*" else labels
    return all(
        label
        and not label.startswith("-")
        and label.isascii()
        and label.replace("-", "").replace("_", "a").isalnum()
        for label in rest
    )


def _is_acceptable(chain: Sequence[Certificate], options: Options) -> bool:
    fields = [certificate.fields for certificate in chain]
    if any(f["RequireExplicitPolicy"] or f["RequireExplicitPolicyZero"] for f in fields):
        return False
    usages = options.usages or (SERVER_AUTH,)
    if _ANY_USAGE not in usages and not _allows_usage(fields, usages):
        return False
    return all(_respects(fields[:place], fields[place]) for place in range(1, len(fields)))


def _allows_usage(chain: Sequence[Fields], usages: Iterable[int]) -> bool:
    """Returns whether at least one usage is allowed by every certificate that limits them."""
    remaining = set(usages)
    for fields in chain:
        if not fields["ExtKeyUsage"] and not fields["UnknownExtKeyUsage"]:
            continue
        allowed = fields["ExtKeyUsage"] or ()
        if _ANY_USAGE not in allowed:
            remaining &= set(allowed)
    return bool(remaining)


def _respects(below: Sequence[Fields], issuer: Fields) -> bool:
    """Returns whether the names of the certificates below keep to the issuer's name constraints."""
    for fields in below:
        for kind, names in _names(fields):
            permitted, excluded = issuer[f"Permitted{kind}"], issuer[f"Excluded{kind}"]
            for name in names:
                if excluded and any(_within(kind, name, limit) for limit in excluded):
                    return False
                if permitted and not any(_within(kind, name, limit) for limit in permitted):
                    return False
    return True


def _names(fields: Fields) -> list[tuple[str, list[str]]]:
    return [
        ("DNSDomains", fields["DNSNames"] or []),
        ("EmailAddresses", fields["EmailAddresses"] or []),
        ("IPRanges", fields["IPAddresses"] or []),
        ("URIDomains", fields["URIStrings"] or []),
    ]


def _within(kind: str, name: str, limit: Any) -> bool:
    if kind == "IPRanges":
        return _in_range(name, limit)
    if kind == "EmailAddresses":
        mailbox, _, domain = name.rpartition("@")
        own_mailbox, at, own_domain = limit.rpartition("@")
        if at:
            return bool(mailbox == own_mailbox and domain.lower() == own_domain.lower())
        return _in_domain(domain, limit, exact=True)
    if kind == "URIDomains":
        try:
            host = go_url.parse(name).hostname
        except ValueError:
            return False
        return bool(host) and _in_domain(host, limit, exact=True)
    return _in_domain(name, limit, exact=False)


def _in_domain(name: str, limit: str, *, exact: bool) -> bool:
    """RFC 5280, 4.2.1.10: a host for URI and mail unless it begins with a dot."""
    if not limit:
        return True
    name, limit = name.lower(), limit.lower()
    if limit.startswith("."):
        return name.endswith(limit)
    return name == limit or (not exact and name.endswith(f".{limit}"))


def _in_range(name: str, limit: Fields) -> bool:
    address, base = ipaddress.ip_address(name), ipaddress.ip_address(limit["IP"])
    if address.version != base.version:
        return False
    mask = int.from_bytes(base64.b64decode(limit["Mask"]), "big")
    return int(address) & mask == int(base) & mask
