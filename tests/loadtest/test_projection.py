"""The memory of a synced object has a bound in bytes."""

import json
import subprocess
import sys

from loadtest.projection import OBJECT_BYTES_MAX, QUICK
from tests.programs import ROOT


def test_a_large_pod_of_which_only_the_node_is_read_takes_at_most_400_bytes() -> None:
    command = [sys.executable, "-m", "loadtest.projection", "--case", "nodes", "--quick"]
    run = subprocess.run([*command, "--traced"], check=True, capture_output=True, cwd=ROOT)
    found = json.loads(run.stdout)
    assert found["objects"] == QUICK
    assert 100 < found["each"] <= OBJECT_BYTES_MAX == 400
