"""Reads signatures and attestations of an image, in both formats, without verifying them.

===================================  ==================================================
tag ``sha256-….sig``, or a referrer  cosign's first format: each layer is a payload
of artifact type ``….sig.v1+json``   ("simple signing"), its annotations hold the rest
tag ``sha256-….att``, or a referrer  the same, each layer a DSSE envelope
of artifact type in-toto
referrer of a Sigstore bundle v0.3   a DSSE envelope, or a signature over the manifest
===================================  ==================================================
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Mapping
from typing import Any, Final

from webhook.api.encoding import DecodeError, decode
from webhook.images.transparency import PROOF_HASHES_MAX, InclusionProof, LogEntry
from webhook.registry.reference import is_digest
from webhook.values import dataclass

BUNDLE: Final = "application/vnd.dev.sigstore.bundle"
_BUNDLE_VERSIONS: Final = (
    f"{BUNDLE}.v0.3+json",
    *(f"{BUNDLE}+json;version=0.{minor}" for minor in (1, 2, 3)),
)
SIMPLE_SIGNING: Final = "application/vnd.dev.cosign.simplesigning.v1+json"
ENVELOPE: Final = "application/vnd.dsse.envelope.v1+json"
_SIGNATURE_ARTIFACT: Final = "application/vnd.dev.cosign.artifact.sig.v1+json"
SIGN_PREDICATE: Final = "https://sigstore.dev/cosign/sign/v1"
"""The predicate type of a statement that is a mere signature."""

STATEMENT: Final = "application/vnd.in-toto+json"
FIRST_FORMAT: Final = (_SIGNATURE_ARTIFACT, STATEMENT)
"""The artifact types of referrers whose layers have cosign's first format."""

_STATEMENT_TYPES: Final = ("https://in-toto.io/Statement/v1", "https://in-toto.io/Statement/v0.1")

_ANNOTATIONS: Final = "dev.sigstore.cosign/"
_SIGNATURE: Final = "dev.cosignproject.cosign/signature"

ENTRIES_MAX: Final = 8
"""The number of log entries or timestamps of one signature at most; signers write one of each."""

_SUBJECTS_MAX: Final = 1_000
"""The number of subjects of a statement at most; a build may attest several hundred images at once.
"""


class UnreadableEvidence(ValueError):
    """Content that is no supported signature or attestation; the message says why."""


@dataclass(frozen=True, slots=True)
class Claim:
    """The digests of a signer's statement, and its predicate (none in a mere signature)."""

    digests: frozenset[str]
    predicate_type: str = ""
    statement: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Endorsement:
    """A signature with the certificates, log entries and timestamps that came with it."""

    where: str
    claim: Claim
    payload: bytes
    """The bytes whose hash a log entry names."""
    signed: bytes
    """The bytes that are signed."""
    signatures: tuple[bytes, ...]
    certificate: bytes = b""
    chain: bytes = b""
    entries: tuple[LogEntry, ...] = ()
    timestamps: tuple[bytes, ...] = ()
    stamped: bytes = b""
    """The bytes that timestamps cover, if it is not the signature."""
    envelope: bytes = b""


@dataclass(frozen=True, slots=True)
class ImageEvidence:
    """All evidence read about an image; ``notes`` name content that was not read or not usable."""

    digest: str
    endorsements: tuple[Endorsement, ...]
    notes: tuple[str, ...] = ()


def read_simple(where: str, payload: bytes, annotations: Mapping[str, str]) -> Endorsement:
    """Reads one layer of cosign's first format; raises :class:`UnreadableEvidence`."""
    signature = _base64(annotations.get(_SIGNATURE), "its annotation with the signature")
    try:
        # The payload's type is ignored, as cosign ignores it: the signed content is the digest.
        digest = decode(payload)["critical"]["image"]["docker-manifest-digest"]
    except (DecodeError, KeyError, TypeError):
        raise UnreadableEvidence("its payload is not a simple signing payload") from None
    return Endorsement(
        where,
        Claim(frozenset([_digest(digest)])),
        payload,
        payload,
        (signature,),
        *_annotated_certificates(annotations),
        _annotated_entries(annotations),
        _annotated_timestamps(annotations),
    )


def read_attestation(where: str, envelope: bytes, annotations: Mapping[str, str]) -> Endorsement:
    """Reads an attestation layer of cosign's first format; raises :class:`UnreadableEvidence`."""
    claim, payload, signed, signatures = _read_envelope(_json(envelope))
    return Endorsement(
        where,
        claim,
        payload,
        signed,
        signatures,
        *_annotated_certificates(annotations),
        _annotated_entries(annotations),
        _annotated_timestamps(annotations),
        stamped=envelope,
        envelope=envelope,
    )


