"""``waddle mutate``, ``waddle expand``, and ``waddle test`` with mutators among the files."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.behaviour.serving import REQUIRED_LABELS, constraint
from tests.policies import expansion_template
from tests.webhook.cli.in_process import waddle
from tests.webhook.mutation.documents import assign, label, pod
from webhook.cli.extensions import run as extension_run
from webhook.cli.sources import CannotTest
from webhook.constraint.snapshot import Snapshot
from webhook.mutation.registry import Mutators
from webhook.review.policy_set import PolicySet

EXPANSION = expansion_template("deployments")
DEPLOYMENT = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "web"},
    "spec": {"template": {"spec": {"containers": []}}},
}
ASKS = assign("asks", "spec.owner", "")
ASKS["spec"]["applyTo"] = [{"groups": ["apps"], "versions": ["v1"], "kinds": ["Deployment"]}]
ASKS["spec"]["parameters"] = {
    "assign": {"externalData": {"provider": "owners", "failurePolicy": "Ignore"}}
}
OWNER = label("owner", "owner", "nobody")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder that a test puts documents into."""
    return tmp_path


def put(folder: Path, *documents: dict[str, Any] | str) -> Path:
    """The documents in one file."""
    texts = [item if isinstance(item, str) else json.dumps(item) for item in documents]
    file = folder / "all.yaml"
    file.write_text("\n---\n".join(texts))
    return file


def test_resources_are_printed_as_mutators_leave_them(folder: Path) -> None:
    shared = assign("env", "spec.containers[name: *].env", {"a": 1})
    run = waddle("mutate", "-f", put(folder, OWNER, shared, pod("a", "b")))
    assert run.returncode == 0, run.stderr
    (found,) = yaml.safe_load_all(run.stdout)
    assert found["metadata"]["labels"] == {"owner": "nobody"}
    assert [item["env"] for item in found["spec"]["containers"]] == [{"a": 1}, {"a": 1}]
    assert "&id" not in run.stdout


@pytest.mark.parametrize(
    ("process", "labelled"), [("mutation-webhook", False), ("*", False), ("webhook", True)]
)
def test_a_namespace_that_config_excludes_from_mutation_is_left_as_it_is(
    process: str, labelled: bool, folder: Path
) -> None:
    """The webhook does not mutate there, and nor does ``waddle test``."""
    config = {
        "apiVersion": "config.gatekeeper.sh/v1alpha1",
        "kind": "Config",
        "metadata": {"name": "config", "namespace": "gatekeeper-system"},
        "spec": {"match": [{"excludedNamespaces": ["legacy-*"], "processes": [process]}]},
    }
    excluded = pod(name="b")
    excluded["metadata"]["namespace"] = "legacy-a"
    run = waddle("mutate", "-f", put(folder, OWNER, config, excluded))
    assert run.returncode == 0, run.stderr
    assert ("nobody" in run.stdout) is labelled


def test_a_config_that_excludes_nothing_by_a_misspelt_process_is_an_error(folder: Path) -> None:
    """Its namespaces were mutated, and nothing was said."""
    config = {
        "apiVersion": "config.gatekeeper.sh/v1alpha1",
        "kind": "Config",
        "metadata": {"name": "config", "namespace": "gatekeeper-system"},
        "spec": {"match": [{"excludedNamespaces": ["shop"], "processes": ["mutation"]}]},
    }
    put(folder, config)
    assert 'unknown process "mutation"' in refused("mutate", folder)


def test_only_what_changes_is_printed_where_that_is_asked_for(folder: Path) -> None:
    labelled = pod(name="b", labels={"owner": "me"})
    run = waddle("mutate", "-o", "patch", "-f", put(folder, OWNER, pod(), labelled))
    assert json.loads(run.stdout) == [
        {
            "resource": "Pod shop/p",
            "mutators": "AssignMetadata//owner:0",
            "patch": [{"op": "add", "path": "/metadata/labels", "value": {"owner": "nobody"}}],
        }
    ]


def test_what_cannot_be_mutated_is_named(folder: Path) -> None:
    path = put(folder, assign("a", "spec.containers.x", 1), pod("a"), DEPLOYMENT)
    run = waddle("mutate", "-f", path)
    assert run.returncode == 2
    assert not run.stdout
    assert f"{path}:3: mutating Pod shop/p: mutation for mutator Assign" in run.stderr
    conflict = [assign("x", "spec.l[name: a].b", 1), assign("y", "spec.l.b", 1)]
    run = waddle("mutate", "-f", put(folder, *conflict, pod("a")))
    assert run.returncode == 2
    assert "conflicting schemas: [Assign.mutations.gatekeeper.sh /x" in run.stderr


