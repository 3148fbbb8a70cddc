"""`waddle demo`: all of it by one command, and nothing of it after Control-C."""

import json
import os
import re
import signal
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.behaviour.stages import CRDS, TEMPLATES
from tests.cluster import ApiError, Cluster
from tests.conformance.gatekeeper import waddle
from tests.patience import PATIENCE_SECONDS, until
from tests.programs import Programs
from webhook.cli.demo.installation import CONFIGURATION, NAMES

WEBHOOKS = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"


class Demonstration:
    """The command as a process, as at a terminal: with a session, and a folder for its files."""

    def __init__(self, folder: Path, *arguments: str) -> None:
        self.folder = folder
        self.lines: list[str] = []
        self.process = subprocess.Popen(
            [sys.executable, "-m", "webhook", "demo", "--port=0", *arguments],
            env={**os.environ, "TMPDIR": str(folder)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        self._changed = threading.Condition()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            with self._changed:
                self.lines.append(line)
                self._changed.notify_all()
        with self._changed:
            self.lines.append("")
            self._changed.notify_all()

    def told(self, pattern: str) -> str:
        """The first group of the first line that has the pattern, waiting for it."""

        def found() -> re.Match[str] | None:
            return next((hit for line in self.lines if (hit := re.search(pattern, line))), None)

        with self._changed:
            self._changed.wait_for(
                lambda: found() or self.lines[-1:] == [""], timeout=PATIENCE_SECONDS
            )
            hit = found()
        assert hit, f"never told {pattern!r}: {self.text}"
        return hit[1]

    @property
    def text(self) -> str:
        return "".join(self.lines)

    def page(self, path: str) -> Any:
        """A page of its console, as JSON."""
        address = self.told(r"console +(http://\S+)/")
        with urllib.request.urlopen(
            f"{address}{path}?format=json", timeout=PATIENCE_SECONDS
        ) as answer:
            return json.load(answer)

    def interrupt(self) -> int:
        """Control-C; the exit code."""
        self.process.send_signal(signal.SIGINT)
        return self.ended()

    def ended(self) -> int:
        code = self.process.wait(PATIENCE_SECONDS)
        self._reader.join()
        return code

    def left(self) -> list[str]:
        """Processes that speak of its folder, and what is in it."""
        found = [str(path) for path in self.folder.iterdir()]
        for process in Path("/proc").iterdir():
            if process.name.isdecimal() and int(process.name) != os.getpid():
                try:
                    words = (process / "cmdline").read_bytes()
                except OSError:
                    continue
                if str(self.folder).encode() in words:
                    found.append(words.decode(errors="replace").replace("\0", " "))
        return found


@contextmanager
def running(folder: Path, *arguments: str) -> Iterator[Demonstration]:
    demonstration = Demonstration(folder, *arguments)
    try:
        yield demonstration
    finally:
        if demonstration.process.poll() is None:
            demonstration.interrupt()
        assert demonstration.process.stdout is not None
        demonstration.process.stdout.close()


@pytest.fixture
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of a short name: it has a Unix socket."""
    return tmp_path_factory.mktemp("d")


@pytest.mark.slow(30)
def test_one_command_shows_denials_bad_policies_and_the_console_and_ends_with_all_that_it_started(
    program: Programs, folder: Path
) -> None:
    with running(folder, f"--api-server={program('testcluster')}") as shown:
        assert "must not be privileged" in shown.told(r"that is denied: (.*)")
        assert "var msq is unsafe" in shown.told(r"with a typo is refused: (.*)")
        assert "DemoEndless/endless" in shown.told(r"refused for a fault: (.*)").replace(
            "[endless]", "DemoEndless/endless"
        )
        until(
            lambda: {"DemoEndless", "DemoPrivileged"} <= {item["kind"] for item in policies(shown)},
            "the console has the policies",
        )
        until(lambda: "old-agent" in str(shown.page("/violations")), "what the audit found")
        until(lambda: "must not be privileged" in str(shown.page("/decisions")), "decisions")
        kubeconfig = shown.told("KUBECONFIG=(.*)")
        until(lambda: "3/3" in waddle("status", "--kubeconfig", kubeconfig).stdout, "all are there")

        first = int(shown.told(r"as processes (\d+)"))
        os.kill(first, signal.SIGKILL)
        shown.told("(waddle-0 has ended)")
        until(lambda: "2/2" in waddle("status", "--kubeconfig", kubeconfig).stdout, "two are left")

        assert shown.interrupt() == 0, shown.text
        assert shown.left() == []
        assert "lost" not in shown.text


def policies(shown: Demonstration) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = shown.page("/policies")["policies"]
    return found


@pytest.mark.slow(30)
def test_a_cluster_of_somebody_s_is_left_as_it_was_and_one_with_policies_is_not_touched(
    program: Programs, tmp_path: Path, folder: Path
) -> None:
    cluster = Cluster.start(program("testcluster"), tmp_path / "theirs")
    try:
        with running(folder, f"--kubeconfig={cluster.kubeconfig}") as shown:
            shown.told("(that is denied)")
            with running(folder, f"--kubeconfig={cluster.kubeconfig}") as second:
                assert second.ended() == 1
                assert CONFIGURATION in second.text, shown.text
                assert "writes only to one that has no policies" in second.text
            assert shown.interrupt() == 0, shown.text
        assert shown.left() == []
        assert cluster.api.request("GET", WEBHOOKS)["items"] == []
        until(lambda: cluster.api.request("GET", CRDS)["items"] == [], "no CRD is left")
        spaces = "/api/v1/namespaces"
        until(
            lambda: (
                not {
                    item["metadata"]["name"] for item in cluster.api.request("GET", spaces)["items"]
                }
                & set(NAMES)
            ),
            "no namespace is left",
        )
        until(lambda: not is_served(cluster, TEMPLATES), "its kinds are not served any more")
    finally:
        cluster.stop()


def is_served(cluster: Cluster, path: str) -> bool:
    try:
        cluster.api.request("GET", path)
    except ApiError as error:
        if error.status != 404:
            raise
        return False
    return True


def test_where_no_go_is_that_can_build_the_control_plane_it_says_what_helps(tmp_path: Path) -> None:
    """As from a wheel on a machine without Go: nothing is started, nothing left."""
    go = tmp_path / "bin" / "go"
    go.parent.mkdir()
    go.write_text("#!/bin/sh\necho go version go1.20 linux/amd64\n")
    go.chmod(0o755)
    script = (
        "import sys, webhook.cli.demo.build as build\n"
        "build._GO = ('go',)\n"
        "from webhook.cli.main import main; main()"
    )
    environment = {
        **os.environ,
        "PATH": str(go.parent),
        "XDG_CACHE_HOME": str(tmp_path / "cache"),
        "TMPDIR": str(tmp_path),
    }
    run = subprocess.run(
        [sys.executable, "-c", script, "demo"],
        env=environment,
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=False,
    )

    assert run.returncode == 1
    assert "Go 1.26 or later" in run.stderr
    assert "waddle demo --kubeconfig FILE" in run.stderr
    assert not list(tmp_path.glob("waddle-demo-*"))
