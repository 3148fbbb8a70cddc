"""`waddle demo`: all of it by one command, and nothing of it after Control-C."""

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.behaviour.demonstrations import Demonstration, running
from tests.behaviour.stages import CRDS, TEMPLATES
from tests.cluster import ApiError, Cluster
from tests.conformance.gatekeeper import waddle
from tests.patience import PATIENCE_SECONDS, until
from tests.programs import Programs
from webhook.cli import exit_codes
from webhook.cli.demo.installation import CONFIGURATION, NAMES

WEBHOOKS = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"


@pytest.fixture
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of a short name: it has a Unix socket."""
    return tmp_path_factory.mktemp("d")


@pytest.mark.slow(30)
def test_one_command_shows_denials_bad_policies_and_the_console_and_ends_with_all_that_it_started(
    program: Programs, folder: Path
) -> None:
    with running(folder, f"--api-server={program('testcluster')}") as shown:
        assert "must not be privileged" in shown.printed(r"that is denied: (.*)")
        assert "var msq is unsafe" in shown.printed(r"with a typo is refused: (.*)")
        assert "DemoEndless/endless" in shown.printed(
            r"refused because of a failing policy: (.*)"
        ).replace("[endless]", "DemoEndless/endless")
        until(
            lambda: {"DemoEndless", "DemoPrivileged"} <= {item["kind"] for item in policies(shown)},
            "the console has the policies",
        )
        until(lambda: "old-agent" in str(shown.page("/violations")), "what the audit found")
        until(lambda: "must not be privileged" in str(shown.page("/decisions")), "decisions")
        kubeconfig = shown.printed("KUBECONFIG=(.*)")
        until(lambda: "3/3" in waddle("status", "--kubeconfig", kubeconfig).stdout, "all are there")

        first = int(shown.printed(r"as processes (\d+)"))
        os.kill(first, signal.SIGKILL)
        shown.printed("(waddle-0 has ended)")
        until(lambda: "2/2" in waddle("status", "--kubeconfig", kubeconfig).stdout, "two are left")

        assert shown.interrupt() == 0, shown.text
        assert shown.left() == []
        assert "lost" not in shown.text


@pytest.mark.slow(20)
def test_a_closed_terminal_ends_all_of_it_in_order(
    program: Programs, folder: Path, tmp_path: Path
) -> None:
    """Its output is lost then, and a signal arrives."""
    command = [sys.executable, "-m", "webhook", "demo", "--port=0"]
    errors, (terminal, output) = tmp_path / "errors", os.openpty()
    with errors.open("wb") as kept, os.fdopen(terminal, "rb", buffering=0) as screen:
        process = subprocess.Popen(
            [*command, f"--api-server={program('testcluster')}"],
            env={**os.environ, "TMPDIR": str(folder)},
            stdout=output,
            stderr=kept,
            start_new_session=True,
        )
        os.close(output)
        shown = b""
        while b"KUBECONFIG" not in shown:
            shown += screen.read(4096)
    process.send_signal(signal.SIGHUP)  # as from the terminal of a shell

    assert process.wait(PATIENCE_SECONDS) == exit_codes.IO_ERROR
    assert "Traceback" not in errors.read_text()
    assert list(folder.iterdir()) == []


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
            shown.printed("(that is denied)")
            with running(folder, f"--kubeconfig={cluster.kubeconfig}") as second:
                assert second.ended() == 1
                assert CONFIGURATION in second.text, shown.text
                assert "needs a cluster without policies" in second.text
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
    """On a machine without Go, a wheel starts nothing and leaves nothing."""
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
