"""The benchmark's servers and comparisons: the bare application, our server, flame graphs."""

from pathlib import Path

import pytest

from loadtest import flame
from loadtest.bench.load import Generator, ask
from loadtest.bench.measurement import make_certificates, same_answer
from loadtest.bench.policies import POLICIES
from loadtest.bench.servers import Cores, floor, waddle
from loadtest.traces import BODIES
from tests.programs import Programs


def test_the_bare_application_answers_the_same_review_as_ours(
    program: Programs, tmp_path: Path
) -> None:
    """The bare application decodes the body and allows; a denial of ours shows the difference."""
    program("loadgen")
    certificates = make_certificates(tmp_path / "certificates")
    cores, log = Cores.of_this_machine(), tmp_path / "log"
    with (
        floor(certificates, core=cores.server, log=log) as bare,
        waddle(POLICIES / "p1", certificates, core=cores.server, log=log) as ours,
    ):
        assert ask(bare, BODIES / "pod.json") == ask(ours, BODIES / "pod.json")
        same_answer([ours, bare], BODIES / "pod.json")
        with pytest.raises(RuntimeError, match=r"pod_bad\.json: "):
            same_answer([ours, bare], BODIES / "pod_bad.json")
        measured = Generator(cores.client).count(
            bare, BODIES / "pod.json", connections=2, requests=50, expected="allowed"
        )
        assert (measured["requests"], measured["wrong"], measured["failed"]) == (50, 0, 0)


def test_a_flame_graph_shows_what_an_admission_does(
    program: Programs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program("loadgen")
    if not flame.PY_SPY.exists():
        pytest.skip("there is no py-spy: `make .venv-load/.done` installs it")
    arguments = ["flame", "--seconds=2", "--sets=p1", f"--output={tmp_path}"]
    monkeypatch.setattr("sys.argv", arguments)
    try:
        assert flame.main() == 0
    except flame.ForbiddenError as forbidden:
        pytest.skip(str(forbidden))
    drawn = (tmp_path / "flame-p1.svg").read_text()
    assert "Hub._run (webhook/server/http/hub.py" in drawn
    assert "decode (webhook/api/encoding.py" in drawn
    assert "Thread._bootstrap" not in drawn
