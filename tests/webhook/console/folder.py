"""Policies and objects in files, some with hostile names, for consoles over them."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import yaml

from tests.behaviour.serving import REQUIRED_LABELS, constraint, pod, thing, write_policies
from tests.webhook.console.pictures import LONG, RIGHT_TO_LEFT, SCRIPT
from tests.webhook.console.running import RunningConsole

RECORDS = [
    {
        "specVersion": "1.0",
        "eventType": "decision",
        "id": f"d{index}",
        "sequence": index + 1,
        "timestamp": f"2026-01-01T00:0{index}:00.000001Z",
        "process": "p",
        "verdict": verdict,
        "operation": "CREATE",
        "resourceKind": "Pod",
        "resourceName": f"web-{index}",
        "resourceNamespace": "bank" if index == 1 else "shop",
        "requestUsername": ("ada", "eve", "bob")[index],
        "requestUID": f"uid-{index}",
        "results": [
            {
                "constraint": {"kind": "RequiredLabel", "name": "needs-owner"},
                "enforcementAction": "deny",
                "message": SCRIPT,
            }
        ],
    }
    for index, verdict in enumerate(("deny", "allow", "deny"))
]


def write_folder(folder: Path, *more: str) -> Path:
    """Two constraints, and ``more`` policies, that four objects violate."""
    write_policies(
        folder / "policies",
        REQUIRED_LABELS,
        constraint("needs-owner", "owner"),
        constraint("needs-team", f"'{SCRIPT}'", action="warn"),
        *more,
    )
    objects = [pod(), thing("Pod", LONG), thing("Pod", RIGHT_TO_LEFT), thing("Pod", SCRIPT)]
    (folder / "objects.yaml").write_text(yaml.safe_dump_all(objects, allow_unicode=True))
    return folder


def write_decisions(folder: Path) -> Path:
    """The log of three decisions, and a line that is no record."""
    path = folder / "decisions.jsonl"
    path.write_text("\n".join([*map(json.dumps, RECORDS), "{no record"]) + "\n")
    return path


@contextmanager
def console_over(folder: Path, *more: str) -> Iterator[RunningConsole]:
    """A console over such a folder, once it has something to show."""
    given = (f"--policies={folder / 'policies'}", f"--manifests={folder / 'objects.yaml'}")
    with RunningConsole(*given, *more) as running:
        yield running.ready()
