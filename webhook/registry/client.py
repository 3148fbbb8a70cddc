"""Fetches from registries and pushes to them; all content is compared with its digest."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from typing import Final, Self, TypeVar
from urllib.parse import quote, urljoin, urlsplit

from webhook.registry.errors import RegistryError, RegistryRefused, UntrustedContent
from webhook.registry.manifest import (
    ACCEPTED,
    MANIFEST_BYTES_MAX,
    Descriptor,
    OciIndex,
    OciManifest,
    digest_of,
    read_manifest,
)
from webhook.registry.reference import Reference
from webhook.registry.transport import (
    RegistryAnswer,
    RegistryOptions,
    RegistryRequest,
    RegistryTransport,
)

INDEX_DEPTH_MAX: Final = 3
"""The depth of nested indexes at most; tools write one level, for platforms."""

REFERRERS_MAX: Final = 4096
"""The number of signatures and attestations of one image at most."""

_REFERRER_PAGES_MAX: Final = 16
_NEXT: Final = re.compile(r'<([^>]{1,2048})>\s*;\s*rel="?next"?')
_BYTES: Final = "application/octet-stream"
_SMALL_BYTES_MAX: Final = 64 << 10
"""The size of an answer whose body is not used."""

_Answered = TypeVar("_Answered")


class RegistryClient:
    """The client of registries, an async context manager. Its methods raise ``RegistryError``."""

    def __init__(self, options: RegistryOptions) -> None:
        self._options = options
        self._transport = RegistryTransport(options)

    async def __aenter__(self) -> Self:
        await self._transport.__aenter__()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._transport.__aexit__()

    # --- reading ------------------------------------------------------------------------------

    async def fetch(self, reference: Reference) -> OciManifest | OciIndex:
        """Fetches a manifest or index; its descriptor has the computed digest."""
        return await self._at_any_host(reference, lambda host: self._fetch(host, reference))

    async def manifest(self, reference: Reference, platform: str = "") -> OciManifest:
        """Fetches the one manifest of a reference, through indexes.

        Of several manifests in an index it is that of ``platform`` (``os/architecture``).
        """
        resolved = reference
        for _ in range(INDEX_DEPTH_MAX + 1):
            fetched = await self.fetch(resolved)
            if isinstance(fetched, OciManifest):
                return fetched
            resolved = reference.at(_chosen(fetched, platform, reference).digest)
        raise UntrustedContent(f"{reference}: indexes within indexes, more than {INDEX_DEPTH_MAX}")

    async def blob(self, reference: Reference, descriptor: Descriptor) -> bytes:
        """Fetches a blob of a reference's repository.

        The caller must have checked the descriptor's size: the blob is held in memory.
        """
        return await self._at_any_host(
            reference, lambda host: self._blob(host, reference, descriptor)
        )

    async def referrers(self, reference: Reference) -> list[Descriptor]:
        """Lists the signatures, attestations and other referrers of the reference's digest.

        The list is the registry's, or that of the fallback tag if the registry has no such API.
        """
        return await self._at_any_host(reference, lambda host: self._referrers(host, reference))

    async def _at_any_host(
        self, reference: Reference, ask: Callable[[str], Awaitable[_Answered]]
    ) -> _Answered:
        """Tries the mirrors in their order, and then the registry itself."""
        for mirror in self._options.mirrors.get(reference.registry, ()):
            try:
                return await ask(mirror)
            except RegistryError:
                continue  # The registry itself reports the error.
        return await ask(reference.host)

    async def _fetch(self, host: str, reference: Reference) -> OciManifest | OciIndex:
        answer = await self._transport.send(
            RegistryRequest(
                host,
                reference.repository,
                f"/v2/{reference.repository}/manifests/{reference.target}",
                headers={"Accept": ACCEPTED},
                bytes_max=MANIFEST_BYTES_MAX,
            )
        )
        kind = answer.headers.get("Content-Type", "").partition(";")[0].strip()
        fetched = read_manifest(answer.content, kind, digest=reference.digest)
        digest = answer.headers.get("Docker-Content-Digest", "")
        computed = digest_of(answer.content, digest) if _is_sha(digest) else digest
        if digest and digest != computed:
            raise UntrustedContent(f"{host} says {digest} of a manifest that is {computed}")
        return fetched

    async def _blob(self, host: str, reference: Reference, descriptor: Descriptor) -> bytes:
        answer = await self._transport.send(
            RegistryRequest(
                host,
                reference.repository,
                f"/v2/{reference.repository}/blobs/{descriptor.digest}",
                bytes_max=descriptor.size,
                leaves=True,
            )
        )
        computed = digest_of(answer.content, descriptor.digest)
        if computed != descriptor.digest:
            raise UntrustedContent(f"{host} gave a blob with {computed}, not {descriptor.digest}")
        return answer.content

    async def _referrers(self, host: str, reference: Reference) -> list[Descriptor]:
        path = f"/v2/{reference.repository}/referrers/{reference.digest}"
        entries: list[Descriptor] = []
        for _ in range(_REFERRER_PAGES_MAX):
            try:
                answer = await self._transport.send(
                    RegistryRequest(
                        host,
                        reference.repository,
                        path,
                        headers={"Accept": ACCEPTED},
                        bytes_max=MANIFEST_BYTES_MAX,
                    )
                )
            except RegistryRefused as error:
                if entries or not error.is_absent:
                    raise
                return await self._tagged_referrers(host, reference)
            entries += _index(answer, host).manifests
            if len(entries) > REFERRERS_MAX:
                break
            following = _NEXT.search(answer.headers.get("Link", ""))
            if following is None:
                return entries
            path = _own_path(urljoin(path, following[1]), host)
        raise UntrustedContent(
            f"{host} lists more than {REFERRERS_MAX} referrers, or too many pages of them"
        )

    async def _tagged_referrers(self, host: str, reference: Reference) -> list[Descriptor]:
        """Returns the referrers in the fallback tag, named by the digest (specification)."""
        tag = reference.digest.replace(":", "-")[:128]
        try:
            index = await self._fetch(
                host, Reference(reference.registry, reference.repository, tag)
            )
        except RegistryRefused as error:
            if error.is_absent:
                return []
            raise
        if not isinstance(index, OciIndex):
            raise UntrustedContent(f"{host}: the tag {tag} is not a list of referrers")
        return list(index.manifests)

    # --- pushing ------------------------------------------------------------------------------

    async def push_blob(self, reference: Reference, descriptor: Descriptor, content: bytes) -> None:
        """Pushes a blob into the repository, unless it exists there."""
        path = f"/v2/{reference.repository}/blobs/{descriptor.digest}"
        request = RegistryRequest(
            reference.host, reference.repository, path, method="HEAD", pushes=True
        )
        try:
            await self._transport.send(request)
        except RegistryRefused as error:
            if not error.is_absent:
                raise
        else:
            return
        start = await self._push("POST", reference, f"/v2/{reference.repository}/blobs/uploads/")
        place = self._upload(start, reference.host)
        joint = "&" if "?" in place else "?"
        path = f"{place}{joint}digest={quote(descriptor.digest, safe='')}"
        await self._push("PUT", reference, path, content, _BYTES)

    async def push_manifest(self, reference: Reference, content: bytes, media_type: str) -> str:
        """Pushes a manifest to the reference's tag or digest; returns its digest."""
        path = f"/v2/{reference.repository}/manifests/{reference.target}"
        answer = await self._push("PUT", reference, path, content, media_type)
        computed = digest_of(content)
        digest = answer.headers.get("Docker-Content-Digest", computed)
        if _is_sha(digest) and digest_of(content, digest) != digest:
            raise UntrustedContent(
                f"{reference.host} says {digest} of a manifest that is {computed}"
            )
        return computed

    async def _push(
        self,
        method: str,
        reference: Reference,
        path: str,
        content: bytes = b"",
        media_type: str = "",
    ) -> RegistryAnswer:
        return await self._transport.send(
            RegistryRequest(
                reference.host,
                reference.repository,
                path,
                method=method,
                headers={"Content-Type": media_type} if media_type else {},
                body=content,
                bytes_max=_SMALL_BYTES_MAX,
                pushes=True,
            )
        )

    def _upload(self, answer: RegistryAnswer, host: str) -> str:
        """Returns the upload path of a blob; raises if it is on another host."""
        location = answer.headers.get("Location", "")
        if not location:
            raise UntrustedContent(f"{host} does not say where a blob is to be sent")
        origin = f"{self._transport.scheme(host)}://{host}"
        return _own_path(urljoin(origin, location), host)


