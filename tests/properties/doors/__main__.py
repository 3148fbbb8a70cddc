"""``python -m tests.properties.doors FIRST COUNT``: look for a door that says something else."""

import gc
import sys
import tempfile
from pathlib import Path

from tests.properties.doors.doors import differences
from tests.properties.doors.worlds import world


def main() -> int:
    """Try the worlds of some seeds; 1 where a door differs."""
    first, count = (int(word) for word in (*sys.argv[1:3], *("0", "100")[len(sys.argv) - 1 :]))
    for seed in range(first, first + count):
        with tempfile.TemporaryDirectory() as folder:
            if differing := differences(world(seed), Path(folder)):
                print("\n".join(differing))
                return 1
        gc.unfreeze()  # Each command freezes what it stands on: one process runs thousands.
    print(f"{count} worlds: every door says the same")
    return 0


if __name__ == "__main__":
    sys.exit(main())
