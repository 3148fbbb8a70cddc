"""README's output of `make run` and `curl` is the real output."""

import re
import subprocess

import pytest

from tests.behaviour.serving import Server
from tests.programs import ROOT

README = (ROOT / "README.md").read_text()
SHOWN = re.findall(r"^\$ curl .*?(/v1/\S+) .* -d @(\S+)\n(\{.*\})$", README, re.MULTILINE)


def test_the_readme_shows_a_denial_and_an_admission() -> None:
    """A reader can compare the two."""
    assert ['"allowed":false' in answer for _, _, answer in SHOWN] == [True, False]


@pytest.mark.parametrize(("path", "body", "answer"), SHOWN)
def test_the_answers_are_those_of_the_readme(path: str, body: str, answer: str) -> None:
    """To the byte, from the policies that `make run` serves."""
    with Server(ROOT / "policies").ready() as server:
        assert server.post((ROOT / body).read_bytes(), path).body.decode().strip() == answer


def test_make_run_serves_these_policies_on_the_ports_of_the_readme() -> None:
    """The target has the address that README's requests go to."""
    recipe = subprocess.run(
        ["make", "--dry-run", "--assume-old=setup", "run"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    assert "--policies policies " in recipe
    assert "https://127.0.0.1:8443/" in README
    assert "--host 127.0.0.1 --port 8443 " in recipe
    assert "http://127.0.0.1:9090/" in README
    assert "--health-addr 127.0.0.1:9090 " in recipe