def _is_sha(text: str) -> bool:
    return text.startswith(("sha256:", "sha512:"))


def _index(answer: RegistryAnswer, host: str) -> OciIndex:
    kind = answer.headers.get("Content-Type", "").partition(";")[0].strip()
    index = read_manifest(answer.content, kind)
    if not isinstance(index, OciIndex):
        raise UntrustedContent(f"{host} lists referrers in a document that is not an index")
    return index


def _own_path(url: str, host: str) -> str:
    """Returns path and query of a URL at the same host; raises :class:`UntrustedContent`."""
    parts = urlsplit(url)
    if parts.netloc not in {"", host}:
        raise UntrustedContent(f"{host} sends to another host: {parts.netloc[:200]}")
    return f"{parts.path}?{parts.query}" if parts.query else parts.path


def _chosen(index: OciIndex, platform: str, reference: Reference) -> Descriptor:
    """Returns the manifest of a platform, or the only one; raises if it is ambiguous."""
    entries = index.manifests
    if platform and len(entries) > 1:
        entries = tuple(entry for entry in entries if entry.platform == platform)
    if len(entries) != 1:
        several = ", ".join(manifest.digest for manifest in index.manifests[:8])
        raise UntrustedContent(
            f"{reference} is an index of {len(index.manifests)} manifests: name one by its digest"
            + (f" ({several})" if several else "")
        )
    return entries[0]
