"""`gator test` and `waddle test` about the same files: the public library, and objects by chance."""

import json
import os
import random
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.conformance.gatekeeper import library, waddle
from tests.differential.mutation import mutated
from tests.patience import PATIENCE_SECONDS
from tests.programs import Programs
from webhook.cel.run.values import INT_MAX

OBJECTS = int(os.environ.get("WADDLE_COMPARED_OBJECTS", "400"))
SEED = int(os.environ.get("WADDLE_COMPARED_SEED", "1"))

TOGETHER = 200
"""Objects in a file: all of them are data for policies that look at others."""

SHOWN = 5

Json = dict[str, Any]


def documents(file: Path) -> list[Json]:
    return [item for item in yaml.safe_load_all(file.read_text()) if item]


def policies_and_samples() -> tuple[list[Json], list[Json]]:
    """All templates with the constraints of all samples, each under a name of its own; the objects."""
    policies: list[Json] = []
    samples: list[Json] = []
    for template in sorted(library().glob("*/*/template.yaml")):
        policies += documents(template)
        for file in sorted(template.parent.glob("samples/*/*.yaml")):
            for item in documents(file):
                if item["apiVersion"].startswith("constraints."):
                    item["metadata"]["name"] = f"constraint-{len(policies)}"
                    policies.append(item)
                elif item["kind"] != "AdmissionReview":
                    samples.append(item)
    return policies, samples


def strange(sample: Json, name: str, chance: random.Random) -> Json:
    """A sample with up to three places changed, which is still an object with a name.

    Both refuse to read what has no kind or name. Labels and annotations are texts, as the API
    server has them; cluster-scoped kinds get a namespace, without which the two differ on purpose.
    """
    found: Any = sample
    for _ in range(chance.randint(1, 3)):
        found = mutated(found, chance)
    found = small(found)
    found = dict(found) if isinstance(found, dict) else {}
    metadata = found.get("metadata")
    metadata = dict(metadata) if isinstance(metadata, dict) else {}
    for field in ("labels", "annotations"):
        texts = metadata.get(field)
        if not isinstance(texts, dict) or any(type(text) is not str for text in texts.values()):
            metadata.pop(field, None)
    metadata |= {"name": name, "namespace": sample["metadata"].get("namespace", "default")}
    return {
        **found,
        "apiVersion": sample["apiVersion"],
        "kind": sample["kind"],
        "metadata": metadata,
    }


def small(value: Any) -> Any:
    """Without numbers that Gatekeeper's float64 prints otherwise (docs/compatibility/reviews.md).

    And without those beyond 64 bits: for its CEL they are doubles (docs/compatibility/cel.md).
    """
    if isinstance(value, dict):
        return {name: small(item) for name, item in value.items()}
    if isinstance(value, list):
        return list(map(small, value))
    most = 100_000 if isinstance(value, int) else INT_MAX if isinstance(value, float) else None
    return 7 if most is not None and abs(value) > most else value


def violations_in(output: str, names: set[str]) -> Counter[tuple[str, ...]]:
    """Each violation of an object of ours, whole, however often and in whatever order."""
    found: Counter[tuple[str, ...]] = Counter()
    for item in json.loads(output):
        about, constraint = item["violatingObject"], item["constraint"]
        if about["metadata"]["name"] in names:
            found[
                about["metadata"]["name"],
                constraint["kind"],
                constraint["metadata"]["name"],
                item["enforcementAction"],
                item["msg"],
                json.dumps(item.get("metadata"), sort_keys=True),
            ] += 1
    return found


def unexpected(stderr: str) -> list[str]:
    """Returns the lines of stderr except our reports of constraints that matched no object."""
    ours = ("constraints matched no object: ", "which only a request has")
    return [line for line in stderr.splitlines() if not any(text in line for text in ours)]


@pytest.mark.slow
@pytest.mark.parametrize("cel", ["true", "false"])
def test_random_objects_violate_what_they_violate_for_gator(
    program: Programs, tmp_path: Path, cel: str
) -> None:
    """By either engine: action, message, details and the constraint, object by object."""
    gator = program("gator")
    policies, samples = policies_and_samples()
    chance = random.Random(SEED)
    (tmp_path / "policies.yaml").write_text("\n---\n".join(map(json.dumps, policies)))
    violations = 0
    for begin in range(0, OBJECTS, TOGETHER):
        names = [f"o{number}" for number in range(begin, min(begin + TOGETHER, OBJECTS))]
        objects = [strange(chance.choice(samples), name, chance) for name in names]
        (tmp_path / "objects.yaml").write_text("\n---\n".join(map(json.dumps, objects)))
        arguments = [
            *("test", f"--enable-k8s-native-validation={cel}", "--output=json"),
            *("--filename=policies.yaml", "--filename=objects.yaml"),
        ]
        theirs = subprocess.run(
            [gator, *arguments],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE_SECONDS,
        )
        ours = waddle(*arguments, cwd=tmp_path)
        assert (theirs.stderr, theirs.returncode) == ("", 1)
        assert (unexpected(ours.stderr), ours.returncode) == ([], 1)
        expected, found = (
            violations_in(theirs.stdout, set(names)),
            violations_in(ours.stdout, set(names)),
        )
        assert list((expected - found).items())[:SHOWN] == [], "what gator alone says"
        assert list((found - expected).items())[:SHOWN] == [], "what waddle alone says"
        violations += expected.total()
    assert violations > 5 * OBJECTS, "most objects violate several constraints"