def test_what_resources_would_make_is_printed_mutated(folder: Path) -> None:
    run = waddle("expand", "-f", put(folder, EXPANSION, OWNER, DEPLOYMENT, pod()))
    assert run.returncode == 0, run.stderr
    (found,) = yaml.safe_load_all(run.stdout)
    assert found["kind"] == "Pod"
    assert found["metadata"]["name"] == "web-pod"
    assert found["metadata"]["labels"] == {"owner": "nobody"}
    broken = {**DEPLOYMENT, "spec": {}}
    path = put(folder, EXPANSION, broken)
    run = waddle("expand", "-f", path)
    assert run.returncode == 2
    assert f'{path}:3: expanding Deployment web: could not find source field "spec' in run.stderr


def refused(command: str, *arguments: str | Path) -> str:
    """Returns standard error of a command that prints nothing, since a part would look whole."""
    run = waddle(command, *arguments)
    assert (run.returncode, run.stdout) == (2, "")
    assert "nothing is printed, because the output would be incomplete" in run.stderr
    return run.stderr


@pytest.mark.parametrize("command", ["mutate", "expand"])
def test_nothing_is_printed_when_something_cannot_be_read_or_processed(
    folder: Path, command: str
) -> None:
    broken = folder / "broken.yaml"
    broken.write_text("a: [")
    odd = folder / "odd.yaml"
    odd.write_text(json.dumps({**DEPLOYMENT, "spec": {"template": 5}}))
    wrong = label("wrong", "wrong", "x", match={"kinds": [{"kinds": ["Deployment"]}]})
    path = put(folder, OWNER, EXPANSION, wrong, DEPLOYMENT)
    other = folder / "other.yaml"
    other.write_text("b: ]")
    stderr = refused(command, "-f", broken, "-f", other, "-f", odd, "-f", path)
    assert f"reading: {broken}: " in stderr
    assert f"reading: {other}: " in stderr
    if command == "expand":
        assert f"{odd}:1: expanding Deployment web: " in stderr
    run = waddle(command, "-f", broken)
    assert (run.returncode, run.stdout) == (2, "")
    assert waddle(command, "-f", path).returncode == 0  # without the broken files


@pytest.mark.parametrize("command", ["mutate", "expand"])
@pytest.mark.parametrize(
    ("policies", "message"),
    [
        ([assign("x", "spec..x", 1)], "Assign x: "),
        ([{**OWNER, "kind": "AssignMetaData"}], "AssignMetaData is not a kind of mutators"),
        ([assign("x", "spec.l[name: a].b", 1), assign("y", "spec.l.b", 1)], "conflicting schemas"),
        ([ASKS], "no provider owners answers here: give its answers with --provider owners=FILE"),
    ],
)
def test_nothing_is_printed_when_a_policy_cannot_be_used(
    folder: Path, command: str, policies: list[dict[str, Any]], message: str
) -> None:
    broken = folder / "broken.yaml"
    broken.write_text("a: [")
    stderr = refused(command, "-f", broken, "-f", put(folder, *policies, EXPANSION, DEPLOYMENT))
    assert message in stderr
    assert f"reading: {broken}: " in stderr


def test_a_file_that_expand_would_write_stays_as_it_was(folder: Path) -> None:
    written = folder / "written.txt"
    written.write_text("before")
    path = put(folder, EXPANSION, {**DEPLOYMENT, "spec": {}})
    refused("expand", "--outputfile", written, "-f", path)
    assert written.read_text() == "before"


def test_an_older_rule_of_kyverno_that_mutates_is_not_passed_over(folder: Path) -> None:
    rule = {"name": "r", "mutate": {"patchStrategicMerge": {"metadata": {"labels": {"a": "b"}}}}}
    old = {"apiVersion": "kyverno.io/v1", "kind": "ClusterPolicy", "metadata": {"name": "label"}}
    path = put(folder, {**old, "spec": {"rules": [rule]}}, pod())
    stderr = refused("mutate", "-f", path)
    assert f"{path}:1: ClusterPolicy label: not evaluated: waddle migrate kyverno" in stderr
    del rule["mutate"]
    path = put(folder, {**old, "spec": {"rules": [rule]}}, pod())
    assert waddle("mutate", "-f", path).returncode == 0


