"""A server at a terminal prints words: its policies, its address and how to try it."""

import os
import pty
import re
import select
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.behaviour.serving import REQUIRED_LABELS, Server, constraint, pod, review, write_policies
from tests.patience import PATIENCE_SECONDS
from tests.programs import ROOT

BROKEN = REQUIRED_LABELS.replace("not input", "nothing(input)")


class Terminal:
    """The terminal of a program, with the program's output."""

    def __init__(self, command: Sequence[str], folder: Path) -> None:
        self._side, other = pty.openpty()
        self.process = subprocess.Popen(command, stderr=other, cwd=folder)
        os.close(other)
        self.text = ""

    def read_until(self, pattern: str) -> str:
        """All that was written when a pattern is there; its match is what is asked for."""
        end = time.monotonic() + PATIENCE_SECONDS
        while not (found := re.search(pattern, self.text)):
            ready, _, _ = select.select([self._side], [], [], max(0.0, end - time.monotonic()))
            assert ready, f"{pattern} never came: {self.text}"
            self.text += os.read(self._side, 65536).decode().replace("\r\n", "\n")
        return found[0]

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self._side)


@contextmanager
def served(policies: Path, folder: Path = ROOT) -> Iterator[Terminal]:
    command = [sys.executable, "-m", "webhook", "serve", f"--policies={policies}"]
    command += ["--host=127.0.0.1", "--port=0", "--health-addr=127.0.0.1:0"]
    command += ["--prometheus-host=127.0.0.1", "--prometheus-port=0", "--shutdown-delay=0"]
    terminal = Terminal(command, folder)
    try:
        yield terminal
    finally:
        terminal.close()


@pytest.mark.parametrize("checkout", [True, False], ids=["in a checkout", "elsewhere"])
def test_the_command_that_is_shown_is_answered_by_a_denial(tmp_path: Path, checkout: bool) -> None:
    folder = ROOT if checkout else tmp_path
    kind = write_policies(tmp_path / "own", REQUIRED_LABELS, constraint("needs-owner", "owner"))
    with served(ROOT / "policies" if checkout else kind, folder) as terminal:
        command = terminal.read_until(r"Ready: .*\n\n  (curl .*)\n").splitlines()[-1]
        answer = subprocess.run(
            shlex.split(command), cwd=folder, check=True, capture_output=True, text=True
        ).stdout
    assert '"allowed":false' in answer
    assert "serves the policies of " in terminal.text
    for where in ("https://127.0.0.1:", "/readyz?verbose", "/metrics", "503"):
        assert where in terminal.text
    assert "{" not in terminal.text.partition("Ready:")[0], "no JSON is shown to people"


def test_a_broken_policy_at_the_start_is_reported_with_its_file_and_its_line(
    tmp_path: Path,
) -> None:
    policies = write_policies(tmp_path, BROKEN)
    with served(policies) as terminal:
        terminal.read_until("Not ready: ")
        terminal.read_until("Files are read again")
        text = terminal.text.partition(" ERROR ")[2]
        assert f"{policies}/0.yaml:2: ConstraintTemplate requiredlabel: " in text
        assert "undefined function nothing" in text
        (policies / "0.yaml").write_text(REQUIRED_LABELS)
        (policies / "1.yaml").write_text(constraint("needs-owner", "owner"))
        terminal.read_until("Ready: 1 constraint is in force")


def test_what_is_left_out_at_the_start_is_reported_beside_what_is_served(tmp_path: Path) -> None:
    other = BROKEN.replace("requiredlabel", "otherlabel").replace("RequiredLabel", "OtherLabel")
    policies = write_policies(tmp_path, REQUIRED_LABELS, constraint("needs-owner", "owner"), other)
    with served(policies) as terminal:
        terminal.read_until("Ready: 1 constraint is in force.\nWhat cannot be used is left out: ")
        terminal.read_until("Ask it from another terminal")
        assert "Not ready" not in terminal.text
        assert "\\n" not in terminal.text, "lines of a fault are lines"


def test_where_no_terminal_is_lines_are_json_alone(tmp_path: Path) -> None:
    policies = write_policies(tmp_path, REQUIRED_LABELS, constraint("needs-owner", "owner"))
    with Server(policies).ready() as server:  # it decodes every line
        assert {event["logger"] for event in server.events} == {"setup"}


def test_who_asks_before_policies_are_loaded_is_informed_and_where_to_look(tmp_path: Path) -> None:
    with Server(write_policies(tmp_path, BROKEN)) as server:
        server.wait_for("policy cannot be used")
        answer = server.post(review(pod()))
        assert answer.status == 503
        assert "not ready: policies are not loaded yet" in answer.json()["message"]
        assert "/readyz?verbose" in answer.json()["message"]
        shown = server.get("health", "/readyz?verbose").body.decode()
        assert "0.yaml:2: ConstraintTemplate requiredlabel" in shown


def test_a_port_that_is_taken_is_reported_in_one_line(tmp_path: Path) -> None:
    policies = write_policies(tmp_path, REQUIRED_LABELS)
    with Server(policies) as server:
        port = server.ports["admission"]
        command = [sys.executable, "-m", "webhook", "serve", f"--policies={policies}"]
        second = subprocess.run(
            [*command, "--host=127.0.0.1", f"--port={port}"],
            check=False,
            capture_output=True,
            text=True,
        )
    assert second.returncode == 1
    (line,) = second.stderr.splitlines()
    assert line == (
        f"Error: --port: cannot listen on 127.0.0.1:{port}: Address already in use;"
        " give --port another value"
    )


def test_the_ports_of_make_run_can_be_chosen() -> None:
    ports = ["PORT=1", "HEALTH_PORT=2", "METRICS_PORT=3"]
    recipe = subprocess.run(
        ["make", "--dry-run", "--assume-old=setup", "run", *ports],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    for flag in ("--port 1 ", "--health-addr 127.0.0.1:2 ", "--prometheus-port 3 "):
        assert flag in recipe
