"""Transparency logs: whether a trusted log includes a signature or certificate, and since when.

Checks of an entry:

1. Its log is in the trusted root, by the log's key.
2. A signed entry timestamp (SET) is the log's, over the entry's body, index and time.
3. An inclusion proof leads from the body to a root hash (RFC 9162, section 2.1.3), and the log has
   signed a checkpoint with that hash.
4. The body names the payload, the signature and the key that were found beside the image.

An entry has a SET, an inclusion proof or both, and each of them must be valid. Only a SET proves a
time: no other signature of a log covers it. The consistency of checkpoints of two days is not
checked; monitors of the log do that.
"""

from __future__ import annotations

import base64
import binascii
import datetime as dt
import hashlib
import hmac
import struct
from typing import TYPE_CHECKING, Any, Final

from cryptography import x509

from webhook.api.encoding import DecodeError, decode, encode
from webhook.images.chain import (
    DEPTH_MAX,
    UNREADABLE,
    UntrustedCertificate,
    der_of,
    extension_of,
    read_certificates,
)
from webhook.images.signatures import (
    InvalidPublicKey,
    is_signed,
    key_bytes,
    key_of,
    read_public_key,
)
from webhook.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from webhook.images.trusted_root import TrustedLog

PROOF_HASHES_MAX: Final = 64
"""The number of hashes of an inclusion proof at most: the height of a tree of 2^64 leaves."""

_CHECKPOINT_BYTES_MAX: Final = 64 * 1024
_CHECKPOINT_SIGNATURES_MAX: Final = 16
"""The number of signatures of a checkpoint at most: of the log and of its witnesses."""


class UntrustedEntry(ValueError):
    """An entry that proves nothing; the message says why."""


@dataclass(frozen=True, slots=True)
class InclusionProof:
    """The hashes from a leaf to the root of a log's tree, and the log's checkpoint of that root."""

    index: int
    size: int
    root: bytes
    hashes: tuple[bytes, ...]
    checkpoint: str


@dataclass(frozen=True, slots=True)
class LogEntry:
    """A log entry that comes with a signature; not verified yet."""

    body: bytes
    log_id: bytes
    index: int
    integrated: int
    promise: bytes = b""
    """The signed entry timestamp."""
    proof: InclusionProof | None = None
    kind: tuple[str, str] | None = None
    """The entry's kind and version, if they are stated beside the body; older signatures lack both.
    """


@dataclass(frozen=True, slots=True)
class SignedThing:
    """The signed content that a log entry must name."""

    payload: bytes
    """The bytes whose hash an entry names: a simple signing payload, or the content of an envelope.
    """
    signature: bytes
    verifier: bytes
    """The key or the certificate, as DER."""
    envelope: bytes = b""
    """The bytes of the whole DSSE envelope, as read."""


def check_entry(
    entry: LogEntry, signed: SignedThing, logs: Mapping[bytes, TrustedLog] | None
) -> float | None:
    """Returns the time of the entry, None without a proven one; raises :class:`UntrustedEntry`."""
    log = (logs or {}).get(entry.log_id)
    if log is None:
        raise UntrustedEntry(
            f"its log {entry.log_id.hex()[:16] or 'without a name'}… is not in the trusted root"
        )
    if not entry.promise and entry.proof is None:
        raise UntrustedEntry("it has neither a signed entry timestamp nor an inclusion proof")
    _check_body(entry, signed)
    if entry.proof is not None:
        _check_proof(entry.body, entry.proof, log)
    if not entry.promise:
        return None
    _check_promise(entry, log)
    if not entry.integrated:
        return None
    if not log.validity.holds(entry.integrated):
        raise UntrustedEntry("its time is not within that of the log's key")
    return float(entry.integrated)


def _check_promise(entry: LogEntry, log: TrustedLog) -> None:
    signed = encode(
        {
            "body": base64.b64encode(entry.body).decode(),
            "integratedTime": entry.integrated,
            "logID": entry.log_id.hex(),
            "logIndex": entry.index,
        },
        sort_keys=True,
    )
    if not is_signed(log.key, entry.promise, signed):
        raise UntrustedEntry("its signed entry timestamp is not by the log, or for another entry")


def _check_proof(body: bytes, proof: InclusionProof, log: TrustedLog) -> None:
    computed = _root_hash(body, proof)
    if not hmac.compare_digest(computed, proof.root):
        raise UntrustedEntry("its inclusion proof does not lead to the root hash it names")
    size, root = _read_checkpoint(proof.checkpoint, log)
    if size != proof.size or not hmac.compare_digest(root, computed):
        raise UntrustedEntry("the log's checkpoint is of another tree than its inclusion proof")


