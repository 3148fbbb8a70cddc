"""``python -m tests.properties.doors FIRST COUNT``: look for a door that says something else."""

import gc
import sys
import tempfile
from pathlib import Path

from tests.properties.doors.doors import differences
from tests.properties.doors.once import done_once
from tests.properties.doors.worlds import world

FROZEN_WORLDS = 25
"""Worlds between two looks at all garbage: each door that serves freezes what it stands on."""
SHOWN_WORLDS = 500
"""Worlds between two lines that say how far it is."""


def main() -> int:
    """Try the worlds of some seeds; 1 where a door differs."""
    first, count = (int(word) for word in (*sys.argv[1:3], *("0", "100")[len(sys.argv) - 1 :]))
    with done_once():
        for number in range(1, count + 1):
            with tempfile.TemporaryDirectory() as folder:
                if differing := differences(world(first + number - 1), Path(folder)):
                    print("\n".join(differing))
                    return 1
            if number % FROZEN_WORLDS == 0:
                gc.unfreeze()
            if number % SHOWN_WORLDS == 0:
                print(f"{number} worlds", flush=True)
    print(f"{count} worlds: every door says the same")
    return 0


if __name__ == "__main__":
    sys.exit(main())
