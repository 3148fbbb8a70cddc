"""``waddle check --reads``: what policies depend on, as text and as JSON, when it is asked for."""

import json
from pathlib import Path

import yaml

from tests.conformance.gatekeeper import waddle
from tests.policies import constraint, template

REGO = """package labels

violation[{"msg": "m"}] {
  wanted := input.parameters.labels[_]
  not input.review.object.metadata.labels[wanted]
  time.now_ns() > 0
}"""


def policies(folder: Path) -> Path:
    schema = {
        "type": "object",
        "properties": {"labels": {"type": "array", "items": {"type": "string"}}},
    }
    file = folder / "policies.yaml"
    documents = [
        template("Labels", REGO, schema=schema),
        constraint("Labels", "owner", kinds=["Pod"], parameters={"labels": ["owner"]}),
    ]
    file.write_text(yaml.safe_dump_all(documents))
    return file


def test_it_tells_what_each_policy_reads(tmp_path: Path) -> None:
    finished = waddle("check", "-f", policies(tmp_path), "--reads")
    assert finished.returncode == 0
    assert finished.stdout.splitlines()[1:] == [
        "",
        "What policies read:",
        "  ConstraintTemplate/labels",
        "    parameters.labels[*]",
        "    review.object.metadata.labels[*]",
        "    time.now_ns, which has an effect or may answer otherwise",
        "  Labels/owner",
        "    review.object.metadata.labels.owner",
        "    time.now_ns, which has an effect or may answer otherwise",
    ]


def test_it_tells_programs(tmp_path: Path) -> None:
    finished = waddle("check", "-f", policies(tmp_path), "--reads", "-o", "json")
    assert json.loads(finished.stdout)["reads"]["Labels/owner"] == {
        "paths": ["review.object.metadata.labels.owner"],
        "deterministic": False,
        "changing": ["time.now_ns"],
        "providers": False,
    }


def test_it_tells_nothing_unasked(tmp_path: Path) -> None:
    file = policies(tmp_path)
    assert "read" not in waddle("check", "-f", file).stdout
    assert "reads" not in json.loads(waddle("check", "-f", file, "-o", "json").stdout)
