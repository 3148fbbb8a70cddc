"""An API server that gives lists, and initial events of watches, without end."""

import asyncio
import json
import resource
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from loadtest.drill.drill import Row
from tests.cluster import write_kubeconfig
from tests.webhook.cluster.recording import Recorder
from webhook.api.gvk import GroupVersionKind
from webhook.api.resource import Resource
from webhook.cluster.client import ClusterClient
from webhook.cluster.credentials import load_credentials
from webhook.cluster.reflector import Reflector, Settings

ATTACK_SECONDS = 20.0
LIST_BYTES_MAX = 16 << 20
"""The bound of a list here, so that it is met within the attack; a replica's is 256 MiB."""

MEMORY_MIB_MAX = 4 * (LIST_BYTES_MAX >> 20) + 64
"""A list as far as it was taken, decoded, and as much again for what comes and goes."""

CONFIG_MAPS = Resource(GroupVersionKind("", "v1", "ConfigMap"), "configmaps", namespaced=True)


def _object(number: int) -> dict[str, object]:
    metadata = {"name": f"a{number}", "namespace": "x", "resourceVersion": "1", "uid": f"{number}"}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"a": "x" * 500}}


@asynccontextmanager
async def _serving(*, stream: bool, circle: bool) -> AsyncIterator[str]:
    """A server of endless answers; its address."""
    count = 0

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal count
        with suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            while await reader.readuntil(b"\r\n\r\n"):
                writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
                while True:
                    count += 1
                    if stream:
                        body = json.dumps({"type": "ADDED", "object": _object(count)}) + "\n"
                    else:
                        token = "again" if circle else f"t{count}"
                        page = {
                            "items": [_object(count * 500 + item) for item in range(500)],
                            "metadata": {"resourceVersion": "1", "continue": token},
                        }
                        body = json.dumps(page)
                    writer.write(f"{len(body):x}\r\n{body}\r\n".encode())
                    await writer.drain()
                    if not stream:
                        break
                writer.write(b"0\r\n\r\n")
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()


async def _attack(*, stream: bool, circle: bool) -> tuple[float, int]:
    """Memory above rest in MiB, and how often the list was given up and tried again."""
    settings = Settings(
        watch_list=stream,
        list_bytes_max=LIST_BYTES_MAX,
        backoff_initial_seconds=0.1,
        backoff_max_seconds=0.2,
    )
    with tempfile.TemporaryDirectory(prefix="waddle-drill-") as folder:
        async with _serving(stream=stream, circle=circle) as address:
            path = write_kubeconfig(Path(folder) / "kubeconfig", address)
            async with ClusterClient(load_credentials(path)) as client:
                reflector = Reflector(client, CONFIG_MAPS, Recorder(), settings=settings)
                rest = _peak_mib()
                with suppress(TimeoutError):
                    async with asyncio.timeout(ATTACK_SECONDS):
                        await reflector.run()
                return _peak_mib() - rest, reflector.statistics().errors


def _peak_mib() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def run() -> Iterator[Row]:
    """Each for a while, by a reflector as replicas have them."""
    attacks = {
        "a continue token that comes again": {"stream": False, "circle": True},
        "a list without end": {"stream": False, "circle": False},
        "initial events without end": {"stream": True, "circle": False},
    }
    for name, options in attacks.items():
        memory, retries = asyncio.run(_attack(**options))
        yield Row(name, "memory above rest", memory, MEMORY_MIB_MAX, "MiB")
        yield Row(name, "attacks that no retry ended", float(not retries), 0)
