"""The worlds there are, each imported when it is played."""

from importlib import import_module
from typing import Final, Protocol, cast

from tests.simulation.loop import Loop


class World(Protocol):
    """What is played."""

    async def main(self) -> None:
        """The director's story."""


WORLDS: Final = {
    "log": "tests.simulation.log_world:LogWorld",
    "contract": "tests.simulation.contract_world:ContractWorld",
    "certificates": "tests.simulation.certificate_world:CertificateWorld",
    "cluster": "tests.simulation.cluster_world:ClusterWorld",
}


def make(name: str, loop: Loop) -> World:
    """A world on a loop."""
    module, _, kind = WORLDS[name].partition(":")
    return cast("World", getattr(import_module(module), kind)(loop))
