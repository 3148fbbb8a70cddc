"""The same policies and the same object get the same findings at every door.

What a door leaves out on purpose stands in docs/doors.md; the worlds here have nothing of it.
"""

from pathlib import Path

import pytest

from tests.properties.doors.doors import differences
from tests.properties.doors.worlds import world

SEEDS = 40
"""Worlds of three objects each; ``python -m tests.properties.doors`` tries more."""


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(SEEDS))
def test_every_door_decides_alike(seed: int, tmp_path: Path) -> None:
    assert differences(world(seed), tmp_path) == []
