"""A policy that files define twice counts by its last definition, at every door."""

from __future__ import annotations

import io
import json
import warnings
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from tests.policies import config, expansion_template
from tests.webhook.cli.in_process import waddle
from tests.webhook.constraint.policies import constraint, pod, template
from tests.webhook.policies.loading import Loader
from webhook.library import Policies, PolicyWarning
from webhook.policies.definitions import repeated
from webhook.policies.manifests import Manifest
from webhook.review.policy_set import exclusions_of

if TYPE_CHECKING:
    from pathlib import Path

PODS = {"kinds": [{"apiGroups": [""], "kinds": ["Pod"]}]}
LAST = template(rego='package p\nviolation[{"msg": "last"}] { true }')
NAME = LAST["metadata"]["name"]


def written(folder: Path, *documents: Any) -> Path:
    """A folder with a template and a constraint in a.yaml, and these documents in b.yaml."""
    policies = folder / "policies"
    policies.mkdir()
    (policies / "a.yaml").write_text(yaml.safe_dump_all([template(), constraint(match=PODS)]))
    (policies / "b.yaml").write_text(yaml.safe_dump_all(documents))
    return policies


def warning(policies: Path) -> str:
    return (
        f'Resource named "{NAME}" (from file: "{policies}/b.yaml:1") is already defined in file: '
        f'"{policies}/a.yaml:1": the one in {policies}/b.yaml:1 counts'
    )


@pytest.mark.parametrize("door", ["test", "check", "krm"])
def test_a_command_goes_by_the_last_definition(tmp_path: Path, door: str) -> None:
    policies = written(tmp_path, LAST)
    file = tmp_path / "pod.json"
    file.write_text(json.dumps(pod()))
    if door == "krm":
        listed = {"apiVersion": "config.kubernetes.io/v1", "kind": "ResourceList", "items": [pod()]}
        stdin = io.TextIOWrapper(io.BytesIO(json.dumps(listed).encode()))
        run = waddle("krm", "-f", policies, stdin=stdin)
    else:
        run = waddle(door, "-f", policies, "-f", file)

    assert "last" in run.stdout
    assert run.stderr.count(f"WARNING - {warning(policies)}\n") == 1
    if door == "check":
        assert "2 policies can be used" in run.stdout


def test_the_library_goes_by_the_last_definition(tmp_path: Path) -> None:
    policies = written(tmp_path, LAST)

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        (violation,) = Policies.load(policies).review(pod())

    assert violation.message == "last"
    assert [(one.category, str(one.message)) for one in caught] == [
        (PolicyWarning, warning(policies))
    ]


def test_a_server_goes_by_the_last_definition_and_logs_both_places_once(tmp_path: Path) -> None:
    policies = written(tmp_path, LAST)
    parts = Loader(policies)

    assert parts.loader.load() is True
    parts.loader.load()

    lines = [json.loads(line) for line in parts.lines]
    assert [line["object"] for line in lines if "object" in line] == [warning(policies)]


def test_a_mutator_or_a_config_that_counts_is_named(tmp_path: Path) -> None:
    same = [expansion_template(), expansion_template(version="v1beta1")]
    listed = [Manifest(document, "f.yaml", line) for line, document in enumerate(same, 1)]
    (line,) = repeated(listed, reviewed=True)
    assert line.endswith(": the one in f.yaml:2 counts")


def test_of_many_objects_three_are_named_and_the_others_counted() -> None:
    names = [f"pod-{number % 100}" for number in range(300)]
    listed = [Manifest(pod(name=name), "f.yaml", at) for at, name in enumerate(names, 1)]

    lines = repeated(listed, reviewed=False)

    assert len(lines) == 4
    assert lines[0].startswith("100 resources are defined more than once, 300 times together. The")
    assert lines[1].endswith(", and 1 time more: the one in f.yaml:201 counts")


def test_of_two_configs_of_one_name_the_last_excludes() -> None:
    def excluding(pattern: str, **fields: Any) -> dict[str, Any]:
        return config(match=[{"processes": ["*"], "excludedNamespaces": [pattern]}], **fields)

    other = excluding("other")
    other["metadata"]["name"] = "another"
    found = exclusions_of([excluding("first"), excluding("last"), other])

    assert [name for name in ("first", "last", "other") if found.webhook(name)] == ["last"]
