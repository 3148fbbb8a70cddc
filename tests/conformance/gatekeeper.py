"""The gatekeeper-library suites, and rewritings of them that tests run.

The suites lie beside the project, or where ``WADDLE_CONFORMANCE`` says.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.patience import PATIENCE_SECONDS
from tests.programs import ROOT

CONFORMANCE = Path(os.environ.get("WADDLE_CONFORMANCE", ROOT.parent / "shared" / "conformance"))


def require(*folders: str) -> None:
    """Skips the module that calls this as it is imported, where the data have no such folder."""
    for folder in folders:
        if not (CONFORMANCE / folder).is_dir():
            pytest.skip(
                f"no {CONFORMANCE / folder}: set WADDLE_CONFORMANCE", allow_module_level=True
            )


def library() -> Path:
    """The folder of the library; skips the test where it is not."""
    folder = CONFORMANCE / "gatekeeper-library"
    if not folder.is_dir():
        pytest.skip(f"no {folder}: set WADDLE_CONFORMANCE to the folder that holds it")
    return folder


def rewritten(target: Path, change: Any) -> Path:
    """A copy of the library in which ``change`` was applied to each case's assertions."""
    shutil.copytree(library(), target)
    for path in sorted(target.rglob("suite.yaml")):
        suite = yaml.safe_load(path.read_text())
        for test in suite["tests"]:
            for case in test.get("cases") or []:
                case["assertions"] = change(case["assertions"])
        path.write_text(yaml.safe_dump(suite))
    return target


def waddle(*arguments: str | Path, **options: Any) -> subprocess.CompletedProcess[str]:
    """Run the command line in a process of its own."""
    program = Path(sys.executable).with_name("waddle")
    return subprocess.run(
        [program, *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_SECONDS,
        stdin=options.pop("stdin", subprocess.DEVNULL),
        **options,
    )


def without_times(report: str) -> list[str]:
    """A report's lines with the durations taken out."""
    return [
        re.sub(r"(\t|\()\d+\.\d+s\)?", r"\1", line).rstrip() for line in report.splitlines() if line
    ]
