"""The simulated API server answers as the real one does."""

import pytest

from tests.cluster import Cluster
from tests.simulation.contract import EXPECTED, observe
from tests.simulation.simulated import simulate
from webhook.cluster.client import ClusterClient
from webhook.cluster.credentials import load_credentials
from webhook.cluster.event_loop import run


@pytest.mark.slow
def test_the_simulated_api_server_keeps_the_contract() -> None:
    code, output = simulate("contract", "--count", "5")
    assert code == 0, output[-5000:]


def test_the_real_api_server_keeps_the_contract(cluster: Cluster) -> None:
    async def ask() -> dict[str, object]:
        async with ClusterClient(load_credentials(cluster.kubeconfig)) as client:
            body = {"metadata": {"name": "contract"}}
            await client.request("POST", "/api/v1/namespaces", body=body)
            try:
                return await observe(client, "contract")
            finally:
                await client.request("DELETE", "/api/v1/namespaces/contract")

    assert run(ask()) == EXPECTED
