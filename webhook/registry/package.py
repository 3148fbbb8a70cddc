"""Files in an artifact as ORAS, conftest, gator and OPA store them: a layer each, or an archive."""

from __future__ import annotations

import io
import tarfile
import zlib
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Final

from webhook.registry.errors import UntrustedContent
from webhook.registry.manifest import (
    OCI_MANIFEST,
    TITLE,
    Descriptor,
    OciManifest,
    described,
    written_manifest,
)
from webhook.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from webhook.registry.client import RegistryClient
    from webhook.registry.reference import Reference

PACKAGE_BYTES_MAX: Final = 64 << 20
"""The size of all files of an artifact at most; the largest known policy library has some 5 MiB."""

FILES_MAX: Final = 10_000

_UNPACK: Final = "io.deis.oras.content.unpack"
"""ORAS's annotation of a layer that is a folder."""

_ARCHIVES: Final = ("tar+gzip", "tar.gzip", "tar.gz")
_ENDINGS: Final = (".rego", ".yaml", ".yml", ".json")


@dataclass(frozen=True, slots=True)
class Package:
    """An artifact to be pushed: its manifest and blobs."""

    manifest: bytes
    media_type: str
    blobs: tuple[tuple[Descriptor, bytes], ...]


async def push_package(client: RegistryClient, reference: Reference, package: Package) -> str:
    """Pushes the blobs, then the manifest; returns its digest."""
    for descriptor, content in package.blobs:
        await client.push_blob(reference, descriptor, content)
    return await client.push_manifest(reference, package.manifest, package.media_type)


async def fetch_files(
    client: RegistryClient, reference: Reference, manifest: OciManifest, *, archives: bool
) -> dict[str, bytes]:
    """Returns the files of an artifact by their paths; raises ``RegistryError``.

    As with ORAS, a layer without a title is no file. With ``archives``, bundles are unpacked, and
    their Rego, YAML and JSON files are returned.
    """
    layers = [layer for layer in manifest.layers if TITLE in layer.annotations or archives]
    total = sum(layer.size for layer in layers)
    if total > PACKAGE_BYTES_MAX:
        raise UntrustedContent(
            f"{reference} is {total >> 20} MiB: policies have at most {PACKAGE_BYTES_MAX >> 20}"
        )
    files: dict[str, bytes] = {}
    room = PACKAGE_BYTES_MAX
    for layer in layers:
        content = await client.blob(reference, layer)
        title = layer.annotations.get(TITLE, "")
        is_folder = layer.annotations.get(_UNPACK) == "true"
        if is_folder or (archives and layer.media_type.endswith(_ARCHIVES)):
            for path, inner in _unpacked(content, room, str(reference)):
                if is_folder or path.endswith(_ENDINGS):
                    room -= len(inner)
                    _add(files, path, inner, reference)
        elif title:
            room -= len(content)
            _add(files, title, content, reference)
    return files


def _add(files: dict[str, bytes], title: str, content: bytes, reference: Reference) -> None:
    path = checked_path(title, str(reference))
    if files.get(path, content) != content:
        raise UntrustedContent(f"{reference} has two files named {path!r}")
    if len(files) >= FILES_MAX:
        raise UntrustedContent(f"{reference} has more than {FILES_MAX} files")
    files[path] = content


def checked_path(title: str, where: str) -> str:
    """Returns a path within its folder; raises :class:`UntrustedContent`."""
    path = PurePosixPath(title)
    is_odd = "\\" in title or not title.isprintable() or len(title) > 1024
    if is_odd or path.is_absolute() or ".." in path.parts or not path.parts:
        raise UntrustedContent(f"{where} has a file outside of its folder: {title[:200]!r}")
    return str(path)


def _unpacked(content: bytes, bytes_max: int, where: str) -> Iterator[tuple[str, bytes]]:
    """Yields the files of an archive; raises for links and devices."""
    archive = io.BytesIO(_inflated(content, bytes_max, where))
    try:
        with tarfile.open(fileobj=archive, mode="r:") as opened:
            for count, member in enumerate(opened):
                if count >= FILES_MAX:
                    raise UntrustedContent(f"{where} has an archive of more than {FILES_MAX} files")
                if member.isdir():
                    continue
                file = opened.extractfile(member) if member.isreg() else None
                if file is None:
                    raise UntrustedContent(
                        f"{where} has an archive with an entry that is not a file: {member.name[:200]!r}"
                    )
                # OPA's bundles name files from a root.
                yield member.name.lstrip("/"), file.read()
    except (tarfile.TarError, ValueError) as error:
        raise UntrustedContent(f"{where} has an archive that cannot be read: {error}") from None


def _inflated(content: bytes, bytes_max: int, where: str) -> bytes:
    """Decompresses gzip, up to the limit."""
    # Headers and padding of an archive are at most 2 KiB for each file.
    limit = bytes_max + FILES_MAX * 2048
    inflate = zlib.decompressobj(wbits=31)
    try:
        text = inflate.decompress(content, limit)
    except zlib.error as error:
        raise UntrustedContent(f"{where} has an archive that is not gzip: {error}") from None
    if inflate.unconsumed_tail or not inflate.eof:
        raise UntrustedContent(f"{where} has an archive that is cut short, or too large")
    return text


def packed(
    files: Mapping[str, bytes],
    media_types: Mapping[str, str],
    *,
    artifact_type: str,
    config: tuple[str, bytes],
    annotations: Mapping[str, str] | None = None,
) -> Package:
    """Returns an artifact with a layer for each file; equal files give an equal artifact.

    ``media_types`` has the media type of each file suffix; ``config`` is the type and bytes of the
    configuration.
    """
    kind, body = config
    configuration = described(body, kind)
    layers = [
        (described(content, media_types[Path(path).suffix], path), content)
        for path, content in files.items()
    ]
    manifest = written_manifest(
        [layer for layer, _ in layers],
        artifact_type=artifact_type,
        config=configuration,
        annotations=annotations,
    )
    return Package(manifest, OCI_MANIFEST, ((configuration, body), *layers))


def write_files(files: Mapping[str, bytes], folder: Path) -> None:
    """Writes files below a folder; refuses links.

    Raises ``OSError``, and :class:`UntrustedContent` if a link leads out of the folder.
    """
    folder.mkdir(parents=True, exist_ok=True)
    root = folder.resolve()
    for path, content in files.items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        if not target.parent.resolve().is_relative_to(root) or target.is_symlink():
            raise UntrustedContent(f"{target} leads out of {folder} by a link")
        target.write_bytes(content)
