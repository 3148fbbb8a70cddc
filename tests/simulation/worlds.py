"""The worlds there are, each imported when it is played."""

from collections.abc import Callable
from importlib import import_module
from typing import Final, Protocol, cast

from tests.simulation.loop import Loop


class World(Protocol):
    """A simulated world."""

    async def main(self) -> None:
        """The director's story."""


WORLDS: Final = {
    "log": "tests.simulation.log_world:LogWorld",
    "contract": "tests.simulation.contract_world:ContractWorld",
    "certificates": "tests.simulation.certificate_world:CertificateWorld",
    "cluster": "tests.simulation.cluster_world:ClusterWorld",
    "generated": "tests.simulation.generated_world:GeneratedWorld",
    "trials": "tests.simulation.trial_world:TrialWorld",
    "forged": "tests.simulation.forged_world:ForgedWorld",
    "extensions": "tests.simulation.extension_world:ExtensionWorld",
    "exceptions": "tests.simulation.exception_world:ExceptionWorld",
    "projected": "tests.simulation.projected_world:ProjectedWorld",
    "providers": "tests.simulation.provider_world:ProviderWorld",
    "groups": "tests.simulation.group_world:GroupWorld",
}

ALL: Final = tuple(name for name in WORLDS if name != "contract")
"""Worlds with random events; the contract belongs to ``test_api_server.py``."""


def load(name: str) -> Callable[[Loop], World]:
    """Returns the class of a world, and imports its modules."""
    module, _, kind = WORLDS[name].partition(":")
    return cast("Callable[[Loop], World]", getattr(import_module(module), kind))


def make(name: str, loop: Loop) -> World:
    """A world on a loop."""
    return load(name)(loop)
