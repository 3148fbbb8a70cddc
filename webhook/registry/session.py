"""Blocking calls of the client, for programs without an event loop."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from webhook.registry.client import RegistryClient
from webhook.registry.package import Package, fetch_files, push_package
from webhook.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from webhook.registry.manifest import OciManifest
    from webhook.registry.reference import Reference
    from webhook.registry.transport import RegistryOptions


@dataclass(frozen=True, slots=True)
class Pulled:
    """The files of an artifact, with its manifest and a reference by digest."""

    reference: Reference
    manifest: OciManifest
    files: dict[str, bytes]


def pull(
    options: RegistryOptions,
    reference: Reference,
    *,
    archives: bool,
    verify: Callable[[RegistryClient, Reference], Awaitable[Reference]] | None = None,
) -> Pulled:
    """Pulls the files of an artifact; raises ``RegistryError``.

    ``verify`` is called before any layer is read. It returns the reference with the verified
    digest, or raises.
    """

    async def run() -> Pulled:
        async with RegistryClient(options) as client:
            believed = reference if verify is None else await verify(client, reference)
            manifest = await client.manifest(believed)
            fixed = reference.at(manifest.descriptor.digest)
            files = await fetch_files(client, fixed, manifest, archives=archives)
            return Pulled(fixed, manifest, files)

    return asyncio.run(run())


def push(options: RegistryOptions, reference: Reference, package: Package) -> str:
    """Pushes an artifact; returns its digest. Raises ``RegistryError``."""

    async def run() -> str:
        async with RegistryClient(options) as client:
            return await push_package(client, reference, package)

    return asyncio.run(run())
