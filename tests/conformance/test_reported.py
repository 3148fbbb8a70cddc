"""Small inputs made after public reports and by attack: each is answered as is right."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tests.conformance.gatekeeper import CONFORMANCE, require
from tests.patience import PATIENCE_SECONDS

require("reported")

CASES = sorted(file.parent for file in (CONFORMANCE / "reported").glob("*/case.json"))


@pytest.mark.parametrize("folder", CASES, ids=lambda folder: folder.name)
def test_a_reported_case_is_answered_as_is_right(folder):
    case = json.loads((folder / "case.json").read_text())
    program, *words = case["command"]
    command = {"waddle": [sys.executable, "-m", "webhook"], "python": [sys.executable]}[program]
    done = subprocess.run(
        [*command, *words],
        cwd=folder,
        input=case.get("stdin", ""),
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_SECONDS,
    )
    output = done.stdout + done.stderr
    expected_exit = case.get("exit")
    if expected_exit == "nonzero":
        assert done.returncode != 0, output
    elif expected_exit is not None:
        assert done.returncode == expected_exit, output
    assert [text for text in case["has"] if text not in output] == [], output
    assert [text for text in case["hasnt"] if text in output] == [], output