def read_bundle(where: str, data: bytes, manifest: bytes) -> Endorsement:
    """Reads a Sigstore bundle about a manifest; raises :class:`UnreadableEvidence`."""
    bundle = _json(data)
    kind = bundle.get("mediaType")
    if kind not in _BUNDLE_VERSIONS:
        raise UnreadableEvidence(
            "it is not a Sigstore bundle of a version that is read: its mediaType is "
            f"{str(kind)[:100]!r}"
        )
    try:
        material = bundle["verificationMaterial"]
        certificate, chain = _bundled_certificates(material)
        entries = tuple(_entry(item) for item in _list(material.get("tlogEntries")))
        stamps = _list((material.get("timestampVerificationData") or {}).get("rfc3161Timestamps"))
        timestamps = tuple(
            _base64(item["signedTimestamp"], "a signed timestamp") for item in stamps
        )
        if "dsseEnvelope" in bundle:
            claim, payload, signed, signatures = _read_envelope(bundle["dsseEnvelope"])
        else:
            message = bundle["messageSignature"]
            claim = _message_claim(message, manifest)
            payload = signed = manifest
            signatures = (_base64(message["signature"], "its signature"),)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        if isinstance(error, UnreadableEvidence):
            raise
        raise UnreadableEvidence(
            f"the bundle cannot be read: {type(error).__name__}: {error}"
        ) from None
    return Endorsement(
        where, claim, payload, signed, signatures, certificate, chain, entries, timestamps
    )


def _bundled_certificates(material: Any) -> tuple[bytes, bytes]:
    """Returns the signer's certificate and its chain; both empty if a key has signed."""
    if "certificate" in material:
        return _base64(material["certificate"]["rawBytes"], "its certificate"), b""
    if "x509CertificateChain" in material:
        first, *more = _list(material["x509CertificateChain"]["certificates"])
        ders = [_base64(certificate["rawBytes"], "its chain") for certificate in more]
        return _base64(first["rawBytes"], "its certificate"), b"".join(_pem(der) for der in ders)
    return b"", b""


def _pem(der: bytes) -> bytes:
    body = base64.encodebytes(der)
    return b"-----BEGIN CERTIFICATE-----\n" + body + b"-----END CERTIFICATE-----\n"


def _message_claim(message: Any, manifest: bytes) -> Claim:
    stated = message.get("messageDigest")
    digest = hashlib.sha256(manifest).digest()
    if stated is not None:
        if stated.get("algorithm") != "SHA2_256":
            raise UnreadableEvidence(f"it is over a hash of {stated.get('algorithm')!r}")
        if _base64(stated["digest"], "its digest") != digest:
            raise UnreadableEvidence("it is over another manifest than the image's")
    return Claim(frozenset([f"sha256:{digest.hex()}"]))


def _read_envelope(envelope: Any) -> tuple[Claim, bytes, bytes, tuple[bytes, ...]]:
    """Returns the claim of a DSSE envelope, its payload, the signed bytes, and the signatures."""
    try:
        payload_type = envelope["payloadType"]
        payload = _base64(envelope["payload"], "its payload")
        signatures = tuple(
            _base64(signature["sig"], "a signature of its envelope")
            for signature in _list(envelope["signatures"])
        )
    except (KeyError, TypeError):
        raise UnreadableEvidence("it is not a DSSE envelope") from None
    if payload_type != STATEMENT:
        raise UnreadableEvidence(f"its envelope holds {payload_type!r}, not an in-toto statement")
    if not signatures:
        raise UnreadableEvidence("its envelope has no signature")
    kind = payload_type.encode()
    signed = b"DSSEv1 %d %s %d %s" % (len(kind), kind, len(payload), payload)
    return _statement_claim(_json(payload)), payload, signed, signatures


def _statement_claim(statement: dict[str, Any]) -> Claim:
    if statement.get("_type") not in _STATEMENT_TYPES:
        raise UnreadableEvidence(f"its statement is of type {statement.get('_type')!r}")
    kind, subjects = statement.get("predicateType"), statement.get("subject")
    if not isinstance(kind, str) or not kind:
        raise UnreadableEvidence("its statement has no predicateType")
    if not isinstance(subjects, list) or len(subjects) > _SUBJECTS_MAX:
        raise UnreadableEvidence(f"its statement has no subjects, or more than {_SUBJECTS_MAX}")
    digests = set()
    for subject in subjects:
        named = subject.get("digest") if isinstance(subject, dict) else None
        value = named.get("sha256") if isinstance(named, dict) else None
        if is_digest(digest := f"sha256:{value}"):
            digests.add(digest)
    return Claim(frozenset(digests), "" if kind == SIGN_PREDICATE else kind, statement)


