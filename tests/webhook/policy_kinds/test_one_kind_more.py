"""A kind that there is not is a row, a reader and a CRD: nothing else is taught about it."""

import subprocess
import sys

import pytest

from tests.patience import PATIENCE_SECONDS


@pytest.mark.slow(20)
def test_a_kind_more_is_read_by_every_door_and_refused_followed_and_reported(tmp_path):
    """In a process of its own, whose table has it from the beginning."""
    command = (sys.executable, "-m", "tests.made_up_kind", str(tmp_path))
    run = subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=PATIENCE_SECONDS
    )
    assert run.returncode == 0, run.stdout + run.stderr
