"""Questions to a registry of the tests, and artifacts to put there."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

from tests.oci_registry import digest_of
from webhook.registry.client import RegistryClient
from webhook.registry.package import fetch_files
from webhook.registry.reference import Reference, parse_reference
from webhook.registry.transport import RegistryOptions

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from tests.oci_registry import OciRegistry

MANIFEST = "application/vnd.oci.image.manifest.v1+json"
INDEX = "application/vnd.oci.image.index.v1+json"
REPOSITORY = "team/policies"


def named(registry: OciRegistry, text: str = ":v1") -> Reference:
    return parse_reference(f"{registry.host}/{REPOSITORY}{text}")


def options(registry: OciRegistry, **more: Any) -> RegistryOptions:
    return RegistryOptions(insecure=frozenset((registry.host,)), **more)


def ask(
    registry: OciRegistry, question: Callable[[RegistryClient], Awaitable[Any]], **more: Any
) -> Any:
    """The answer to a question on a client of its own."""

    async def run() -> Any:
        async with RegistryClient(options(registry, **more)) as client:
            return await question(client)

    return asyncio.run(run())


def files_of(registry: OciRegistry, text: str = ":v1", **more: Any) -> dict[str, bytes]:
    """The files of a package, as a client gets them."""

    async def question(client: RegistryClient) -> dict[str, bytes]:
        reference = named(registry, text)
        return await fetch_files(client, reference, await client.manifest(reference), archives=True)

    return ask(registry, question, **more)


def descriptor(content: bytes, kind: str = "text/plain", **more: Any) -> dict[str, Any]:
    return {"mediaType": kind, "digest": digest_of(content), "size": len(content), **more}


def manifest(*layers: dict[str, Any], **more: Any) -> bytes:
    config = descriptor(b"{}", "application/vnd.oci.empty.v1+json")
    return json.dumps(
        {
            "schemaVersion": 2,
            "mediaType": MANIFEST,
            "config": config,
            "layers": list(layers),
            **more,
        }
    ).encode()


def index(*manifests: dict[str, Any]) -> bytes:
    return json.dumps(
        {"schemaVersion": 2, "mediaType": INDEX, "manifests": list(manifests)}
    ).encode()


def put_files(registry: OciRegistry, files: dict[str, bytes], tag: str = "v1") -> str:
    """An artifact with a layer for each file; its digest."""
    layers = []
    for path, content in files.items():
        registry.blobs[digest_of(content)] = content
        title = {"org.opencontainers.image.title": path}
        layers.append(descriptor(content, annotations=title))
    registry.blobs[digest_of(b"{}")] = b"{}"
    return registry.put(REPOSITORY, tag, manifest(*layers), MANIFEST)
