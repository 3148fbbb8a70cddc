"""Older PolicyExceptions of Kyverno become those of policies in CEL, or are named."""

from __future__ import annotations

from typing import Any

import pytest

from webhook.kyverno.exception_conversion import converted_exceptions
from webhook.kyverno.patterns import Unwritable

Json = dict[str, Any]
PODS: Json = {"any": [{"resources": {"kinds": ["Pod"]}}]}


def policy(name: str = "p", *rules: str, **metadata: str) -> Json:
    """A policy with rules about Pods; of its namespace where it has one."""
    validate = {"message": "no", "pattern": {"spec": {"=(hostNetwork)": False}}}
    return {
        "apiVersion": "kyverno.io/v1",
        "kind": "Policy" if metadata else "ClusterPolicy",
        "metadata": {"name": name, **metadata},
        "spec": {"rules": [{"name": rule, "match": PODS, "validate": validate} for rule in rules]},
    }


def exception(*excused: Json, **spec: Any) -> Json:
    return {
        "apiVersion": "kyverno.io/v2",
        "kind": "PolicyException",
        "metadata": {"name": "e", "namespace": "shop"},
        "spec": {"match": PODS, "exceptions": list(excused), **spec},
    }


def excused(name: str, *rules: str) -> Json:
    return {"policyName": name, "ruleNames": list(rules)}


def test_rules_are_named_by_the_policies_that_they_become() -> None:
    [becomes] = converted_exceptions(
        exception(excused("p", "*-a", "*b"), excused("shop/own", "*")),
        [policy("p", "host-a", "b", "c"), policy("own", "r", namespace="shop"), policy("own", "r")],
    )
    assert becomes["metadata"] == {"name": "e", "namespace": "shop"}
    assert becomes["spec"]["policyRefs"] == [
        {"kind": "ValidatingPolicy", "name": "p-host-a"},
        {"kind": "ValidatingPolicy", "name": "p-b"},
        {"kind": "NamespacedValidatingPolicy", "name": "own"},
    ]


def test_rules_of_pods_alone_and_of_controllers_have_conditions_of_their_own() -> None:
    becomes = converted_exceptions(
        exception(excused("p", "a", "autogen-cronjob-b", "*c")), [policy("p", "a", "b", "c")]
    )
    assert [
        (
            one["metadata"]["name"],
            [named["name"] for named in one["spec"]["policyRefs"]],
            one["spec"]["matchConditions"][0]["expression"],
        )
        for one in becomes
    ] == [
        ("e", ["p-a"], "request.kind.kind == 'Pod'"),
        ("e-2", ["p-b"], "request.kind.kind == 'CronJob'"),
        ("e-3", ["p-c"], '((request.kind.kind in ["Pod"]))'),
    ]


@pytest.mark.parametrize(
    ("document", "why"),
    [
        (exception(excused("p", "r"), podSecurity=[{"controlName": "Seccomp"}]), "podSecurity"),
        (exception(excused("p", "r"), match={}), "spec.match: "),
        (exception(excused("other", "r")), "other is not among the files"),
        (exception(excused("p", "none")), "it names no rule"),
        (
            exception(excused("p", "r"), match={"any": [{"clusterRoles": ["admin"]}]}),
            "roles are known to the API server alone",
        ),
        (exception(excused("p", "r"), match={"any": [{"resources": {}}]}), "includes everything"),
    ],
)
def test_what_cannot_be_converted_is_named(document: Json, why: str) -> None:
    with pytest.raises(Unwritable, match=why):
        converted_exceptions(document, [policy("p", "r")])


def test_what_has_another_effect_is_noted() -> None:
    notes: list[str] = []
    match = {"any": [{"resources": {"kinds": ["Pod"], "operations": ["CREATE"]}}]}
    document = exception(excused("p", "r"), excused("other", "r"), background=False, match=match)
    converted_exceptions(document, [policy("p", "r")], notes)
    assert [note.partition(":")[0] for note in notes] == [
        "spec.background",
        "spec.match",
        "spec.exceptions[1].policyName",
    ]
