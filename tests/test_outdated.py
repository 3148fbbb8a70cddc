"""`make outdated`, without a network: the table of versions, and what is said of answers and of none."""

import subprocess
import sys

from tests import outdated
from tests.outdated import NEWER, lines, used_modules
from tests.programs import PROGRAMS, ROOT, Module


def test_every_module_that_something_is_built_of_is_in_the_table_with_its_version() -> None:
    table = {(used.by, used.name): used.version for used in used_modules()}
    opa = PROGRAMS["opa"]
    assert isinstance(opa, Module)
    assert table["program opa", "github.com/open-policy-agent/opa"] == opa.version
    assert ("program gator", "github.com/open-policy-agent/gatekeeper/v3") in table
    assert ("tests/testcluster", "k8s.io/kubernetes") in table
    assert all(version.startswith("v") for version in table.values())


def test_a_newer_version_is_named_with_who_uses_the_older_one() -> None:
    newest = {used.name: used.version for used in used_modules()}
    newest["github.com/open-policy-agent/opa"] = "v99.0.0"
    named = [
        line
        for code, line in lines(newest.__getitem__, lambda: {"aiohttp": ("1", "2")})
        if code == NEWER
    ]
    assert any(
        line.startswith("github.com/open-policy-agent/opa ") and line.endswith("(program opa)")
        for line in named
    )
    assert "aiohttp 1 -> 2 (Python)" in named


def test_without_a_network_the_command_says_so_and_exits_with_three() -> None:
    script = (
        "import sys; from tests import outdated\n"
        "def silent(*_): raise outdated.Unanswered('no route to host')\n"
        "outdated.newest_module = outdated.outdated_packages = silent\n"
        "sys.exit(outdated.main())"
    )
    finished = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert finished.returncode == outdated.UNANSWERED
    assert "the Go module proxy does not answer: no route to host" in finished.stderr
    assert "the Python index does not answer: no route to host" in finished.stderr
