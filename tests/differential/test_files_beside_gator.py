"""A wrong type in any field of a constraint or an ExpansionTemplate: the verdict is gator's."""

from __future__ import annotations

import json
import subprocess
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest

from tests.differential.beside_gator import ours
from tests.patience import PATIENCE_SECONDS
from tests.webhook.constraint.policies import constraint, expands, pod, template
from tests.webhook.policies.wrong_types import MATCH, changed, places
from webhook.policies.extensions import Extensions
from webhook.policies.manifests import Manifest

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from tests.programs import Programs

VALUES: tuple[Any, ...] = (None, 5, True, "", [], ["x"], {}, {"a": "b"}, "UP_per")
SCOPED = {
    "enforcementAction": "scoped",
    "scopedEnforcementActions": [{"action": "deny", "enforcementPoints": [{"name": "*"}]}],
}


def wrong(document: dict[str, Any]) -> Iterable[dict[str, Any]]:
    """The document with each of the values in each field of its spec."""
    for path in places(document["spec"]):
        for value in VALUES:
            yield changed(document, ("spec", *path), value)


def constraints() -> list[dict[str, Any]]:
    plain, scoped = constraint(match=MATCH), constraint()
    plain["spec"]["enforcementAction"] = "deny"
    scoped["spec"].update(SCOPED)
    return [*wrong(plain), *wrong(scoped)]


def refused_or_messages(gator: Path, file: Path, documents: list[dict[str, Any]]) -> Any:
    """What gator says: that it refuses, or the messages about the Pod."""
    file.write_text("\n---\n".join(map(json.dumps, documents)))
    done = subprocess.run(
        [str(gator), "test", "-o", "json", "-f", str(file)],
        capture_output=True,
        check=False,
        text=True,
        timeout=PATIENCE_SECONDS,
    )
    if any(word in done.stderr for word in ("adding", "converting unstructured", "expan")):
        return "refused"
    found = json.loads(done.stdout or "[]") or []
    return sorted(
        item["msg"] for item in found if (item.get("violatingObject") or {}).get("kind") == "Pod"
    )


def compared(listed: list[dict[str, Any]], mine: Any, theirs: Any) -> None:
    with ThreadPoolExecutor(2) as threads:
        answers = list(threads.map(theirs, range(len(listed))))
    counts: Counter[bool] = Counter()
    different = []
    for document, answer in zip(listed, answers, strict=True):
        own = mine(document)
        counts[own == answer] += 1
        if own != answer:
            different.append((document["spec"], own, answer))
    assert different == [], counts


@pytest.mark.slow(60)
def test_of_constraints(program: Programs, tmp_path: Path) -> None:
    gator, listed = program("gator"), constraints()

    def mine(document: dict[str, Any]) -> Any:
        verdict, messages = ours([template(), document])
        return sorted(messages) if verdict == "taken" else verdict

    def theirs(at: int) -> Any:
        documents = [template(), listed[at], pod()]
        return refused_or_messages(gator, tmp_path / f"{at}.yaml", documents)

    compared(listed, mine, theirs)


@pytest.mark.slow(30)
def test_of_expansion_templates(program: Programs, tmp_path: Path) -> None:
    gator, listed = program("gator"), list(wrong(expands(enforcementAction="warn")))

    def mine(document: dict[str, Any]) -> bool:
        return bool(Extensions().load([Manifest(document, "a.yaml")]))

    def theirs(at: int) -> bool:
        documents = [template(), constraint(), listed[at], pod()]
        return refused_or_messages(gator, tmp_path / f"{at}.yaml", documents) == "refused"

    compared(listed, mine, theirs)
