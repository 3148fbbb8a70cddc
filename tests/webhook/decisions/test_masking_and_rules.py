"""Masked fields, and rules that leave records out."""

import copy
import json
import random
import re
from typing import Any

import pytest

from webhook.api.names import LAST_APPLIED
from webhook.decisions.configuration import InvalidConfiguration, parse
from webhook.decisions.exporter.hidden_values import MASK
from webhook.decisions.exporter.masking import Masking, parse_path
from webhook.decisions.exporter.settings import ExporterSettings, read_settings
from webhook.decisions.rules import RecordRule, RecordRules, RecordSelection

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
    assert record[name]["metadata"]["annotations"] == {LAST_APPLIED: MASK, "a": MASK}
    assert record["masked"] == [
        f"{name}.data.*",
        f"{name}.stringData.*",
        f"{name}.metadata.annotations.*",
    ]
    assert original == SECRET, "the request's own object must not change"


@pytest.mark.parametrize("field", ["data", "stringData"])
@pytest.mark.parametrize("held", ["hunter2", ["hunter2"], 7])
def test_a_secret_s_data_of_another_shape_never_leaves(field: str, held: Any) -> None:
    """The API server refuses it, after admission has seen it."""
    record: dict[str, Any] = {"object": {"kind": "Secret", field: held, "metadata": {}}}
    Masking().apply(record)
    assert record["object"][field] == MASK
    assert "hunter2" not in str(record)


@pytest.mark.parametrize(
    "annotation", [LAST_APPLIED, "objectset.rio.cattle.io/applied", "kapp.k14s.io/original"]
)
def test_what_is_masked_in_an_object_is_masked_in_the_copies_that_tools_keep(
    annotation: str,
) -> None:
    environment = [{"name": "A", "value": "hunter2"}]
    metadata = {"annotations": {annotation: '{"value":"hunter2"}', "team": "a"}}
    record: dict[str, Any] = {"object": {"metadata": metadata, "spec": {"env": environment}}}
    Masking((parse_path("object.spec.env[*].value"),)).apply(record)
    assert "hunter2" not in str(record)
    assert record["object"]["metadata"]["annotations"]["team"] == "a"
    untouched: dict[str, Any] = {"object": {"metadata": metadata}}
    Masking((parse_path("object.spec.env[*].value"),)).apply(untouched)
    assert untouched == {"object": {"metadata": metadata}}


def test_paths_can_be_those_of_some_kinds() -> None:
    masking = Masking(of_kinds=((("ConfigMap", "Token"), (parse_path("object.data[*]"),)),))
    for kind, masked in (("ConfigMap", True), ("Token", True), ("Recipe", False)):
        record: dict[str, Any] = {"resourceKind": kind, "object": {"data": {"a": "b"}}}
        masking.apply(record)
        assert (record["object"]["data"]["a"] == MASK) is masked


@pytest.mark.parametrize(
    ("of_kinds", "masked"),
    [
        ([], ""),
        ([{"kinds": ["ConfigMap"], "paths": ["object.data[*]"]}], "ConfigMap"),
        ([{"kinds": ["ConfigMap", "Token"], "paths": ["object.data.a"]}], "ConfigMap Token"),
        ([{"paths": ["object.data.a"]}], "ConfigMap Token Recipe"),
        (
            [
                {"kinds": ["Token"], "paths": ["object.data[*]"]},
                {"kinds": ["Recipe"], "paths": ["object.spec.x", 'object.data["a"]']},
            ],
            "Token Recipe",
        ),
    ],
    ids=["none", "one kind", "several", "all kinds", "several parts"],
)
def test_the_configuration_says_what_is_masked_of_which_kinds(
    of_kinds: list[dict[str, Any]], masked: str
) -> None:
    settings = read({"maskKinds": of_kinds})
    for kind in ("ConfigMap", "Token", "Recipe"):
        record: dict[str, Any] = {"resourceKind": kind, "object": {"data": {"a": "b"}}}
        settings.masking.apply(record)
        assert (record["object"]["data"]["a"] == MASK) is (kind in masked.split())


