"""An OCI image layout (a folder of images) with the interface of a registry; nothing is fetched.

``oras copy --recursive``, ``skopeo copy`` and ``cosign save`` write such folders. The names in its
index are tags, or whole references.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from webhook.registry.errors import RegistryRefused, RegistryUnavailable, UntrustedContent
from webhook.registry.manifest import (
    ENTRIES_MAX,
    MANIFEST_BYTES_MAX,
    MANIFEST_TYPES,
    OCI_INDEX,
    Descriptor,
    OciIndex,
    OciManifest,
    digest_of,
    read_manifest,
)

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from webhook.registry.reference import Reference

_NAME: Final = "org.opencontainers.image.ref.name"
_SAVED_AS: Final = "kind"
_SAVED: Final = {
    "dev.cosignproject.cosign/sigs": ".sig",
    "dev.cosignproject.cosign/atts": ".att",
}
"""The annotation values by which ``cosign save`` marks signatures and attestations, and the
suffixes of their tags."""

_NO_SUFFIX: Final = "/"
"""A suffix that no tag ends with."""

_ABSENT: Final = 404


class ImageLayout:
    """The images of a folder."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    async def fetch(self, reference: Reference) -> OciManifest | OciIndex:
        """Reads the content of a tag or a digest.

        Raises :class:`~webhook.registry.errors.RegistryError`.
        """
        if reference.digest:
            return self._read(reference.digest, "")
        for entry in self._index().manifests:
            name = entry.annotations.get(_NAME, "")
            suffix = _SAVED.get(entry.annotations.get(_SAVED_AS, ""), _NO_SUFFIX)
            if name in {reference.tag, str(reference)} or reference.tag.endswith(suffix):
                return self._read(entry.digest, entry.media_type)
        raise RegistryRefused(f"{self._directory} has no {reference}", _ABSENT)

    async def blob(self, reference: Reference, descriptor: Descriptor) -> bytes:
        """Reads a blob; raises :class:`~webhook.registry.errors.RegistryError`."""
        del reference
        return self._bytes(descriptor.digest, descriptor.size)

    async def referrers(self, reference: Reference) -> Sequence[Descriptor]:
        """Returns the manifests that refer to an image, by their subject or the referrers tag."""
        listed = [entry for entry in self._index().manifests if entry.digest != reference.digest]
        if len(listed) > ENTRIES_MAX:
            raise UntrustedContent(f"{self._directory}: index.json has more than {ENTRIES_MAX}")
        referring: list[Descriptor] = []
        for entry in listed:
            if entry.annotations.get(_NAME) == reference.digest.replace(":", "-"):
                tagged = self._read(entry.digest, entry.media_type)
                referring += tagged.manifests if isinstance(tagged, OciIndex) else ()
            elif entry.media_type in MANIFEST_TYPES:
                manifest = self._read(entry.digest, entry.media_type)
                subject = None if isinstance(manifest, OciIndex) else manifest.subject
                if subject is not None and subject.digest == reference.digest:
                    referring.append(_as_referrer(manifest))
        return referring

    def _index(self) -> OciIndex:
        path = self._directory / "index.json"
        index = read_manifest(_content(path, MANIFEST_BYTES_MAX), OCI_INDEX)
        if not isinstance(index, OciIndex):
            raise UntrustedContent(f"{path} is not an index")
        return index

    def _read(self, digest: str, media_type: str) -> OciManifest | OciIndex:
        content = _content(self._path(digest), MANIFEST_BYTES_MAX)
        return read_manifest(content, media_type, digest=digest)

    def _bytes(self, digest: str, size: int) -> bytes:
        content = _content(self._path(digest), size)
        if digest_of(content, digest) != digest:
            raise UntrustedContent(f"{self._path(digest)} has another digest than its name")
        return content

    def _path(self, digest: str) -> Path:
        algorithm, _, name = digest.partition(":")
        return self._directory / "blobs" / algorithm / name


def _as_referrer(manifest: OciManifest | OciIndex) -> Descriptor:
    assert not isinstance(manifest, OciIndex)
    descriptor = manifest.descriptor
    return Descriptor(
        descriptor.media_type,
        descriptor.digest,
        descriptor.size,
        manifest.annotations,
        manifest.artifact_type,
    )


def _content(path: Path, size: int) -> bytes:
    """Reads a file of at most ``size`` bytes; raises ``RegistryError`` otherwise."""
    try:
        with path.open("rb") as file:
            content = file.read(size + 1)
    except FileNotFoundError:
        raise RegistryRefused(f"{path}: there is no such file", _ABSENT) from None
    except OSError as error:
        raise RegistryUnavailable(f"{path}: {error.strerror}") from None
    if len(content) > size:
        raise UntrustedContent(f"{path} is larger than {size} bytes")
    return content
