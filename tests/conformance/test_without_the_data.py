"""Tests without the conformance data beside the project report that they were skipped."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests import programs
from tests.patience import PATIENCE_SECONDS
from tests.programs import ROOT, Given, ProgramUnavailableError

USERS = (
    "tests/conformance",
    "tests/differential/test_evaluation.py",
    "tests/differential/test_specialised.py",
    "tests/differential/test_syntax.py",
)
"""Tests that need the conformance data and nothing else."""


@pytest.mark.slow
def test_tests_about_the_data_are_skipped_and_say_where_they_were_looked_for(tmp_path: Path):
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--no-fold-skipped"]
    command += ["-m", "not programs", f"--deselect={Path(__file__).relative_to(ROOT)}", *USERS]
    environment = {**os.environ, "WADDLE_CONFORMANCE": str(tmp_path)}
    environment.pop("WADDLE_POLICY_LIBRARY", None)
    found = subprocess.run(
        command,
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_SECONDS,
    )
    assert found.returncode == 0, found.stdout
    skipped = [line for line in found.stdout.splitlines() if line.startswith("SKIPPED")]
    assert all(str(tmp_path) in line for line in skipped), skipped
    for user in USERS[1:]:
        assert any(user in line for line in skipped), f"{user} is not skipped as a whole"


def test_a_program_whose_sources_are_absent_is_not_available(monkeypatch, tmp_path: Path):
    monkeypatch.setattr(programs, "CONFORMANCE", tmp_path)
    with pytest.raises(ProgramUnavailableError, match="set WADDLE_CONFORMANCE"):
        programs._digest(Given("cel/oracle"))
