"""``python -m tests.screenshots``: the pictures of the console in docs/pictures, made in a browser."""

import contextlib
import json
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.browser import Browser, required
from tests.programs import ROOT
from tests.webhook.console import living
from tests.webhook.console.listing import Listing
from tests.webhook.console.running import RunningConsole

PICTURES = ROOT / "docs" / "pictures"

PAGES = {
    "overview": "/",
    "policies": "/policies",
    "policy": "/policy?kind=ConstraintTemplate&name=disallowprivilegedcontainers",
    "violations": "/violations",
    "grouped": "/violations?group=namespace",
    "resource": "/resource?apiVersion=v1&kind=Pod&namespace=checkout&name=web-0",
    "decisions": "/decisions",
    "playground": "/playground",
}
"""Over files."""

OF_A_CLUSTER = {"rollouts": "/rollouts", "health": "/health"}

TEAMS = ("checkout", "search", "billing")


def manifests() -> list[dict[str, Any]]:
    """Workloads of three teams, some of which do what they should not."""
    found = []
    for number in range(24):
        container: dict[str, Any] = {
            "name": "app",
            "image": f"registry.example.com/app:{number}" if number % 4 else "app:latest",
        }
        if number % 5 == 0:
            container["securityContext"] = {"privileged": True}
        name, namespace = f"web-{number}", TEAMS[number % len(TEAMS)]
        metadata = {"name": name, "namespace": namespace, "labels": {"app": "web"}}
        spec = {"containers": [container], "hostNetwork": number % 11 == 0}
        found.append({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})
    return found


def decisions() -> list[dict[str, Any]]:
    """Returns decisions about these Pods within an hour."""
    found = []
    for number, pod in enumerate(reversed(manifests())):
        privileged = "securityContext" in pod["spec"]["containers"][0]
        constraint = {"kind": "DisallowPrivilegedContainers", "name": "baseline-privileged"}
        message = 'container "app": spec.containers[0].securityContext.privileged must not be true'
        result = {"constraint": constraint, "enforcementAction": "deny", "message": message}
        found.append(
            {
                "eventType": "decision",
                "timestamp": f"2026-11-22T08:{number * 2:02}:07.120000Z",
                "enforcementPoint": "validation.gatekeeper.sh",
                "requestUID": f"705ab4f5-6393-11e8-b7cc-42010a80{number:04}",
                "verdict": "deny" if privileged else "allow",
                "operation": "CREATE",
                "resourceKind": "Pod",
                "resourceAPIVersion": "v1",
                "resourceNamespace": pod["metadata"]["namespace"],
                "resourceName": pod["metadata"]["name"],
                "username": "system:serviceaccount:ci:deployer",
                "results": [result] if privileged else [],
            }
        )
    return found


def photograph(browser: Browser, name: str) -> None:
    """Keep what is seen."""
    picture = PICTURES / f"console-{name}.png"
    picture.write_bytes(browser.picture())
    print(f"{picture.relative_to(ROOT)}: {picture.stat().st_size // 1024} KiB")


def main() -> int:
    """Make them; what is missing is said."""
    try:
        programs = required()
    except pytest.skip.Exception as missing:
        print(missing, file=sys.stderr)
        return 1
    PICTURES.mkdir(exist_ok=True)
    # From within a folder, so that no picture shows a path of this machine.
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        shutil.copytree(ROOT / "policies", "policies")
        Path("pods.yaml").write_text(yaml.safe_dump_all(manifests()))
        lines = (json.dumps(record) for record in decisions())
        Path("decisions.jsonl").write_text("\n".join(lines) + "\n")
        given = ("--policies=policies", "--manifests=pods.yaml", "--decisions=decisions.jsonl")
        with Browser(*programs, Path(folder) / "profile") as browser:
            browser.go("about:blank")
            browser.resize(1200, 800)
            with RunningConsole(*given) as console:
                console.ready()
                for name, path in PAGES.items():
                    browser.go(console.address + path)
                    if name == "playground":
                        browser.resize(1200, 1100)
                        browser.write("textarea[name=input]", yaml.safe_dump(manifests()[0]))
                        browser.click("form.playground button")
                        browser.until("return document.querySelector('#outcome') !== null")
                    photograph(browser, name)
            browser.resize(1200, 800)
            with Listing(Path(folder), living.KIND) as listing:
                living.fill(listing)
                with RunningConsole("--kubeconfig=config") as console:
                    console.ready()
                    for name, path in OF_A_CLUSTER.items():
                        browser.go(console.address + path)
                        photograph(browser, name)
    return 0


if __name__ == "__main__":
    sys.exit(main())
