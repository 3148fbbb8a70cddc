"""Rules that Kyverno writes for pod controllers from a policy about Pods."""

import pytest

from webhook.kyverno.autogen import autogen_warnings, generated_specs
from webhook.kyverno.kinds import InvalidPolicy

PODS = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}


def spec(expression: str = "true", **more: object) -> dict:
    return {
        "matchConstraints": {"resourceRules": [PODS]},
        "validations": [{"expression": expression}],
        **more,
    }


@pytest.mark.parametrize(
    ("written", "of_deployments"),
    [
        ("object.spec.hostNetwork", "object.spec.template.spec.hostNetwork"),
        ("oldObject.spec.x", "oldObject.spec.template.spec.x"),
        ("object.metadata.labels", "object.spec.template.metadata.labels"),
        ("object.metadata.name", "object.spec.template.metadata.name"),
        ("object.metadata.namespace != ''", "object.metadata.namespace != ''"),
        ("object.metadata.namespaces", "object.spec.template.metadata.namespaces"),
        ("variables.object", "variables.object"),
        ("object.?spec.x", "object.?spec.x"),
    ],
)
def test_a_path_of_a_pod_becomes_that_of_the_template(written: str, of_deployments: str) -> None:
    first, cron = generated_specs(spec(written))
    assert first["validations"] == [{"expression": of_deployments}]
    of_cron = of_deployments.replace("spec.template", "spec.jobTemplate.spec.template")
    assert cron["validations"] == [{"expression": of_cron}]


def test_all_controllers_are_matched_by_the_operations_of_the_policy() -> None:
    first, cron = generated_specs(spec())
    assert first["matchConstraints"]["resourceRules"] == [
        {
            "apiGroups": ["apps"],
            "apiVersions": ["v1"],
            "resources": ["daemonsets", "deployments", "replicasets", "statefulsets"],
            "operations": ["CREATE"],
        },
        {
            "apiGroups": ["batch"],
            "apiVersions": ["v1"],
            "resources": ["jobs"],
            "operations": ["CREATE"],
        },
    ]
    assert cron["matchConstraints"]["resourceRules"][0]["resources"] == ["cronjobs"]


def test_who_names_controllers_gets_those_alone() -> None:
    chosen = spec(autogen={"podControllers": {"controllers": ["cronjobs"]}})
    [only] = generated_specs(chosen)
    assert only["matchConstraints"]["resourceRules"][0]["resources"] == ["cronjobs"]
    assert generated_specs(spec(autogen={"podControllers": {"controllers": []}})) == []


def test_a_selector_of_namespaces_is_carried_over() -> None:
    selector = {"matchLabels": {"a": "b"}}
    matched = {"resourceRules": [PODS], "namespaceSelector": selector, "objectSelector": {}}
    for generated in generated_specs(spec() | {"matchConstraints": matched}):
        assert generated["matchConstraints"]["namespaceSelector"] == selector


@pytest.mark.parametrize(
    "matched",
    [
        {},
        {"resourceRules": []},
        {"resourceRules": [PODS, PODS]},
        {"resourceRules": [PODS | {"resources": ["pods", "services"]}]},
        {"resourceRules": [PODS | {"resourceNames": ["one"]}]},
        {"resourceRules": [PODS], "objectSelector": {"matchLabels": {"a": "b"}}},
        {"resourceRules": [PODS], "excludeResourceRules": [PODS]},
    ],
)
def test_a_policy_that_is_not_about_pods_alone_has_none(matched: dict) -> None:
    found = spec() | {"matchConstraints": matched}
    assert generated_specs(found) == []
    assert autogen_warnings(found) == ()
    [warning] = autogen_warnings(found | naming(["deployments"]))
    assert "nothing is generated: that needs one rule for pods" in warning


def naming(controllers: object) -> dict:
    return {"autogen": {"podControllers": {"controllers": controllers}}}


def test_a_controller_that_kyverno_generates_nothing_for_is_warned_of() -> None:
    named = ["deployments", "replicationcontrollers", "deploymints"]
    warnings = autogen_warnings(spec() | naming(named))
    assert [warning.partition(" for ")[2].partition(":")[0] for warning in warnings] == [
        '"replicationcontrollers"',
        '"deploymints"',
    ]
    assert "name some of daemonsets, deployments, " in warnings[0]
    assert autogen_warnings(spec() | naming([])) == ()


@pytest.mark.parametrize("controllers", ["deployments", [1], {"a": 1}])
def test_controllers_that_are_no_list_of_names_are_refused(controllers: object) -> None:
    with pytest.raises(InvalidPolicy, match="is not a list of strings"):
        autogen_warnings(spec() | naming(controllers))