def test_a_mutator_that_cannot_be_used_is_named_with_its_file_and_line(folder: Path) -> None:
    path = put(folder, assign("x", "spec..x", "y"), pod())

    run = waddle("check", "-f", path)

    assert run.returncode == 1
    assert f"error: {path}:1: Assign/" in run.stdout + run.stderr


def test_what_is_reviewed_is_what_would_be_stored(folder: Path) -> None:
    policies = [REQUIRED_LABELS, constraint("needs-owner", "owner")]
    assert waddle("test", "-f", put(folder, *policies, pod())).returncode == 1
    assert waddle("test", "-f", put(folder, *policies, OWNER, pod())).returncode == 0
    generated = label("owner", "owner", "nobody", match={"source": "Generated"})
    run = waddle("test", "-f", put(folder, *policies, EXPANSION, DEPLOYMENT))
    assert run.returncode == 1
    run = waddle("test", "-f", put(folder, *policies, EXPANSION, generated, DEPLOYMENT))
    assert run.returncode == 0, run.stdout


def test_what_was_changed_before_the_review_is_shown(folder: Path) -> None:
    policies = [REQUIRED_LABELS, constraint("needs-owner", "owner")]
    run = waddle("test", "-f", put(folder, *policies, OWNER, pod()))
    assert "mutated  by AssignMetadata//owner:0" in run.stdout
    assert 'add /metadata/labels {"owner":"nobody"}' in run.stdout
    assert waddle("test", "-f", put(folder, *policies, pod())).stdout.count("mutated") == 0


@pytest.mark.parametrize("command", ["mutate", "test", "expand"])
def test_a_mutator_of_a_kind_that_nobody_knows_is_an_error(folder: Path, command: str) -> None:
    policies = [REQUIRED_LABELS, constraint("needs-owner", "owner")]
    misspelt = {**OWNER, "kind": "AssignMetaData"}
    run = waddle(command, "-f", put(folder, *policies, misspelt, pod()))
    assert run.returncode not in (0, None)
    assert "AssignMetaData is not a kind of mutators" in run.stderr
    # A check judges by what can be used; what applies mutators would apply too few.
    assert ("Pod" in run.stdout) is (command == "test")


@pytest.mark.parametrize("command", ["test", "expand"])
def test_an_expansion_of_a_kind_that_nobody_knows_is_an_error(folder: Path, command: str) -> None:
    policies = [REQUIRED_LABELS, constraint("needs-owner", "owner")]
    misspelt = {**EXPANSION, "kind": "ExpansionTemplates"}
    run = waddle(command, "-f", put(folder, *policies, misspelt, DEPLOYMENT))
    assert run.returncode not in (0, None)
    assert "ExpansionTemplates is not a kind of expansion" in run.stderr


def test_a_review_without_what_could_not_be_read_says_so(folder: Path) -> None:
    broken = folder / "broken.yaml"
    broken.write_text("apiVersion: mutations.gatekeeper.sh/v1\nkind: AssignMetadata\nspec: {")
    policies = [REQUIRED_LABELS, constraint("needs-owner", "owner")]
    labelled = pod(labels={"owner": "me"})
    run = waddle("test", "-f", put(folder, *policies, labelled), "-f", broken)
    assert run.returncode == 1
    assert "reading: " in run.stderr
    assert (
        "a file could not be read. Its mutators or policies are missing in the results"
        in run.stderr
    )


def test_mutating_an_object_ends_when_its_time_does() -> None:
    mutators = Mutators()
    # One by one: whether the first matches depends on what the second assigns.
    selected = {"labelSelector": {"matchLabels": {"owner": "nobody"}}}
    mutators.add(label("first", "first", "yes", match=selected))
    mutators.add(OWNER)
    extending = extension_run.Extending(
        PolicySet(Snapshot(targets={}), mutators.snapshot), seconds=-1
    )
    with pytest.raises(
        CannotTest, match="mutating Pod shop/p: the time limit of mutating this object"
    ):
        extending.mutate(pod())
    mutated = (
        extension_run.Extending(PolicySet(Snapshot(targets={}), mutators.snapshot))
        .mutate(pod())
        .after
    )
    assert mutated["metadata"]["labels"] == {"owner": "nobody", "first": "yes"}
