"""``waddle check`` on mutators: what is wrong with them, and what they would change."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.webhook.cli.in_process import waddle
from tests.webhook.mutation.documents import assign, image, label, pod

PRIVILEGED = """
package denied
violation[{"msg": "no team"}] { not input.review.object.metadata.labels.team }
"""
TEMPLATE = {
    "apiVersion": "templates.gatekeeper.sh/v1",
    "kind": "ConstraintTemplate",
    "metadata": {"name": "denied"},
    "spec": {
        "crd": {"spec": {"names": {"kind": "Denied"}}},
        "targets": [{"target": "admission.k8s.gatekeeper.sh", "rego": PRIVILEGED}],
    },
}
CONSTRAINT = {
    "apiVersion": "constraints.gatekeeper.sh/v1beta1",
    "kind": "Denied",
    "metadata": {"name": "teams"},
    "spec": {"match": {"kinds": [{"apiGroups": [""], "kinds": ["Pod"]}]}},
}


def checked(folder: Path, *documents: dict[str, Any]) -> tuple[int, dict[str, Any]]:
    """The exit code, and what is said as JSON."""
    file = folder / "all.yaml"
    file.write_text("\n---\n".join(map(json.dumps, documents)))
    found = waddle("check", "-f", str(file), "-o", "json")
    return found.returncode, json.loads(found.stdout)


def test_objects_are_mutated_first_and_the_difference_is_shown(tmp_path: Path) -> None:
    code, found = checked(
        tmp_path, TEMPLATE, CONSTRAINT, label("team", "team", "shop"), pod("a", labels={"x": "y"})
    )
    assert code == 0
    assert found["mutators"] == 1
    assert found["mutated"] == [
        {
            "object": "Pod shop/p",
            "mutators": "AssignMetadata//team:0",
            "patch": [{"op": "add", "path": "/metadata/labels/team", "value": "shop"}],
        }
    ]
    [constraint] = found["manifests"]["constraints"]
    assert constraint["violationsAfter"] == 0
    shown = waddle("check", "-f", str(tmp_path / "all.yaml")).stdout
    assert "2 policies and 1 AssignMetadata can be used" in shown
    assert '    add /metadata/labels/team "shop"' in shown


def test_mutators_alone_can_be_checked(tmp_path: Path) -> None:
    code, found = checked(tmp_path, assign("a", "spec.activeDeadlineSeconds", 1))
    assert (code, found["problems"], found["mutators"]) == (0, [], 1)
    shown = waddle("check", "-f", str(tmp_path / "all.yaml")).stdout
    assert shown.strip() == "1 Assign can be used"


@pytest.mark.parametrize(
    ("documents", "expected"),
    [
        ([assign("a", "spec..x", 1)], {"a": "invalid location format"}),
        (
            [image("b", "spec.x", assignTag=":v1"), assign("c", "spec.x.y", 1)],
            {"b": "conflicting schemas", "c": "conflicting schemas"},
        ),
        (
            [
                {
                    "apiVersion": "expansion.gatekeeper.sh/v1alpha1",
                    "kind": "ExpansionTemplate",
                    "metadata": {"name": "e"},
                    "spec": {"templateSource": "spec.template"},
                }
            ],
            {"e": "ExpansionTemplate"},
        ),
        (
            [assign("f", "spec.x", 1) | {"kind": "Asign"}],
            {"f": "Kind=Asign is not a kind of mutators"},
        ),
    ],
    ids=[
        "a location that is none",
        "a conflict",
        "an ExpansionTemplate without a kind",
        "a kind that there is not",
    ],
)
def test_what_cannot_be_used_is_a_no(
    tmp_path: Path, documents: list[dict[str, Any]], expected: dict[str, str]
) -> None:
    code, found = checked(tmp_path, *documents)
    assert code == 1
    errors = [item for item in found["problems"] if item["severity"] == "error"]
    problems = {item["name"]: item["message"] for item in errors}
    assert problems.keys() == expected.keys()
    for name, text in expected.items():
        assert text in problems[name]


def test_a_name_that_a_pod_does_not_have_yet_is_a_warning(tmp_path: Path) -> None:
    named = assign("n", "spec.containers[name: *].image", 1)
    named["spec"]["parameters"]["assign"] = {"fromMetadata": {"field": "name"}}
    code, found = checked(tmp_path, named)
    assert code == 0
    assert [item["code"] for item in found["problems"]] == ["empty-name"]


def test_a_preview_that_would_conflict_is_a_warning_that_names_the_other(tmp_path: Path) -> None:
    previewed = image("b", "spec.x", assignTag=":v1")
    previewed["metadata"]["annotations"] = {"waddle.dev/mode": "preview"}
    code, found = checked(tmp_path, previewed, assign("c", "spec.x.y", 1))
    assert code == 0
    [problem] = [one for one in found["problems"] if one["code"] != "update"]
    assert problem["severity"] == "warning"
    assert "once enforced it conflicts with Assign/c" in problem["message"]


def test_an_object_that_a_mutator_cannot_be_applied_to_is_named(tmp_path: Path) -> None:
    code, found = checked(tmp_path, assign("a", "spec.containers.x", 1), pod("i"))
    assert code == 0
    [missing] = found["missing"]
    assert "Pod shop/p" in missing
    assert "mismatch between path entry" in missing


def test_a_mutator_that_an_update_of_a_pod_would_be_refused_for_is_a_warning(
    tmp_path: Path,
) -> None:
    code, found = checked(tmp_path, assign("hosts", "spec.hostname", "x"))
    assert code == 0
    [problem] = found["problems"]
    assert (problem["severity"], problem["code"]) == ("warning", "update")
    assert "it changes spec.hostname of Pods on UPDATE" in problem["message"]
    creations = [{"groups": [""], "versions": ["v1"], "kinds": ["Pod"], "operations": ["CREATE"]}]
    for harmless in (
        assign("hosts", "spec.hostname", "x", applyTo=creations),
        assign("hosts", "spec.hostname", "x", match={"source": "Generated"}),
        assign("hosts", "spec.containers[name: *].image", "x"),
    ):
        assert checked(tmp_path, harmless)[1]["problems"] == []