def _annotated_certificates(annotations: Mapping[str, str]) -> tuple[bytes, bytes]:
    return (
        annotations.get(f"{_ANNOTATIONS}certificate", "").encode(),
        annotations.get(f"{_ANNOTATIONS}chain", "").encode(),
    )


def _annotated_entries(annotations: Mapping[str, str]) -> tuple[LogEntry, ...]:
    text = annotations.get(f"{_ANNOTATIONS}bundle")
    if not text:
        return ()
    try:
        bundle = decode(text)
        payload = bundle["Payload"]
        return (
            LogEntry(
                body=_base64(payload["body"], "its log entry"),
                log_id=bytes.fromhex(payload["logID"]),
                index=_integer(payload["logIndex"]),
                integrated=_integer(payload["integratedTime"]),
                promise=_base64(bundle["SignedEntryTimestamp"], "its signed entry timestamp"),
            ),
        )
    except (DecodeError, KeyError, TypeError, ValueError) as error:
        raise UnreadableEvidence(f"its log entry cannot be read: {error}") from None


def _annotated_timestamps(annotations: Mapping[str, str]) -> tuple[bytes, ...]:
    text = annotations.get(f"{_ANNOTATIONS}rfc3161timestamp")
    if not text:
        return ()
    try:
        return (_base64(decode(text)["SignedRFC3161Timestamp"], "its signed timestamp"),)
    except (DecodeError, KeyError, TypeError):
        raise UnreadableEvidence("its signed timestamp cannot be read") from None


def _entry(item: Any) -> LogEntry:
    proof = item.get("inclusionProof")
    promise = (item.get("inclusionPromise") or {}).get("signedEntryTimestamp")
    stated = item["kindVersion"]
    return LogEntry(
        body=_base64(item["canonicalizedBody"], "its log entry"),
        kind=(str(stated["kind"]), str(stated["version"])),
        log_id=_base64(item["logId"]["keyId"], "its log's name"),
        index=_integer(item.get("logIndex", 0)),
        integrated=_integer(item.get("integratedTime", 0)),
        promise=_base64(promise, "its signed entry timestamp") if promise else b"",
        proof=None if proof is None else _proof(proof),
    )


def _proof(proof: Any) -> InclusionProof:
    hashes = proof.get("hashes") or []
    if len(hashes) > PROOF_HASHES_MAX:
        raise UnreadableEvidence("its inclusion proof has too many hashes")
    return InclusionProof(
        index=_integer(proof.get("logIndex", 0)),
        size=_integer(proof["treeSize"]),
        root=_base64(proof["rootHash"], "its root hash"),
        hashes=tuple(_base64(text, "a hash of its inclusion proof") for text in hashes),
        checkpoint=str((proof.get("checkpoint") or {}).get("envelope", "")),
    )


def _integer(value: Any) -> int:
    """Returns a number below 2^63, which Protobuf's JSON may write as a text."""
    if type(value) is str and len(value) <= 20 and value.isascii() and value.isdigit():
        value = int(value)
    if type(value) is not int or not 0 <= value < 1 << 63:
        raise UnreadableEvidence(f"{str(value)[:30]!r} is not the number of a log entry")
    return value


def _digest(value: Any) -> str:
    if not is_digest(value):
        raise UnreadableEvidence("its payload names no SHA-256 digest")
    return str(value)


def _list(value: Any) -> list[Any]:
    if value is None:
        return []
    if type(value) is not list:
        raise UnreadableEvidence("an object stands where a list should")
    if len(value) > ENTRIES_MAX:
        raise UnreadableEvidence(
            f"it has more than {ENTRIES_MAX} log entries, timestamps or signatures"
        )
    return value


def _json(data: bytes) -> dict[str, Any]:
    try:
        value = decode(data)
    except DecodeError as error:
        raise UnreadableEvidence(f"it is not JSON: {error}") from None
    if type(value) is not dict:
        raise UnreadableEvidence("it is not a JSON object")
    return value


def _base64(value: Any, expected: str) -> bytes:
    try:
        return base64.b64decode(value, validate=True)
    except (TypeError, ValueError, binascii.Error):
        raise UnreadableEvidence(f"{expected} is missing, or no base64") from None
