"""docs/migrating.md, step by step: a replica in Gatekeeper's shadow, and what both said compared."""

import json
from collections.abc import Iterator
from contextlib import nullcontext, suppress
from pathlib import Path

import pytest

from tests.cluster import ApiError
from tests.conformance.gatekeeper import waddle
from tests.decisions.process import Sidecar
from tests.patience import until
from tests.system.conftest import control_plane
from tests.system.peer import Gatekeeper
from tests.system.replicas import (
    CONFIG_MAPS,
    Plane,
    Replica,
    config_map,
    constraint,
    template,
)

WORDS = ("denied", "warned", "recorded", "fine")
ROUNDS = 3


@pytest.fixture
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Plane]:
    """A control plane with Gatekeeper's CRDs and none of ours."""
    with control_plane(tmp_path_factory.mktemp("shadow"), install=Gatekeeper.install) as made:
        yield made


@pytest.mark.slow
def test_what_both_said_of_the_same_requests_is_compared_line_by_line(
    plane: Plane, tmp_path: Path
) -> None:
    records_path = tmp_path / "all.jsonl"
    file = {
        "name": "f",
        "type": "file",
        "format": "decision",
        "settings": {"path": str(records_path)},
    }
    exporter = tmp_path / "exporter.yaml"
    flags = ("--log-denies", "--log-level=INFO")
    operations = ("webhook", "status", "generate")
    with (
        Sidecar(tmp_path / "s", [file]) as sidecar,
        Gatekeeper(plane, tmp_path, operations, *flags) as peer,
    ):
        exporter.write_text(json.dumps({"sidecarURL": sidecar.url, "includeObjects": True}))
        policies = write_policies(plane, tmp_path)
        options = ("--kubeconfig", str(plane.cluster.kubeconfig))
        migrated = waddle("migrate", "gatekeeper", *options)
        assert migrated.returncode == 0, migrated.stdout + migrated.stderr
        assert "as it is" in migrated.stdout
        with Replica(plane, "shadow-0", f"--decision-log-config={exporter}") as replica:
            replica.wait_ready()
            until(lambda: peer.denies("denied") and replica.denies("denied"), "each denies")
            plane.register(peer.port, "gatekeeper")
            plane.register(replica.ports["admission"], "shadow")
            for word in WORDS[:-1]:  # the policies come into force in any order
                until(
                    lambda word=word: asks_both(plane, word, records_path, peer.log),
                    f"both are asked, and enforce what is about {word}",
                )
            write(plane)
            until(
                lambda: len(of_writes(records_path)) == ROUNDS * len(WORDS),
                "every decision is on disk",
            )
        audited = waddle("audit", "--once", "-o", "json", *options)
        assert audited.returncode == 0, audited.stderr

    ours, theirs = tmp_path / "decisions.jsonl", tmp_path / "gatekeeper-writes.log"
    ours.write_text("".join(of_writes(records_path)))
    theirs.write_text("".join(of_writes(peer.log)))
    compared = waddle("decisions", "compare", ours, "--gatekeeper-log", theirs)
    assert (compared.returncode, compared.stdout) == (
        0,
        f"{ROUNDS * 3} violations that both found\n",
    ), compared.stdout + compared.stderr
    checked = waddle("check", "-f", policies, "--decisions", ours)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    assert f"{ROUNDS * len(WORDS)} recorded decisions, 0 would be another" in checked.stdout

    lines = theirs.read_text().splitlines(keepends=True)
    lost = next(number for number, line in enumerate(lines) if "denied by warned" in line)
    theirs.write_text("".join(lines[:lost] + lines[lost + 1 :]))
    differs = waddle("decisions", "compare", ours, "--gatekeeper-log", theirs)
    assert differs.returncode == 1
    assert "only Waddle: 1 x Shadowed/warned warn ConfigMap" in differs.stdout


def write_policies(plane: Plane, folder: Path) -> Path:
    """Writes a template and a constraint of each action, in the cluster and in a folder."""
    documents = [template("Shadowed")]
    plane.put_template(documents[0])
    for word, action in zip(WORDS, ("deny", "warn", "dryrun"), strict=False):
        made = constraint(word, word, "Shadowed")
        made["spec"]["enforcementAction"] = action
        plane.put_constraint(made)
        documents.append(made)
    policies = folder / "policies"
    policies.mkdir()
    for number, document in enumerate(documents):
        (policies / f"{number}.json").write_text(json.dumps(document))
    return policies


def asks_both(plane: Plane, word: str, *logs: Path) -> bool:
    """Each has logged what it found in an object of a name that is not compared."""
    name = f"probe-{word}"
    with suppress(ApiError):
        plane.api.request("POST", f"{CONFIG_MAPS}?dryRun=All", config_map(word, name))
    return all(log.exists() and has_found(log, word, name) for log in logs)


def has_found(log: Path, word: str, name: str) -> bool:
    """Whether a line tells of the violation of the word's policy by the object of this name."""
    *lines, _ = log.read_text().split("\n")
    return any(f'"{name}"' in line and f"denied by {word}" in line for line in lines)


def write(plane: Plane) -> None:
    for number in range(ROUNDS):
        for word in WORDS:
            refused = pytest.raises(ApiError) if word == "denied" else nullcontext()
            with refused:
                plane.api.request("POST", CONFIG_MAPS, config_map(word, f"written-{word}-{number}"))


def of_writes(file: Path) -> list[str]:
    """Lines about what was written, without the probes before; the last may be half of one."""
    if not file.exists():
        return []
    *whole, _ = file.read_text().split("\n")
    return [f"{line}\n" for line in whole if '"written-' in line]
