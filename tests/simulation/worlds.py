"""The worlds there are."""

from collections.abc import Callable
from typing import Final, Protocol

from tests.simulation.log_world import LogWorld
from tests.simulation.loop import Loop


class World(Protocol):
    """What is played."""

    async def main(self) -> None:
        """The director's story."""


WORLDS: Final[dict[str, Callable[[Loop], World]]] = {"log": LogWorld}
