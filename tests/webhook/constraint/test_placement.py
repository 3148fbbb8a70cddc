"""The Namespace named default is matched at every door, and shown to no policy that has not got it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.policies import constraint, template
from tests.webhook.cli.in_process import waddle
from webhook.constraint.placement import DEFAULT, namespace_for
from webhook.library import Policies

if TYPE_CHECKING:
    from pathlib import Path

SHOWS = 'package p\nviolation[{"msg": msg}] { msg := json.marshal(input.review.namespaceObject) }'
IN_DEFAULT = {"validations": [{"expression": "namespaceObject.metadata.name == 'default'"}]}
NOT_KNOWN = (
    "expression 'namespaceObject.metadata.name == 'default'' resulted in error: "
    "no such key: metadata"
)
UNLABELLED = {"matchExpressions": [{"key": "team", "operator": "DoesNotExist"}]}


def pod(namespace: str = "default") -> dict[str, Any]:
    metadata = {"name": "web", "namespace": namespace}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata}


def policies(**match: Any) -> list[dict[str, Any]]:
    return [
        template("Shows", SHOWS),
        template("InDefault", cel=IN_DEFAULT),
        constraint("Shows", "c", kinds=["Pod"], match=match),
        constraint("InDefault", "c", kinds=["Pod"], match=match),
    ]


def found(folder: Path, door: str, *documents: dict[str, Any]) -> str:
    """The output of a door about the Pod and these documents."""
    listed = [*documents, pod()]
    if door == "library":
        loaded = Policies.load(values=documents)
        return "\n".join(violation.message for violation in loaded.review(pod()))
    files = [folder / f"{number}.json" for number in range(len(listed))]
    for file, document in zip(files, listed, strict=True):
        file.write_text(json.dumps(document))
    return waddle(door, "-f", folder).stdout


@pytest.mark.parametrize("door", ["test", "check", "library"])
def test_policies_do_not_see_a_namespace_that_nobody_gave(tmp_path: Path, door: str) -> None:
    output = found(tmp_path, door, *policies())
    assert "{}" in output
    assert NOT_KNOWN in output


@pytest.mark.parametrize("door", ["test", "check", "library"])
def test_policies_see_the_given_namespace(tmp_path: Path, door: str) -> None:
    output = found(tmp_path, door, *policies(), DEFAULT)
    assert '"metadata":{"name":"default"}' in output
    assert NOT_KNOWN not in output


@pytest.mark.parametrize("door", ["test", "check", "library"])
def test_selectors_match_the_default_namespace_as_one_without_labels(
    tmp_path: Path, door: str
) -> None:
    output = found(tmp_path, door, *policies(namespaceSelector=UNLABELLED))
    assert "missing Namespace" not in output
    assert NOT_KNOWN in output


def test_another_namespace_is_not_known() -> None:
    assert namespace_for(pod("shop"), {}) is None
    assert namespace_for(pod(), {}) is DEFAULT
