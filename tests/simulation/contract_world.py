"""The contract, asked of the simulated API server."""

from types import SimpleNamespace
from typing import TYPE_CHECKING

from tests.simulation.api_http import URL, ApiServer
from tests.simulation.api_server import Served, Storage
from tests.simulation.contract import CONFIG_MAPS, EXPECTED, forgotten, forgotten_page, observe
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
        served = Served("", "v1", CONFIG_MAPS.plural, CONFIG_MAPS.gvk.kind, namespaced=True)
        storage.serve(served)
        storage.compact()
        storage.version += 10
        ApiServer(self.loop, self.network, storage).start()
        process = self.loop.process("client")
        done: asyncio.Future[dict[str, object]] = self.loop.create_future()

        def forget() -> None:
            for name in ("aa", "cc"):
                storage.create(served, "contract", {"metadata": {"name": name}})
            storage.compact()

        async def ask() -> None:
            credentials = Credentials(
                lambda: SimpleNamespace(
                    host=URL, tls_server_name=None, proxy=None, get_api_key_with_prefix=lambda _: ""
                )
            )
            async with ClusterClient(credentials) as client:
                seen: dict[str, object] = await observe(client, "contract")
                seen["forgotten"] = await forgotten(client, "contract", "1")
                seen["a page of it"] = await forgotten_page(client, "contract", forget)
                done.set_result(seen)

        process.spawn(ask())
        seen = await done
        forgotten_rest = [410, "Expired", ["cc", "d", "e"]]
        more = {"forgotten": 410, "a page of it": forgotten_rest}
        for key, expected in (EXPECTED | more).items():
            if seen[key] != expected:
                self.loop.fail(f"{key}: {seen[key]}, and not {expected}")
