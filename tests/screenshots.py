"""``python -m tests.screenshots``: the pictures of the console in docs/pictures, made in a browser."""

import contextlib
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.browser import Browser, required
from tests.programs import ROOT
from tests.webhook.console.running import RunningConsole

PICTURES = ROOT / "docs" / "pictures"

PAGES = {
    "overview": "/",
    "policies": "/policies",
    "policy": "/policy?kind=ConstraintTemplate&name=disallowprivilegedcontainers",
    "violations": "/violations",
    "grouped": "/violations?group=namespace",
    "playground": "/playground",
}

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
        with (
            RunningConsole("--policies=policies", "--manifests=pods.yaml") as console,
            Browser(*programs, Path(folder) / "profile") as browser,
        ):
            console.ready()
            browser.go("about:blank")
            browser.resize(1200, 800)
            for name, path in PAGES.items():
                browser.go(console.address + path)
                if name == "playground":
                    browser.resize(1200, 1100)
                    browser.write("textarea[name=input]", yaml.safe_dump(manifests()[0]))
                    browser.click("form.playground button")
                    browser.until("return document.querySelector('#outcome') !== null")
                picture = PICTURES / f"console-{name}.png"
                picture.write_bytes(browser.picture())
                print(f"{picture.relative_to(ROOT)}: {picture.stat().st_size // 1024} KiB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
