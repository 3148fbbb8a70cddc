"""The page's examples of programs that embed Waddle: each runs as it stands there."""

import json
import re
import shutil
import subprocess
import sys
import urllib.error
import urllib.request

import pytest

from tests.patience import PATIENCE_SECONDS
from tests.programs import ROOT

PAGE = (ROOT / "docs" / "library.md").read_text()
BAD = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "web"}}
GOOD = {**BAD, "metadata": {"name": "web", "labels": {"owner": "team-shop"}}}


def example(name):
    """The code below the line that names its file."""
    return re.search(rf"as `{name}`:\n\n```python\n(.*?)```", PAGE, re.DOTALL)[1]


@pytest.fixture
def folder(tmp_path):
    labels = ROOT / "policies" / "general" / "required-labels"
    (tmp_path / "policies").mkdir()
    shutil.copy(labels / "template.yaml", tmp_path / "policies")
    shutil.copy(labels / "samples" / "required-labels" / "constraint.yaml", tmp_path / "policies")
    return tmp_path


def test_a_service_answers(folder):
    (folder / "service.py").write_text(example("service.py"))
    command = [sys.executable, "-m", "uvicorn", "service:app", "--port", "0"]
    with subprocess.Popen(command, cwd=folder, stderr=subprocess.PIPE, text=True) as process:
        try:
            started = next(line for line in process.stderr if "running on" in line)
            address = re.search(r"http://[\d.:]+", started)[0]

            def ask(document):
                request = urllib.request.Request(
                    f"{address}/review",
                    json.dumps(document).encode(),
                    {"Content-Type": "application/json"},
                )
                with urllib.request.urlopen(request, timeout=PATIENCE_SECONDS) as answer:
                    return json.load(answer)

            (violation,) = ask(BAD)
            assert violation["denies"]
            assert violation["message"].startswith('label "owner" is required')
            assert ask(GOOD) == []
            with pytest.raises(urllib.error.HTTPError, match="422"):
                ask({"name": "web"})
        finally:
            process.terminate()
            process.stderr.read()


def test_a_suite_fails_for_each_object_that_would_be_denied(folder):
    (folder / "test_manifests.py").write_text(example("test_manifests.py"))
    (folder / "manifests").mkdir()
    (folder / "manifests" / "all.yaml").write_text(f"{json.dumps(GOOD)}\n---\n{json.dumps(BAD)}\n")

    run = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-p",
            "no:cacheprovider",
            "-p",
            "no:randomly",
            "-n0",
        ],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=False,
    )

    assert "1 failed, 1 passed" in run.stdout, run.stdout + run.stderr
