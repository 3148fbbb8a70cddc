"""What must not leave, and what is not worth a record."""

import copy
import random
from typing import Any

import pytest

from webhook.decisions.masking import LAST_APPLIED, MASK, Masking, parse_path
from webhook.decisions.rules import Rule, Rules

SECRET = {
    "kind": "Secret",
    "metadata": {"name": "s", "annotations": {LAST_APPLIED: '{"data":{}}', "a": "b"}},
    "data": {"password": "aHVudGVyMg=="},
    "stringData": {"token": "hunter2"},
}


@pytest.mark.parametrize("name", ["object", "oldObject"])
def test_a_secret_s_data_never_leaves(name: str) -> None:
    """Neither its data, nor the copy that kubectl keeps in an annotation."""
    original = copy.deepcopy(SECRET)
    record: dict[str, Any] = {name: original}
    Masking().apply(record)
    assert record[name]["data"] == {"password": MASK}
    assert record[name]["stringData"] == {"token": MASK}
    assert record[name]["metadata"]["annotations"] == {LAST_APPLIED: MASK, "a": "b"}
    assert record["masked"] == [
        f"{name}.data.*",
        f"{name}.stringData.*",
        f"{name}.metadata.annotations.{LAST_APPLIED}",
    ]
    assert original == SECRET, "the request's own object must not change"


def test_configured_paths_are_masked_in_the_object_before_and_after() -> None:
    pod = {"spec": {"containers": [{"env": [{"name": "A", "value": "x"}]}, {"name": "b"}]}}
    record: dict[str, Any] = {"object": pod, "oldObject": copy.deepcopy(pod), "results": []}
    Masking((parse_path("object.spec.containers[*].env[*].value"),)).apply(record)
    for name in ("object", "oldObject"):
        assert record[name]["spec"]["containers"][0]["env"] == [{"name": "A", "value": MASK}]
    assert pod["spec"]["containers"][0]["env"] == [{"name": "A", "value": "x"}]


def test_details_of_violations_can_be_masked_too() -> None:
    record: dict[str, Any] = {"results": [{"details": {"image": "secret/image"}}, {}]}
    Masking((parse_path("results[*].details"),)).apply(record)
    assert record["results"] == [{"details": MASK}, {}]


def test_a_path_that_leads_nowhere_masks_nothing() -> None:
    record: dict[str, Any] = {"object": {"a": [1], "b": "text"}, "verdict": "deny"}
    paths = ("object.a.b", "object.c", "object.b[*]", "nothing")
    Masking(tuple(map(parse_path, paths))).apply(record)
    assert record == {"object": {"a": [1], "b": "text"}, "verdict": "deny"}


@pytest.mark.parametrize(
    ("text", "steps"),
    [
        ("a.b", ("a", "b")),
        ('object.metadata.annotations["a.b/c"]', ("object", "metadata", "annotations", "a.b/c")),
        ("a[*].b", ("a", "*", "b")),
        ('["x\\"y"]', ('x"y',)),
    ],
)
def test_paths_are_read(text: str, steps: tuple[str, ...]) -> None:
    assert parse_path(text) == steps


@pytest.mark.parametrize("text", ["", "a..b", "a[0", "a[x]", "["])
def test_what_is_no_path_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="path"):
        parse_path(text)


def record(**fields: str) -> dict[str, str]:
    return {
        "verdict": "allow",
        "resourceNamespace": "kube-system",
        "resourceKind": "Lease",
        "requestUsername": "system:node:a",
        **fields,
    }


@pytest.mark.parametrize(
    ("rule", "fields", "dropped"),
    [
        (Rule(), {}, True),
        (Rule(verdicts=frozenset({"allow"})), {}, True),
        (Rule(verdicts=frozenset({"allow"})), {"verdict": "deny"}, False),
        (Rule(namespaces=("kube-*",)), {}, True),
        (Rule(namespaces=("kube-*",)), {"resourceNamespace": "web"}, False),
        (Rule(users=("*:node:*",)), {}, True),
        (Rule(users=("*admin",)), {}, False),
        (Rule(kinds=("Pod", "Lease")), {}, True),
        (Rule(kinds=("Leas",)), {}, False),
        (Rule(kinds=("Lease",), namespaces=("web",)), {}, False),
        (Rule(keep=1.0), {}, False),
    ],
)
def test_a_rule_drops_what_matches_all_its_conditions(
    rule: Rule, fields: dict[str, str], dropped: bool
) -> None:
    assert Rules((rule,)).drop_reason(record(**fields)) == ("rule" if dropped else "")


def test_the_first_rule_that_matches_decides() -> None:
    rules = Rules((Rule(kinds=("Lease",), keep=1.0), Rule()))
    assert rules.drop_reason(record()) == ""
    assert rules.drop_reason(record(resourceKind="Pod")) == "rule"


def test_sampling_keeps_about_the_share_it_should() -> None:
    rules = Rules((Rule(keep=0.25),), random.Random(7))
    reasons = [rules.drop_reason(record()) for _ in range(4000)]
    assert set(reasons) == {"", "sampled"}
    assert 900 < reasons.count("") < 1100
