"""Kyverno's policies for pod controllers: a controller is decided as the Pod that it makes."""

from __future__ import annotations

from typing import Any

import pytest

from webhook.kyverno.autogen import CONTROLLERS, generated_specs
from webhook.kyverno.policy import PolicyQuestion
from webhook.kyverno.validating_policy import ValidatingPolicy
from webhook.kyverno.world import World, objects_known

Json = dict[str, Any]

WORLD = World(objects_known(()), 1_800_000_000 * 10**9)
PODS = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["*"], "resources": ["pods"]}
CONTAINER = {"name": "c", "image": "nginx:1"}

TEMPLATES: dict[str, Json] = {
    "plain": {"metadata": {"labels": {"app": "x"}}, "spec": {"containers": [CONTAINER]}},
    "without a spec": {"metadata": {}},
    "a spec that is null": {"metadata": {}, "spec": None},
    "a spec that is a text": {"metadata": {}, "spec": "x"},
    "an empty spec": {"metadata": {}, "spec": {}},
    "containers that are null": {"metadata": {}, "spec": {"containers": None}},
    "containers that are a number": {"metadata": {}, "spec": {"containers": 7}},
    "a container that is null": {"metadata": {}, "spec": {"containers": [None, CONTAINER]}},
    "an image that is a number": {"metadata": {}, "spec": {"containers": [{"image": 7}]}},
    "metadata that is null": {"metadata": None, "spec": {"containers": [CONTAINER]}},
    "owners": {
        "metadata": {"ownerReferences": [{"apiVersion": "v1", "kind": "Node", "name": "n"}]},
        "spec": {"containers": [CONTAINER]},
    },
    "ephemeral containers": {
        "metadata": {"labels": {}},
        "spec": {"containers": [CONTAINER], "ephemeralContainers": [{"image": "busybox"}]},
    },
    "host network and no labels": {
        "metadata": {"labels": None},
        "spec": {"containers": [CONTAINER, CONTAINER], "hostNetwork": True},
    },
}

EXPRESSIONS = (
    "object.spec.containers.all(c, c.image.endsWith(':1'))",
    "object.spec.containers.size() == 1",
    "!object.spec.?hostNetwork.orValue(false)",
    "has(object.spec.hostNetwork) && object.spec.hostNetwork == false",
    "has(object.metadata.labels) && 'app' in object.metadata.labels",
    "!has(object.metadata.ownerReferences)",
    "object.metadata.ownerReferences.exists(o, o.kind == 'Node')",
    "!has(object.spec.ephemeralContainers)",
    "images.containers.all(i, i.startsWith('nginx')) && images.ephemeralContainers.size() == 0",
    "object.metadata.namespace == 'shop'",
    "variables.all.size() > 0",
)


def policy(expression: str) -> ValidatingPolicy:
    """A policy over Pods, with a variable and a match condition of paths that are rewritten."""
    spec = {
        "matchConstraints": {"resourceRules": [PODS]},
        "matchConditions": [{"name": "any", "expression": "object.?spec.?skip.orValue('') == ''"}],
        "variables": [{"name": "all", "expression": "object.spec.containers"}],
        "validations": [{"expression": expression, "message": "no"}],
    }
    return ValidatingPolicy({"kind": "ValidatingPolicy", "metadata": {"name": "p"}, "spec": spec})


def question_about(group: str, kind: str, document: Json) -> PolicyQuestion:
    """The creation of an object in a namespace."""
    resource = f"{kind.lower()}s"
    request = {
        "kind": {"group": group, "version": "v1", "kind": kind},
        "resource": {"group": group, "version": "v1", "resource": resource},
        "operation": "CREATE",
        "namespace": "shop",
        "name": "x",
        "object": document,
    }
    return PolicyQuestion(request, None, WORLD)


def pod_of(template: Json) -> Json:
    """The Pod that a controller makes of a template, in the controller's namespace."""
    metadata = template.get("metadata") or {}
    if template.get("metadata", {}) is None:
        metadata = {"namespace": "shop"}
    return {
        **template,
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {**metadata, "namespace": "shop"},
    }


def controller_of(resource: str, template: Json) -> Json:
    """A controller of a kind with a template."""
    made = CONTROLLERS[resource]
    spec: Json = {"template": template}
    if resource == "cronjobs":
        spec = {"jobTemplate": {"spec": spec}}
    return {
        "apiVersion": f"{made.group}/v1",
        "kind": made.kind,
        "metadata": {"name": "x", "namespace": "shop"},
        "spec": spec,
    }


@pytest.mark.parametrize("shape", TEMPLATES)
@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_a_controller_is_decided_as_the_pod_that_it_makes(expression: str, shape: str) -> None:
    template, about = TEMPLATES[shape], policy(expression)
    of_pod = about.say(question_about("", "Pod", pod_of(template)))
    for resource, controller in CONTROLLERS.items():
        document = controller_of(resource, template)
        found = about.say(question_about(controller.group, controller.kind, document))
        assert found.result == of_pod.result, (resource, found, of_pod)


@pytest.mark.parametrize(
    "spec",
    [{}, {"template": None}, {"template": 7}, {"jobTemplate": None}, {"jobTemplate": {"spec": []}}],
)
def test_a_controller_without_a_template_is_never_passed_in_silence(spec: Json) -> None:
    about = policy("object.spec.containers.size() == 1")
    for resource, controller in CONTROLLERS.items():
        document = {**controller_of(resource, {}), "spec": spec}
        assert (
            about.say(question_about(controller.group, controller.kind, document)).result == "error"
        )


def test_of_a_template_without_metadata_what_reads_them_is_an_error_as_in_kyverno() -> None:
    """No API server hands one on: it fills in metadata. A Pod always has some."""
    template = {"spec": {"containers": [CONTAINER], "hostNetwork": True}}
    for expression, expected in (
        ("!has(object.metadata.ownerReferences)", "error"),
        ("object.spec.hostNetwork == true", "pass"),
        ("!object.spec.hostNetwork", "fail"),
    ):
        found = policy(expression).say(
            question_about("apps", "Deployment", controller_of("deployments", template))
        )
        assert found.result == expected


def test_fields_of_wrong_types_write_no_policies_for_controllers() -> None:
    rule = {"matchConstraints": {"resourceRules": [PODS]}}
    for spec in (
        {"matchConstraints": 7},
        {"matchConstraints": {"resourceRules": [7]}},
        {**rule, "autogen": {"podControllers": {"controllers": 7}}},
    ):
        assert generated_specs(spec) == []
    assert len(generated_specs({**rule, "autogen": [], "validations": [7, None]})) == 2


def test_a_kind_that_autogen_does_not_know_is_left_alone() -> None:
    """Kyverno writes nothing for ReplicationControllers: the Pods that they make are decided."""
    document = {**controller_of("deployments", {}), "kind": "ReplicationController"}
    assert (
        policy("false").say(question_about("", "ReplicationController", document)).result == "skip"
    )
