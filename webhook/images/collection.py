"""Reads the signatures and attestations of an image from a registry or an OCI image layout.

This module decides nothing. Content that cannot be understood becomes a note. An unavailable
registry raises an error: its silence must not count as an unsigned image.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Final, Protocol

from webhook.images import evidence as read
from webhook.images.evidence import Endorsement, ImageEvidence, UnreadableEvidence
from webhook.registry.errors import RegistryError, RegistryRefused, UntrustedContent
from webhook.registry.manifest import Descriptor, OciIndex, OciManifest
from webhook.registry.reference import Reference
from webhook.values import dataclass

ENDORSEMENTS_MAX: Final = 100
"""The number of endorsements read in each format; an image that ten pipelines sign and scan has
forty."""

BLOB_BYTES_MAX: Final = 16 << 20
"""The size of one attestation at most; an SBOM of a large image in SPDX has 10 MiB."""

TOTAL_BYTES_MAX: Final = 64 << 20
"""The size of all content read for one image at most."""

CONCURRENCY: Final = 4
"""The number of blobs of one image that are fetched at the same time."""


class ImageRegistry(Protocol):
    """The interface of a registry.

    Each method raises :class:`~webhook.registry.errors.RegistryError`.
    """

    async def fetch(self, reference: Reference) -> OciManifest | OciIndex:
        """Fetches the content of a tag or a digest."""

    async def blob(self, reference: Reference, descriptor: Descriptor) -> bytes:
        """Fetches a blob and checks its digest and size."""

    async def referrers(self, reference: Reference) -> Sequence[Descriptor]:
        """Fetches the descriptors of the manifests whose subject has this digest."""


@dataclass(frozen=True, slots=True)
class _Layer:
    """A blob to be read, and the function that makes an endorsement of it."""

    where: str
    descriptor: Descriptor
    read: Callable[[str, bytes, Mapping[str, str]], Endorsement]


async def collect(registry: ImageRegistry, reference: Reference, manifest: bytes) -> ImageEvidence:
    """Reads the evidence about the image of a digest; ``manifest`` is its content."""
    notes: list[str] = []
    layers: list[_Layer] = []
    base = reference.digest.replace(":", "-")
    for suffix in ("sig", "att"):
        tag = f"{base}.{suffix}"
        beside = await _absent_or(
            registry, Reference(reference.registry, reference.repository, tag)
        )
        if beside is not None:
            _take_layers(f"tag {tag}", beside, layers, notes)
    await _take_referrers(registry, reference, manifest, layers, notes)
    affordable: list[_Layer] = []
    total = 0
    for layer in layers:
        total += layer.descriptor.size
        if layer.descriptor.size > BLOB_BYTES_MAX or total > TOTAL_BYTES_MAX:
            notes.append(f"{layer.where}: it is too large to be read, or all of them together are")
            total -= layer.descriptor.size
        else:
            affordable.append(layer)
    blobs = await _blobs(registry, reference, affordable, notes)
    endorsements = []
    for layer in affordable:
        blob = blobs.get(layer.descriptor.digest)
        if blob is None:
            continue
        try:
            endorsements.append(layer.read(layer.where, blob, layer.descriptor.annotations))
        except UnreadableEvidence as error:
            notes.append(f"{layer.where}: {error}")
    return ImageEvidence(reference.digest, tuple(endorsements), _bounded(notes))


def _bounded(notes: list[str]) -> tuple[str, ...]:
    shown = list(dict.fromkeys(notes))
    more = len(shown) - 8
    return (*shown[:8], f"and {more} more notes") if more > 0 else tuple(shown)


async def _absent_or(
    registry: ImageRegistry, reference: Reference
) -> OciManifest | OciIndex | str | None:
    """Returns the content of a name; None if absent, a text if it cannot be used."""
    try:
        return await registry.fetch(reference)
    except RegistryRefused as error:
        if error.is_absent:
            return None
        raise
    except UntrustedContent as error:
        return str(error)


def _take_layers(
    where: str, beside: OciManifest | OciIndex | str, layers: list[_Layer], notes: list[str]
) -> None:
    """Adds the layers of cosign's first format."""
    if isinstance(beside, str):
        notes.append(f"{where}: {beside}")
        return
    if not isinstance(beside, OciManifest):
        notes.append(f"{where}: it is an index, not a manifest with signatures")
        return
    readers = {read.SIMPLE_SIGNING: read.read_simple, read.ENVELOPE: read.read_attestation}
    known = [candidate for candidate in beside.layers if candidate.media_type in readers]
    if len(known) > ENDORSEMENTS_MAX:
        notes.append(f"{where}: only the first {ENDORSEMENTS_MAX} of {len(known)} were read")
    for number, layer in enumerate(known[:ENDORSEMENTS_MAX]):
        layers.append(_Layer(f"{where}, layer {number}", layer, readers[layer.media_type]))


async def _take_referrers(
    registry: ImageRegistry,
    reference: Reference,
    manifest: bytes,
    layers: list[_Layer],
    notes: list[str],
) -> None:
    """Adds the layers of referrers of the image: bundles, and cosign's first format."""
    try:
        listed = await registry.referrers(reference)
    except UntrustedContent as error:
        notes.append(f"the referrers: {error}")
        return
    known = [
        candidate
        for candidate in listed
        if candidate.artifact_type.startswith(read.BUNDLE)
        or candidate.artifact_type in read.FIRST_FORMAT
    ]
    if len(known) > ENDORSEMENTS_MAX:
        notes.append(f"only the first {ENDORSEMENTS_MAX} of {len(known)} referrers were read")
    for referrer in known[:ENDORSEMENTS_MAX]:
        where = f"referrer {referrer.digest[:19]}…"
        beside = await _absent_or(registry, reference.at(referrer.digest))
        if beside is None:
            notes.append(f"{where}: the registry names it and does not have it")
        elif not isinstance(beside, OciManifest):
            _take_layers(where, beside, layers, notes)
        elif beside.subject is None or beside.subject.digest != reference.digest:
            notes.append(f"{where}: it refers to another image")
        elif referrer.artifact_type in read.FIRST_FORMAT:
            _take_layers(where, beside, layers, notes)
        elif len(beside.layers) != 1:
            notes.append(f"{where}: it has {len(beside.layers)} layers, where a bundle is one")
        else:
            layers.append(_Layer(where, beside.layers[0], _bundle_reader(manifest)))


def _bundle_reader(manifest: bytes) -> Callable[[str, bytes, Mapping[str, str]], Endorsement]:
    return lambda where, data, _annotations: read.read_bundle(where, data, manifest)


async def _blobs(
    registry: ImageRegistry, reference: Reference, layers: Sequence[_Layer], notes: list[str]
) -> dict[str, bytes]:
    """Returns blobs by their digests, each fetched once; absent ones become notes."""
    blobs: dict[str, bytes] = {}
    slots = asyncio.Semaphore(CONCURRENCY)

    faults: list[RegistryError] = []

    async def fetch(layer: _Layer) -> None:
        async with slots:
            if faults:
                return
            try:
                blobs[layer.descriptor.digest] = await registry.blob(reference, layer.descriptor)
            except UntrustedContent as error:
                notes.append(f"{layer.where}: {error}")
            except RegistryRefused as error:
                if not error.is_absent:
                    faults.append(error)
                notes.append(f"{layer.where}: the registry does not have its blob")
            except RegistryError as error:
                faults.append(error)

    async with asyncio.TaskGroup() as tasks:
        for layer in {known.descriptor.digest: known for known in layers}.values():
            tasks.create_task(fetch(layer))
    if faults:
        raise faults[0]
    return blobs
