"""The contract, asked of the simulated API server."""

from types import SimpleNamespace
from typing import TYPE_CHECKING

from tests.simulation.api_http import URL, ApiServer
from tests.simulation.api_server import Served, Storage
from tests.simulation.contract import EXPECTED, forgotten, observe
from tests.simulation.loop import Loop
from tests.simulation.network import Network
from webhook.cluster.client import ClusterClient
from webhook.cluster.credentials import Credentials

if TYPE_CHECKING:
    import asyncio


class ContractWorld:
    """A client, and an API server that is well."""

    def __init__(self, loop: Loop) -> None:
        self.loop = loop
        self.network = Network(loop)

    async def main(self) -> None:
        """Observe, and compare."""
        storage = Storage()
        storage.serve(Served("", "v1", "configmaps", "ConfigMap", namespaced=True))
        storage.compact()
        storage.version += 10
        ApiServer(self.loop, self.network, storage).start()
        process = self.loop.process("client")
        done: asyncio.Future[dict[str, object]] = self.loop.create_future()

        async def ask() -> None:
            credentials = Credentials(
                lambda: SimpleNamespace(
                    host=URL, tls_server_name=None, proxy=None, get_api_key_with_prefix=lambda _: ""
                ),
                "contract",
            )
            async with ClusterClient(credentials) as client:
                seen: dict[str, object] = await observe(client, "contract")
                seen["forgotten"] = await forgotten(client, "contract", "1")
                done.set_result(seen)

        process.spawn(ask())
        seen = await done
        for key, expected in (EXPECTED | {"forgotten": 410}).items():
            if seen[key] != expected:
                self.loop.fail(f"{key}: {seen[key]}, and not {expected}")
