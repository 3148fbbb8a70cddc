"""Manifests and indexes: reads and checks their bytes, and writes them."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any, Final

from webhook.api.encoding import DecodeError, decode, encode
from webhook.registry.errors import UntrustedContent
from webhook.registry.reference import is_digest
from webhook.values import dataclass

OCI_MANIFEST: Final = "application/vnd.oci.image.manifest.v1+json"
OCI_INDEX: Final = "application/vnd.oci.image.index.v1+json"
_DOCKER_MANIFEST: Final = "application/vnd.docker.distribution.manifest.v2+json"
_DOCKER_INDEX: Final = "application/vnd.docker.distribution.manifest.list.v2+json"
MANIFEST_TYPES: Final = frozenset((OCI_MANIFEST, _DOCKER_MANIFEST))
INDEX_TYPES: Final = frozenset((OCI_INDEX, _DOCKER_INDEX))
ACCEPTED: Final = f"{OCI_MANIFEST}, {OCI_INDEX}, {_DOCKER_MANIFEST}, {_DOCKER_INDEX}"

EMPTY_TYPE: Final = "application/vnd.oci.empty.v1+json"
EMPTY: Final = b"{}"
"""The configuration of an artifact without one, by the specification."""

TITLE: Final = "org.opencontainers.image.title"
"""The annotation of a layer with the name of its file."""

MANIFEST_BYTES_MAX: Final = 4 << 20
"""The size of a manifest at most, in bytes. Registries must accept as much, and none is known to
accept more."""

ENTRIES_MAX: Final = 4096
"""The number of layers of a manifest, or manifests of an index, at most. Tools that make a layer of
each file have hundreds, and 4 MiB would be 20,000."""

_BLOB_BYTES_MAX: Final = 1 << 50


@dataclass(frozen=True, slots=True)
class Descriptor:
    """The digest, size and type of a blob or manifest."""

    media_type: str
    digest: str
    size: int
    annotations: Mapping[str, str] = field(default_factory=dict)
    artifact_type: str = ""
    platform: str = ""
    """``os/architecture``, if an index names one."""

    def document(self) -> dict[str, Any]:
        """Returns its JSON form in a manifest."""
        value: dict[str, Any] = {
            "mediaType": self.media_type,
            "digest": self.digest,
            "size": self.size,
        }
        if self.annotations:
            value["annotations"] = dict(self.annotations)
        if self.artifact_type:
            value["artifactType"] = self.artifact_type
        return value


@dataclass(frozen=True, slots=True)
class OciManifest:
    """An artifact or image: its configuration, layers and subject."""

    descriptor: Descriptor
    content: bytes = field(repr=False)
    config: Descriptor
    layers: tuple[Descriptor, ...] = ()
    subject: Descriptor | None = None
    annotations: Mapping[str, str] = field(default_factory=dict)

    @property
    def artifact_type(self) -> str:
        """Returns the artifact type: its own, or its configuration's."""
        return self.descriptor.artifact_type or self.config.media_type


@dataclass(frozen=True, slots=True)
class OciIndex:
    """An index: several manifests under one name."""

    descriptor: Descriptor
    content: bytes = field(repr=False)
    manifests: tuple[Descriptor, ...] = ()


def digest_of(content: bytes, like: str = "sha256:") -> str:
    """Returns the digest of bytes, by the algorithm of another digest."""
    algorithm = like.partition(":")[0]
    return f"{algorithm}:{hashlib.new(algorithm, content).hexdigest()}"


def described(content: bytes, media_type: str, title: str = "") -> Descriptor:
    """Returns the descriptor of bytes to be pushed."""
    annotations = {TITLE: title} if title else {}
    return Descriptor(media_type, digest_of(content), len(content), annotations)


def written_manifest(
    layers: Sequence[Descriptor],
    *,
    artifact_type: str,
    config: Descriptor,
    annotations: Mapping[str, str] | None = None,
    subject: Descriptor | None = None,
) -> bytes:
    """Returns a manifest as bytes; equal layers give equal bytes."""
    value: dict[str, Any] = {"schemaVersion": 2, "mediaType": OCI_MANIFEST}
    if artifact_type:
        value["artifactType"] = artifact_type
    value["config"] = config.document()
    value["layers"] = [layer.document() for layer in layers]
    if subject is not None:
        value["subject"] = subject.document()
    if annotations:
        value["annotations"] = dict(sorted(annotations.items()))
    return encode(value)


