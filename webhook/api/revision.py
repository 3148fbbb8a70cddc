"""PolicyRevision: a stored generation of a template or constraint that could be enforced.

The API server has only the newest generation of an object. A replica that restarts may need an
older one, if the newest cannot be used. Waddle stores it in a small immutable object. Its subject
owns it, so that the garbage collector deletes both. It has only the deciding fields; other metadata
is that of the current subject.
"""

from __future__ import annotations

import base64
import binascii
import gzip
import hashlib
import zlib
from collections.abc import Mapping
from typing import Any, Final

from webhook.api.encoding import DecodeError, decode, encode
from webhook.api.gvk import text
from webhook.api.revision_outcome import TrialOutcome, read_outcome
from webhook.api.shapes import Json, objects_of
from webhook.values import dataclass

GROUP: Final = "policy.waddle.dev"
VERSION: Final = "v1alpha1"
KIND: Final = "PolicyRevision"
PLURAL: Final = "policyrevisions"

ROLLBACK: Final = "waddle.dev/rollback-to"
"""The annotation of a template or constraint that names a revision, or its generation."""

DECIDING_ANNOTATIONS: Final = ("metadata.gatekeeper.sh/requires-sync-data",)
"""Annotations in a revision: they decide when a template may be evaluated."""

PLAIN_BYTES_MAX: Final = 1024
"""The largest content without compression, in bytes; gzip at least halves larger content."""

CONTENT_BYTES_MAX: Final = 8 * 1024 * 1024
"""The largest unpacked content, in bytes: more than the 3 MiB that an API server takes in a
request."""

NAME_STEM_MAX: Final = 200
"""The longest kind and name of the subject in a revision's name, of 253 characters in all."""

_DIGEST_DIGITS: Final = 16


class InvalidRevision(ValueError):
    """A PolicyRevision cannot be read, or its content differs from its digest."""


@dataclass(frozen=True, slots=True)
class PolicyRevision:
    """A stored generation. ``content`` is packed by ``encoding``: ``""`` or ``gzip``.

    ``subject`` is the object's apiVersion, kind and name; ``is_owned`` is whether that object is
    among the owners. ``signature`` is unverified, as it was written.
    """

    name: str
    uid: str
    generation: int
    digest: str
    created: str
    encoding: str
    content: str
    outcome: TrialOutcome | None = None
    subject: tuple[str, str, str] = ("", "", "")
    is_owned: bool = False
    signature: str = ""

    @property
    def may_be_enforced(self) -> bool:
        """Returns whether no trial refused the generation and no trial is pending."""
        return self.outcome is None or self.outcome.verdict == "passed"

    @property
    def signed_bytes(self) -> bytes:
        """Returns the signed bytes: all deciding fields, unambiguously encoded."""
        outcome = None if self.outcome is None else self.outcome.document()
        return encode(
            [
                *(self.name, *self.subject, self.uid, self.generation),
                *(self.digest, self.encoding, self.content, outcome),
            ],
            sort_keys=True,
        )

    def document(self, subject: Mapping[str, Any]) -> Json:
        """Returns the subject at this generation; raises :class:`InvalidRevision`."""
        kept = self._unpacked()
        metadata = subject["metadata"]
        annotations = {
            name: value
            for name, value in (metadata.get("annotations") or {}).items()
            if name not in DECIDING_ANNOTATIONS
        }
        annotations |= kept.get("annotations", {})
        return {
            **subject,
            "metadata": {**metadata, "generation": self.generation, "annotations": annotations},
            "spec": kept["spec"],
        }

    def _unpacked(self) -> Json:
        try:
            unpacked = _unpack(self.encoding, self.content)
            kept = decode(unpacked, max_bytes=CONTENT_BYTES_MAX)
        except (DecodeError, binascii.Error, zlib.error, ValueError) as error:
            raise InvalidRevision(f"{KIND} {self.name} cannot be read: {error}") from None
        if _hash(unpacked) != self.digest:
            raise InvalidRevision(f"{KIND} {self.name} is not what its digest says")
        if type(kept) is not dict or "spec" not in kept:
            raise InvalidRevision(f"{KIND} {self.name} has no spec in it")
        annotations = kept.get("annotations", {})
        if type(annotations) is not dict or any(
            type(annotation) is not str for annotation in annotations.values()
        ):
            raise InvalidRevision(f"{KIND} {self.name}: its annotations are not texts by name")
        return kept