def _root_hash(body: bytes, proof: InclusionProof) -> bytes:
    """Returns the root hash of an inclusion proof (RFC 9162, section 2.1.3.2)."""
    if not 0 <= proof.index < proof.size or len(proof.hashes) > PROOF_HASHES_MAX:
        raise UntrustedEntry("its inclusion proof names a leaf outside of the tree")
    node, last = proof.index, proof.size - 1
    digest = hashlib.sha256(b"\0" + body).digest()
    for sibling in proof.hashes:
        if last == 0:
            raise UntrustedEntry("its inclusion proof is longer than the tree is high")
        if node & 1 or node == last:
            digest = hashlib.sha256(b"\1" + sibling + digest).digest()
            while not node & 1 and node:
                node, last = node >> 1, last >> 1
        else:
            digest = hashlib.sha256(b"\1" + digest + sibling).digest()
        node, last = node >> 1, last >> 1
    if last:
        raise UntrustedEntry("its inclusion proof is shorter than the tree is high")
    return digest


def _read_checkpoint(text: str, log: TrustedLog) -> tuple[int, bytes]:
    """Returns size and root hash of a checkpoint that the log signed (C2SP, tlog-checkpoint)."""
    if len(text) > _CHECKPOINT_BYTES_MAX:
        raise UntrustedEntry("the log's checkpoint is too long")
    note, separator, signatures = text.partition("\n\n")
    lines = note.split("\n")
    if not separator or len(lines) < 3:
        raise UntrustedEntry("its inclusion proof comes without a checkpoint of the log")
    note += "\n"
    if not any(
        is_signed(log.key, signature, note.encode()) for signature in _note_signatures(signatures)
    ):
        raise UntrustedEntry("the log has not signed the checkpoint")
    try:
        return int(lines[1]), base64.b64decode(lines[2], validate=True)
    except (ValueError, binascii.Error):
        raise UntrustedEntry("the log's checkpoint cannot be read") from None


def _note_signatures(text: str) -> Iterator[bytes]:
    for line in text.split("\n")[:_CHECKPOINT_SIGNATURES_MAX]:
        mark, _, rest = line.partition(" ")
        _, _, encoded = rest.rpartition(" ")
        if mark == "\N{EM DASH}":
            try:
                yield base64.b64decode(encoded, validate=True)[
                    4:
                ]  # after four bytes of the key's identifier
            except (ValueError, binascii.Error):
                continue


def _check_body(entry: LogEntry, signed: SignedThing) -> None:
    """Raises unless an entry names this payload, signature and key."""
    try:
        document = decode(entry.body)
        kind = (document["kind"], document["apiVersion"])
        digests, signature, verifier, envelope = _BODIES[kind](document["spec"])
    except DecodeError as error:
        raise UntrustedEntry(f"its body is not JSON: {error}") from None
    except UnknownBody as error:
        raise UntrustedEntry(str(error)) from None
    except (KeyError, TypeError, ValueError, IndexError, AttributeError):
        raise UntrustedEntry("its body cannot be read, or is of a kind that is not known") from None
    if entry.kind not in {None, kind}:
        raise UntrustedEntry("its body is of another kind than stands beside it")
    if digests != hashlib.sha256(signed.payload).digest():
        raise UntrustedEntry("it is about another payload")
    if signature is not None and signature != signed.signature:
        raise UntrustedEntry("it is about another signature")
    if envelope is not None and envelope != hashlib.sha256(signed.envelope).digest():
        raise UntrustedEntry("it is about another envelope")
    if verifier != signed.verifier:
        raise UntrustedEntry("it is about another key or certificate")


class UnknownBody(ValueError):
    """An entry body whose kind of hash or verifier is not supported."""


_Named = tuple[bytes, bytes | None, bytes, bytes | None]
"""The values that an entry body names: payload hash, signature, verifier, envelope hash."""


def _hashed(spec: Any) -> _Named:
    named = spec["signature"]
    return (
        _hex(spec["data"]["hash"]),
        _decoded(named["content"]),
        _verifier(_decoded(named["publicKey"]["content"])),
        None,
    )