def read_manifest(content: bytes, media_type: str, *, digest: str = "") -> OciManifest | OciIndex:
    """Reads a manifest or index; compares its digest if one is given.

    ``media_type`` is the registry's Content-Type, or empty. Raises :class:`UntrustedContent`.
    """
    computed = digest_of(content, digest or "sha256:")
    if digest and computed != digest:
        raise UntrustedContent(
            f"the registry gave a manifest with the digest {computed}, not {digest}"
        )
    document = _object(content)
    stated = _text(document, "mediaType")
    kind = stated or media_type
    if stated and media_type and stated != media_type:
        raise UntrustedContent(f"a manifest that says {stated} was sent as {media_type}")
    if not kind:
        kind = OCI_INDEX if "manifests" in document else OCI_MANIFEST
    if kind not in MANIFEST_TYPES | INDEX_TYPES:
        raise UntrustedContent(f"{kind[:200]!r} is not a kind of manifest that is read here")
    is_index = kind in INDEX_TYPES
    if ("layers" in document or "config" in document) if is_index else "manifests" in document:
        raise UntrustedContent("a manifest that is an index, too: it would be read in two ways")
    descriptor = Descriptor(
        kind, computed, len(content), artifact_type=_text(document, "artifactType")
    )
    if is_index:
        return OciIndex(descriptor, content, _descriptors(document, "manifests"))
    if not isinstance(document.get("config"), dict):
        raise UntrustedContent("the manifest has no config")
    subject = document.get("subject")
    return OciManifest(
        descriptor,
        content,
        _descriptor(document["config"], "config"),
        _descriptors(document, "layers"),
        None if subject is None else _descriptor(subject, "subject"),
        _annotations(document, "the manifest"),
    )


def _object(content: bytes) -> dict[str, Any]:
    if len(content) > MANIFEST_BYTES_MAX:
        raise UntrustedContent(f"a manifest of more than {MANIFEST_BYTES_MAX >> 20} MiB")
    try:
        document = decode(content)
    except DecodeError as error:
        raise UntrustedContent(f"the manifest is not JSON: {error}") from None
    if not isinstance(document, dict) or document.get("schemaVersion") != 2:
        raise UntrustedContent("the manifest is not an object of schemaVersion 2")
    return document


def _text(document: Mapping[str, Any], name: str) -> str:
    value = document.get(name) or ""
    if not isinstance(value, str):
        raise UntrustedContent(f"{name} of a manifest is not a string")
    return value


def _descriptors(document: Mapping[str, Any], name: str) -> tuple[Descriptor, ...]:
    entries = document.get(name) or []
    if not isinstance(entries, list):
        raise UntrustedContent(f"{name} of a manifest is not an array")
    if len(entries) > ENTRIES_MAX:
        raise UntrustedContent(f"{len(entries)} {name} in one manifest: at most {ENTRIES_MAX}")
    return tuple(_descriptor(entry, f"{name}[{i}]") for i, entry in enumerate(entries))


def _descriptor(value: Any, where: str) -> Descriptor:
    if not isinstance(value, dict):
        raise UntrustedContent(f"{where} of a manifest is not an object")
    size = value.get("size")
    if type(size) is not int or not 0 <= size <= _BLOB_BYTES_MAX:
        raise UntrustedContent(f"{where} of a manifest has no size")
    digest = value.get("digest")
    if not is_digest(digest):
        raise UntrustedContent(f"{where} of a manifest has no digest that can be checked")
    platform = value.get("platform")
    names = [platform.get("os"), platform.get("architecture")] if type(platform) is dict else []
    return Descriptor(
        _text(value, "mediaType"),
        str(digest),
        size,
        _annotations(value, where),
        _text(value, "artifactType"),
        "/".join(str(name) for name in names),
    )


def _annotations(value: Mapping[str, Any], where: str) -> dict[str, str]:
    annotations = value.get("annotations") or {}
    if not isinstance(annotations, dict) or not all(
        isinstance(text, str) for text in annotations.values()
    ):
        raise UntrustedContent(f"annotations of {where} are not strings")
    return annotations
