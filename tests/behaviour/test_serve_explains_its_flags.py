"""The command line of ``waddle serve``: help, and errors that say what to write instead."""

import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.behaviour.serving import (
    REQUIRED_LABELS,
    Server,
    constraint,
    pod,
    review,
    thing,
    write_policies,
)
from tests.patience import PATIENCE_SECONDS


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    """``waddle serve`` with arguments that do not let it start."""
    command = [sys.executable, "-m", "webhook", "serve", *arguments]
    return subprocess.run(
        command, capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False
    )


def test_help_lists_every_flag_by_topic() -> None:
    found = run("--help")
    assert found.returncode == 0
    assert "Usage: waddle serve --policies DIR" in found.stdout
    assert "--log-denies" in found.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "no policies are given: add --policies"),
        (["--policies=/does/not/exist"], "no such file or directory: '/does/not/exist'"),
        (["--policies=/", "--port=x"], "invalid value 'x' for flag --port"),
        (["--policies=/", "--no-such-flag"], "flag provided but not defined: --no-such-flag"),
        (["--policies=/", "--operation=audit"], "decides nothing: add webhook"),
        (["--policies=/", "--operation=dance"], "invalid value 'dance' for flag --operation"),
        (["--policies=/", "--audit-interval=-1"], "--audit-interval must be at least 0"),
        (["--policies=/", "--metrics-addr=:1"], "use --prometheus-host and --prometheus-port"),
        (["--policies=/", "--client-ca-name=ca.crt"], "names a file in --cert-dir"),
    ],
)
def test_a_mistake_is_named_with_its_remedy(arguments: list[str], message: str) -> None:
    found = run(*arguments)
    assert found.returncode == 64
    assert message in found.stderr
    assert "Traceback" not in found.stderr


def test_a_port_that_is_taken_is_named(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        found = run(f"--policies={tmp_path}", "--host=127.0.0.1", f"--port={port}")
    assert found.returncode == 1
    assert f"--port: cannot listen on 127.0.0.1:{port}" in found.stderr


def test_an_address_that_is_not_ours_is_not_blamed_on_the_port(tmp_path: Path) -> None:
    policies = write_policies(tmp_path, REQUIRED_LABELS)
    for host in ("192.0.2.1", "no-such-host.invalid"):
        found = run(f"--policies={policies}", f"--host={host}", "--port=0")
        assert found.returncode == 1
        assert f"--host: cannot listen on {host}:0" in found.stderr


def test_the_flags_of_gatekeeper_s_chart_start_it(tmp_path: Path) -> None:
    policies = write_policies(tmp_path, REQUIRED_LABELS, constraint("needs-owner", "owner"))
    flags = [
        "--logtostderr",
        "--log-denies=true",
        "--emit-admission-events=false",
        "--admission-events-involved-namespace=false",
        "--log-level=INFO",
        "--exempt-namespace=gatekeeper-system",
        "--exempt-namespace-prefix=kube-",
        "--operation=webhook",
        "--enable-external-data=true",
        "--enable-generator-resource-expansion=true",
        "--log-mutations=false",
        "--mutation-annotations=false",
        "--disable-cert-rotation=false",
        "--max-serving-threads=-1",
        "--tls-min-version=1.3",
        "--validating-webhook-configuration-name=gatekeeper-validating-webhook-configuration",
        "--mutating-webhook-configuration-name=gatekeeper-mutating-webhook-configuration",
        "--external-data-provider-response-cache-ttl=3m",
        "--enable-k8s-native-validation=true",
        "--metrics-backend=prometheus",
        "-disable-opa-builtin",
        "http.send",
    ]
    with Server(policies, *flags) as server:
        server.ready()
        assert server.admit(pod())["allowed"] is False
        notices = [event["notice"] for event in server.events if "notice" in event]
        assert notices == []  # each of them has its effect


def test_the_ignore_label_is_for_exempt_namespaces_only(tmp_path: Path) -> None:
    policies = write_policies(tmp_path, REQUIRED_LABELS, constraint("needs-owner", "owner"))
    label = "admission.gatekeeper.sh/ignore"
    flags = ["--exempt-namespace=a,b", "--exempt-namespace-prefix=kube-"]
    with Server(policies, *flags, "--exempt-namespace-suffix=-system") as server:
        server.ready()

        def ask(name: str, **labels: str) -> dict[str, object]:
            namespace = thing("Namespace", name, labels=labels)
            found: dict[str, object] = server.post(review(namespace), "/v1/admitlabel").verdict
            return found

        for name in ("a", "b", "kube-x", "x-system"):
            assert ask(name, **{label: "no"})["status"] == {
                "metadata": {},
                "message": f"Namespace {name} is allowed to set {label}",
                "code": 200,
            }
        denied = ask("c", **{label: ""})
        assert denied["allowed"] is False
        assert denied["status"] == {
            "metadata": {},
            "message": f"Only exempt namespace can have the {label} label",
            "reason": "Forbidden",
            "code": 403,
        }
        assert ask("c", other="x")["allowed"] is True


def test_the_webhook_s_own_account_is_that_of_its_namespace(tmp_path: Path) -> None:
    policies = write_policies(tmp_path, REQUIRED_LABELS, constraint("needs-owner", "owner"))
    with Server(policies, environment={"POD_NAMESPACE": "here"}) as server:
        server.ready()

        def allowed(namespace: str) -> bool:
            user = f"system:serviceaccount:{namespace}:gatekeeper-admin"
            found: bool = server.admit(pod(), userInfo={"username": user})["allowed"]
            return found

        assert allowed("here")
        assert not allowed("gatekeeper-system")