def _hashed_v2(spec: Any) -> _Named:
    spec = spec["hashedRekordV002"]
    return (
        _sha2(spec["data"]),
        _decoded(spec["signature"]["content"]),
        _raw_verifier(spec["signature"]["verifier"]),
        None,
    )


def _dsse(spec: Any) -> _Named:
    (named,) = spec["signatures"]
    return (
        _hex(spec["payloadHash"]),
        _decoded(named["signature"]),
        _verifier(_decoded(named["verifier"])),
        None,
    )


def _dsse_v2(spec: Any) -> _Named:
    spec = spec["dsseV002"]
    (named,) = spec["signatures"]
    return (
        _sha2(spec["payloadHash"]),
        _decoded(named["content"]),
        _raw_verifier(named["verifier"]),
        None,
    )


def _intoto_v1(spec: Any) -> _Named:
    content = spec["content"]
    return (
        _hex(content["payloadHash"]),
        None,
        _verifier(_decoded(spec["publicKey"])),
        _hex(content["hash"]),
    )


def _intoto_v2(spec: Any) -> _Named:
    content = spec["content"]
    (named,) = content["envelope"]["signatures"]
    return (
        _hex(content["payloadHash"]),
        _decoded(_decoded(named["sig"]).decode()),  # encoded twice there
        _verifier(_decoded(named["publicKey"])),
        None,
    )


_BODIES: Final = {
    ("hashedrekord", "0.0.1"): _hashed,
    ("hashedrekord", "0.0.2"): _hashed_v2,
    ("dsse", "0.0.1"): _dsse,
    ("dsse", "0.0.2"): _dsse_v2,
    ("intoto", "0.0.1"): _intoto_v1,
    ("intoto", "0.0.2"): _intoto_v2,
}


def _decoded(text: str) -> bytes:
    return base64.b64decode(text, validate=True)


def _hex(named: Any) -> bytes:
    if named["algorithm"] != "sha256":
        raise UnknownBody(f"its body has a hash of {named['algorithm']!r}, not of sha256")
    return bytes.fromhex(named["value"])


def _sha2(named: Any) -> bytes:
    if named["algorithm"] != "SHA2_256":
        raise UnknownBody(f"its body has a hash of {named['algorithm']!r}, not of SHA2_256")
    return _decoded(named["digest"])


def _raw_verifier(named: Any) -> bytes:
    holder = named.get("x509Certificate") or named["publicKey"]
    return _decoded(holder["rawBytes"])


def _verifier(pem: bytes) -> bytes:
    """Returns a key or certificate in PEM as DER."""
    try:
        if b"BEGIN CERTIFICATE" in pem:
            return der_of(read_certificates(pem)[0])
        return key_bytes(read_public_key(pem))
    except (InvalidPublicKey, UntrustedCertificate) as error:
        raise UnknownBody(f"its body names a key that cannot be read: {error}") from None


def check_logged(
    chain: Sequence[x509.Certificate], logs: Mapping[bytes, TrustedLog] | None
) -> None:
    """Raises unless a trusted certificate log has promised to include the certificate.

    The promise is a signed certificate timestamp (SCT; RFC 6962, section 3.2) over the certificate
    without its SCTs.
    """
    leaf, issuer = chain[0], chain[1]
    promises = extension_of(leaf, x509.PrecertificateSignedCertificateTimestamps)
    if not promises:
        raise UntrustedCertificate("no log of certificates has promised to hold it (no SCT)")
    try:
        entry = leaf.tbs_precertificate_bytes
        issuing = key_bytes(key_of(issuer))
    except UNREADABLE as error:
        raise UntrustedCertificate(f"its SCT cannot be read: {error}") from None
    for promise in list(promises)[:DEPTH_MAX]:
        log = (logs or {}).get(promise.log_id)
        if log is not None and _is_promised(promise, log, issuing, entry):
            return
    raise UntrustedCertificate("no SCT in it is by a log of the trusted root")


def _is_promised(promise: Any, log: TrustedLog, issuer: bytes, entry: bytes) -> bool:
    seconds = promise.timestamp.replace(tzinfo=dt.UTC).timestamp()
    milliseconds = round(seconds * 1000)
    extensions = promise.extension_bytes
    signed = (
        struct.pack("!BBQH", 0, 0, milliseconds, 1)
        + hashlib.sha256(issuer).digest()
        + len(entry).to_bytes(3)
        + entry
        + struct.pack("!H", len(extensions))
        + extensions
    )
    return log.validity.holds(seconds) and is_signed(log.key, promise.signature, signed)
