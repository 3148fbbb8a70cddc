"""CPU and memory of the images' provider: ``python -m loadtest.images``.

CPU of the process, with a registry in memory: an image that was not asked for before, and one that
is known, each from the body of a request to that of its answer, without TLS and HTTP. They are signed
by a key in cosign's first format, or by an identity in a bundle with an entry of a log, each with an
attestation and a condition. Then what the process itself holds that has answered about 1,000 images.
Exit code 1 where a goal is missed.
"""

from __future__ import annotations

import asyncio
import json
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tests.oci_registry import serving
from tests.webhook.images.served import Images
from tests.webhook.images.signing import (
    NOW,
    bundle,
    compact,
    dsse_spec,
    envelope,
    new_key,
    pem,
    simply_signed,
    statement,
)
from tests.webhook.images.verifying import PROVENANCE, World, by_key, keyless, policy
from webhook import log
from webhook.images.known_facts import KnownFacts
from webhook.images.layout import ImageLayout
from webhook.images.provider_process import ImageProvider
from webhook.metrics.registry import Registry

if TYPE_CHECKING:
    from webhook.images.policy import VerificationPolicy

FIRST_MAX_MS: Final = 3.0
KNOWN_MAX_MS: Final = 0.3
MEMORY_MAX_MIB: Final = 128

IMAGES: Final = 100
ROUNDS: Final = 20
FRESH: Final = 7
"""The number of providers without a cache; the bench prints the median of their first answers."""
HELD: Final = 1_000


def signed_world(folder: Path, kind: str) -> tuple[World, VerificationPolicy, list[str]]:
    """Images that are signed one way, the policy about them, and their references."""
    world = World(folder)
    key = new_key()
    references = []
    for number in range(IMAGES):
        digest = world.layout.image(f"t{number}")
        made = statement(digest, PROVENANCE, {"builder": "ci", "number": number})
        if kind == "a key":
            world.layout.sign_simply(digest, [simply_signed(key, digest)])
            world.layout.attach(digest, bundle(envelope(key, made)[0]))
        else:
            for content in (statement(digest), made):
                signer = new_key()
                certificate = world.sigstore.authority.issue(signer, ct_key=world.sigstore.ct_key)
                sealed, payload, signature = envelope(signer, content)
                spec = dsse_spec(payload, signature, pem(certificate))
                entry = world.sigstore.log.entry("dsse", "0.0.1", spec)
                world.layout.attach(
                    digest, bundle(sealed, certificate=certificate, entries=[entry])
                )
        references.append(f"registry.example/app:t{number}")
    conditions = [{"cel": "predicate.builder == 'ci'"}]
    attestations = [{"predicateType": PROVENANCE, "conditions": conditions}]
    authority = by_key(key) if kind == "a key" else keyless()
    root = None if kind == "a key" else world.sigstore.root()
    return world, policy([authority], root, attestations=attestations), references


class InMemory(ImageLayout):
    """A folder whose answers have been asked for once: what is measured reads no file."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.kept: dict[Any, Any] = {}

    async def fetch(self, reference: Any) -> Any:
        """Returns the artifact of a reference."""
        return await self._once(("fetch", str(reference)), super().fetch, reference)

    async def blob(self, reference: Any, descriptor: Any) -> Any:
        """A blob."""
        return await self._once(("blob", descriptor.digest), super().blob, reference, descriptor)

    async def referrers(self, reference: Any) -> Any:
        """Returns the referrers of a reference."""
        return await self._once(("referrers", str(reference)), super().referrers, reference)

    async def _once(self, key: Any, ask: Any, *arguments: Any) -> Any:
        if key not in self.kept:
            try:
                self.kept[key] = await ask(*arguments)
            except Exception as error:  # noqa: BLE001  # whatever it says, it says again
                self.kept[key] = error
        kept = self.kept[key]
        if isinstance(kept, Exception):
            raise kept
        return kept


async def answered(provider: ImageProvider, key: str) -> None:
    """Sends a request, by ASGI as the listener makes it."""
    body = compact({"request": {"keys": [key]}})
    sent: list[Any] = []

    async def receive() -> Any:
        return {"type": "http.request", "body": body}

    async def send(message: Any) -> None:
        sent.append(message)

    await provider({"method": "POST", "path": "/"}, receive, send)
    (item,) = json.loads(sent[1]["body"])["response"]["items"]
    assert item["value"]["verified"], item


async def measure(kind: str, folder: Path) -> tuple[float, float]:
    """Milliseconds of CPU for an image's first answer, and for each later one."""
    world, attestations, references = signed_world(folder, kind)
    registry = InMemory(world.directory)
    logger = log.open_log().logger("bench")
    firsts: list[float] = []
    known = 0.0
    for round_ in range(FRESH + 1):  # the first fills the registry's memory
        async with asyncio.TaskGroup() as tasks:
            facts = KnownFacts(
                *(registry, [attestations], tasks, 60, logger),
                metrics=Registry(),
                clock=NOW.timestamp,
            )
            provider = ImageProvider(facts, lambda: "")
            begun = time.process_time()
            for reference in references:
                await answered(provider, reference)
            firsts.append((time.process_time() - begun) / len(references) * 1000)
            begun = time.process_time()
            for _ in range(ROUNDS if round_ == FRESH else 0):
                for reference in references:
                    await answered(provider, reference)
            known = (time.process_time() - begun) / len(references) / ROUNDS * 1000
    return statistics.median(firsts[1:]), known


def held_mib(folder: Path) -> float:
    """Returns the memory of a process that has answered about many images."""
    with serving() as registry:
        images = Images(folder, registry)
        try:
            references = []
            for tag in (f"t{number}" for number in range(HELD)):
                digest = images.layout.image(tag)
                images.layout.sign_simply(digest, [simply_signed(images.key, digest)])
                references.append(f"{registry.host}/app:{tag}")
            images.publish()
            for start in range(0, HELD, 100):
                _, response = images.ask(*references[start : start + 100])
                assert all(item["value"]["verified"] for item in response["items"])
            status = Path(f"/proc/{images.process.pid}/status").read_text()
        finally:
            images.end()
    (line,) = [line for line in status.splitlines() if line.startswith("VmHWM:")]
    return int(line.split()[1]) / 1024


def main() -> int:
    """Measure, print beside the goals, and say whether all are met."""
    rows: list[tuple[str, float, float, str]] = []
    with tempfile.TemporaryDirectory() as temporary:
        for number, kind in enumerate(("a key", "an identity")):
            first, known = asyncio.run(measure(kind, Path(temporary) / str(number)))
            rows.append((f"first answer, signed by {kind}", first, FIRST_MAX_MS, "ms"))
            rows.append((f"known image, signed by {kind}", known, KNOWN_MAX_MS, "ms"))
        held = Path(temporary) / "held"
        held.mkdir()
        rows.append((f"{HELD} images, at the most", held_mib(held), MEMORY_MAX_MIB, "MiB"))
    for name, value, most, unit in rows:
        verdict = "" if value <= most else "  MISSED"
        print(f"{name:40} {value:8.3f} {unit}, goal {most:g} {unit}{verdict}")
    return int(any(value > most for _, value, most, _ in rows))


if __name__ == "__main__":
    sys.exit(main())
