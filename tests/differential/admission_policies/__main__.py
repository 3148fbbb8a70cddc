"""Looks for differences: ``python -m tests.differential.admission_policies FIRST SEEDS``.

Each seed is 120 validating policies and 120 mutating ones, about three requests each. Half of them
get requests of every kind and operation, or updates.
"""

import sys
import tempfile
from itertools import product
from pathlib import Path

from tests.cluster import Cluster
from tests.differential.admission_policies.beside import differences
from tests.differential.admission_policies.made import cases
from tests.programs import build

COUNT = 60


def main(first: int, seeds: int) -> int:
    """Tell every difference; 1 where there is one."""
    count = 0
    with tempfile.TemporaryDirectory() as folder:
        cluster = Cluster.start(build("testcluster"), Path(folder) / "cluster")
        try:
            for seed in range(first, first + seeds):
                for mutating, varied in product((False, True), repeat=2):
                    made = list(cases(seed, COUNT, mutating=mutating, varied=varied))
                    for line in differences(cluster.api, made):
                        count += 1
                        print(line)
                print(f"seed {seed}: {count} differences so far")
        finally:
            cluster.stop()
    return 1 if count else 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), int(sys.argv[2])))