def content_of(document: Mapping[str, Any]) -> bytes:
    """Returns the deciding part of a template or constraint in canonical order."""
    annotations = document["metadata"].get("annotations") or {}
    deciding = {name: annotations[name] for name in DECIDING_ANNOTATIONS if name in annotations}
    content = {"spec": document.get("spec"), **({"annotations": deciding} if deciding else {})}
    return encode(content, sort_keys=True)


def digest_of(document: Mapping[str, Any]) -> str:
    """Returns 16 hexadecimal digits of the SHA-256 of the deciding fields."""
    return _hash(content_of(document))


def name_of(document: Mapping[str, Any], digest: str) -> str:
    """Returns a revision's name: equal on all replicas, different for another object."""
    metadata = document["metadata"]
    generation = metadata.get("generation", 0)
    kind = document["kind"].lower()
    stem = metadata["name"] if kind == "constrainttemplate" else f"{kind}.{metadata['name']}"
    identity = f"{metadata.get('uid', '')}\0{generation}\0{digest}".encode()
    return f"{stem[:NAME_STEM_MAX].rstrip('-.')}-{generation}-{_hash(identity)}"


def revision_object(
    document: Mapping[str, Any], digest: str, outcome: TrialOutcome | None = None
) -> Json:
    """Returns the PolicyRevision of a template or constraint as it is now."""
    metadata = document["metadata"]
    owner = {
        "apiVersion": document["apiVersion"],
        "kind": document["kind"],
        "name": metadata["name"],
        "uid": metadata["uid"],
    }
    encoding, content = _pack(content_of(document))
    return {
        "apiVersion": f"{GROUP}/{VERSION}",
        "kind": KIND,
        "metadata": {
            "name": name_of(document, digest),
            "labels": {"app.kubernetes.io/managed-by": "waddle"},
            "ownerReferences": [owner],
        },
        "spec": {
            "subject": owner,
            "generation": metadata.get("generation", 0),
            "digest": digest,
            "encoding": encoding,
            "content": content,
        },
        **({} if outcome is None else {"status": {"outcome": outcome.document()}}),
    }


def read_revision(item: Mapping[str, Any]) -> PolicyRevision:
    """Reads a PolicyRevision of the API server; raises :class:`InvalidRevision`."""
    metadata = item["metadata"]
    try:
        spec = item["spec"]
        subject = spec["subject"]
        owners = objects_of(metadata.get("ownerReferences"))
        return PolicyRevision(
            name=metadata["name"],
            uid=subject["uid"],
            generation=int(spec["generation"]),
            digest=spec["digest"],
            created=metadata.get("creationTimestamp", ""),
            encoding=spec.get("encoding", ""),
            content=spec["content"],
            outcome=read_outcome(item),
            subject=(subject["apiVersion"], subject["kind"], subject["name"]),
            is_owned=any(owner.get("uid") == subject["uid"] for owner in owners),
            signature=text(item, "status", "signature"),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise InvalidRevision(f"{KIND} {metadata['name']} cannot be read: {error!r}") from None


def _pack(content: bytes) -> tuple[str, str]:
    if len(content) <= PLAIN_BYTES_MAX:
        return "", content.decode()
    # Without the packing time, so that every replica makes the same object.
    return "gzip", base64.b64encode(gzip.compress(content, mtime=0)).decode()


def _unpack(encoding: str, content: str) -> bytes:
    if not encoding:
        return content.encode()
    if encoding != "gzip":
        raise ValueError(f"unknown encoding {encoding!r}")
    packed = base64.b64decode(content, validate=True)
    inflater = zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)
    unpacked = inflater.decompress(packed, CONTENT_BYTES_MAX)
    if not inflater.eof:
        raise ValueError(f"not whole, or larger than {CONTENT_BYTES_MAX} bytes")
    return unpacked


def _hash(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:_DIGEST_DIGITS]