@pytest.mark.parametrize(
    ("of_kinds", "place"),
    [
        ({"kinds": ["ConfigMap"]}, "maskKinds: expected a list"),
        (["ConfigMap"], "maskKinds[0]: expected a mapping"),
        ([{"kinds": "ConfigMap", "paths": ["object.data"]}], "maskKinds[0].kinds: expected a list"),
        ([{"kinds": ["ConfigMap"]}], "maskKinds[0].paths: expected a list with at least one path"),
        ([{"kinds": ["ConfigMap"], "path": ["object.data"]}], "maskKinds[0]: unknown key path"),
        (
            [{"paths": ["object.data"]}, {"kinds": ["Token"], "paths": ["object..x"]}],
            "maskKinds[1].paths: ",
        ),
    ],
)
def test_what_would_mask_nothing_is_refused_with_its_place(of_kinds: Any, place: str) -> None:
    with pytest.raises(InvalidConfiguration, match=re.escape(place)):
        read({"maskKinds": of_kinds})


def read(settings: dict[str, Any]) -> ExporterSettings:
    """Settings as the server reads them."""
    text = json.dumps({"sidecarURL": "unix:///s", **settings})
    return read_settings(parse(text.encode(), "test"))


DENIED = {
    "eventType": "decision",
    "enforcementPoint": "validation.gatekeeper.sh",
    "verdict": "deny",
    "resourceKind": "Pod",
    "resourceNamespace": "shop",
    "results": [{"enforcementAction": "scoped", "enforcementActions": ["deny"]}],
}


@pytest.mark.parametrize(
    ("selection", "takes"),
    [
        (RecordSelection(), True),
        (RecordSelection(kinds=("Pod",)), True),
        (RecordSelection(kinds=("Deploy*",)), False),
        (RecordSelection(namespaces=("sh*",)), True),
        (RecordSelection(namespaces=("kube-*",)), False),
        (RecordSelection(actions=frozenset({"deny"})), True),
        (RecordSelection(actions=frozenset({"warn", "dryrun"})), False),
        (RecordSelection(points=frozenset({"admission"})), True),
        (RecordSelection(points=frozenset({"audit"})), False),
        (RecordSelection(verdicts=frozenset({"allow"})), False),
        (RecordSelection(kinds=("Pod",), points=frozenset({"audit"})), False),
    ],
)
def test_a_sink_gets_the_decisions_that_it_selects(
    selection: RecordSelection, *, takes: bool
) -> None:
    assert selection.takes(DENIED) is takes


def test_a_sink_of_audits_gets_their_begin_and_end_and_one_of_admissions_does_not() -> None:
    """Selected kinds do not matter: a report is complete only with these events."""
    audits = RecordSelection(kinds=("Pod",), points=frozenset({"audit"}))
    admissions = RecordSelection(points=frozenset({"admission"}))
    for event in ("audit_started", "audit_finished"):
        assert audits.takes({"eventType": event})
        assert not admissions.takes({"eventType": event})
        assert RecordSelection(kinds=("Pod",)).takes({"eventType": event})


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
        (RecordRule(), {}, True),
        (RecordRule(verdicts=frozenset({"allow"})), {}, True),
        (RecordRule(verdicts=frozenset({"allow"})), {"verdict": "deny"}, False),
        (RecordRule(namespaces=("kube-*",)), {}, True),
        (RecordRule(namespaces=("kube-*",)), {"resourceNamespace": "web"}, False),
        (RecordRule(users=("*:node:*",)), {}, True),
        (RecordRule(users=("*admin",)), {}, False),
        (RecordRule(kinds=("Pod", "Lease")), {}, True),
        (RecordRule(kinds=("Leas",)), {}, False),
        (RecordRule(kinds=("Lease",), namespaces=("web",)), {}, False),
        (RecordRule(keep=1.0), {}, False),
    ],
)
def test_a_rule_drops_what_matches_all_its_conditions(
    rule: RecordRule, fields: dict[str, str], dropped: bool
) -> None:
    assert RecordRules((rule,)).drop_reason(record(**fields)) == ("rule" if dropped else "")


def test_the_first_rule_that_matches_decides() -> None:
    rules = RecordRules((RecordRule(kinds=("Lease",), keep=1.0), RecordRule()))
    assert rules.drop_reason(record()) == ""
    assert rules.drop_reason(record(resourceKind="Pod")) == "rule"


def test_sampling_keeps_about_the_share_it_should() -> None:
    rules = RecordRules((RecordRule(keep=0.25),), random.Random(7))
    reasons = [rules.drop_reason(record()) for _ in range(4000)]
    assert set(reasons) == {"", "sampled"}
    assert 900 < reasons.count("") < 1100
