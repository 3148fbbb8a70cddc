"""MutatingAdmissionPolicies: what they make of objects, and what is refused, at every door over files."""

import json
from pathlib import Path
from typing import Any

import pytest
from waddle import Policies

from tests.webhook.admission_policies.making import (
    API,
    PODS,
    binding,
    mutating_binding,
    mutating_policy,
    pod,
    policy,
    request,
)
from tests.webhook.cli.in_process import waddle
from webhook.admission_policies.kinds import InvalidAdmissionPolicy
from webhook.admission_policies.mutating import change
from webhook.admission_policies.reading import read_mutating_binding, read_mutating_policy

Json = dict[str, Any]
LABELLED = 'Object{metadata: Object.metadata{labels: {"managed": "yes"}}}'


def changed(*expressions: str, obj: Json | None = None, **spec: Any) -> Any:
    read = read_mutating_policy(mutating_policy(*expressions, **spec))
    return change(read, request(obj), None, None)


def written(folder: Path, *documents: Json) -> str:
    file = folder / "all.yaml"
    file.write_text("\n---\n".join(json.dumps(one, indent=1) for one in documents))
    return str(file)


def test_a_configuration_is_merged_by_the_keys_of_lists():
    expression = (
        "Object{spec: Object.spec{containers: object.spec.containers.map(c, "
        "Object.spec.containers{name: c.name, imagePullPolicy: 'Always'})}}"
    )
    made = changed(expression).object
    (container,) = made["spec"]["containers"]
    assert container == {"name": "c", "image": "nginx", "imagePullPolicy": "Always"}


def test_mutations_are_made_one_after_the_other():
    other = '[JSONPatch{op: "add", path: "/metadata/labels/also", value: object.metadata.labels.managed}]'
    made = changed(LABELLED, other).object
    assert made["metadata"]["labels"] == {"managed": "yes", "also": "yes"}


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        (
            "Object{spec: Object.spec{nodeSelector: {'a': 'b'}}}",
            "may not mutate atomic arrays, maps or structs: .spec.nodeSelector",
        ),
        ("Object{spec: Object.other{}}", 'unexpected type name "Object.other"'),
        ('[JSONPatch{op: "remove", path: "/spec/none"}]', "Unable to remove nonexistent key: none"),
        ("object.none.x ? Object{} : Object{}", "resulted in error: no such key: none"),
    ],
)
def test_what_cannot_be_applied_changes_nothing(expression, message):
    made = changed(expression)
    assert made.object == pod()
    assert message in made.faults[0]


def test_a_test_that_does_not_hold_leaves_the_object():
    patch = (
        '[JSONPatch{op: "test", path: "/kind", value: "X"}, JSONPatch{op: "remove", path: "/spec"}]'
    )
    made = changed(patch)
    assert made.object == pod()
    assert made.faults == ()


def test_a_custom_resource_is_merged_as_its_definition_says():
    definition = {
        "spec": {
            "group": "example.com",
            "names": {"kind": "Thing"},
            "versions": [
                {
                    "name": "v1",
                    "schema": {
                        "openAPIV3Schema": {
                            "properties": {
                                "parts": {
                                    "x-kubernetes-list-type": "map",
                                    "x-kubernetes-list-map-keys": ["id"],
                                }
                            }
                        }
                    },
                }
            ],
        }
    }
    obj = {"apiVersion": "example.com/v1", "kind": "Thing", "parts": [{"id": "a", "n": 1}]}
    read = read_mutating_policy(
        mutating_policy("Object{parts: [Object.parts{id: 'a', m: 2}, Object.parts{id: 'b'}]}")
    )
    made = change(read, request(obj), None, None, definitions=[definition]).object
    assert made["parts"] == [{"id": "a", "n": 1, "m": 2}, {"id": "b"}]
    assert "atomic arrays" in change(read, request(obj), None, None).faults[0]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"reinvocationPolicy": None}, "spec.reinvocationPolicy: is required"),
        ({"mutations": []}, "spec.mutations: is required"),
        ({"mutations": [{"patchType": "Merge"}]}, 'spec.mutations[0].patchType: "Merge" is not'),
        ({"mutations": [{"patchType": "JSONPatch"}]}, "spec.mutations[0].jsonPatch: is required"),
        (
            {"mutations": [{"patchType": "JSONPatch", "jsonPatch": {"expression": "Object{}"}}]},
            "spec.mutations[0].jsonPatch.expression: must evaluate to list(JSONPatch) but got Object",
        ),
        (
            {"matchConstraints": {"resourceRules": [{**PODS, "operations": ["DELETE"]}]}},
            'spec.matchConstraints.resourceRules[0].operations: "DELETE" is not one of',
        ),
    ],
)
def test_what_an_api_server_refuses_is_reported_with_its_field(changes, message):
    document = mutating_policy(LABELLED)
    document["spec"] |= changes
    with pytest.raises(InvalidAdmissionPolicy) as raised:
        read_mutating_policy(document)
    assert str(raised.value).startswith(message)
    with pytest.raises(InvalidAdmissionPolicy, match="has none"):
        read_mutating_binding(mutating_binding(validationActions=["Deny"]))


def test_mutate_shows_the_object_and_the_patch(tmp_path):
    file = written(tmp_path, mutating_policy(LABELLED), mutating_binding(), pod())
    (made,) = json.loads(waddle("mutate", "-f", file, "-o", "json").stdout)
    assert made["metadata"]["labels"] == {"managed": "yes"}
    (patch,) = json.loads(waddle("mutate", "-f", file, "-o", "patch").stdout)
    assert patch["mutators"] == "MutatingAdmissionPolicy/m"
    unbound = written(tmp_path, mutating_policy(LABELLED), pod())
    done = waddle("mutate", "-f", unbound, "-o", "patch")
    assert f"WARNING - {unbound}:1: MutatingAdmissionPolicy/m: no binding names it" in done.stderr
    assert "no mutator or mutating policy of the files matches an object in them" in done.stderr
    assert json.loads(done.stdout) == []


def test_what_is_reviewed_is_what_would_be_stored(tmp_path):
    checked = policy("object.metadata.labels.managed == 'yes'")
    documents = (mutating_policy(LABELLED), mutating_binding(), checked, binding())
    file = written(tmp_path, *documents, pod())
    done = waddle("test", "-f", file)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "mutated  by MutatingAdmissionPolicy/m" in done.stdout
    assert "Pod shop/web: by MutatingAdmissionPolicy/m" in waddle("check", "-f", file).stdout
    assert not Policies.load(values=documents).review(pod())


@pytest.mark.parametrize(("failure", "code"), [("Fail", 1), ("Ignore", 0)])
def test_an_error_denies_unless_the_policy_ignores_it(tmp_path, failure, code):
    broken = mutating_policy('[JSONPatch{op: "remove", path: "/none"}]', failurePolicy=failure)
    documents = (broken, mutating_binding(), policy("true"), binding(), pod())
    done = waddle("test", "-f", written(tmp_path, *documents))
    assert done.returncode == code
    assert "MutatingAdmissionPolicy/m [binding b] JSON Patch: error in remove" in done.stderr
    done = waddle("mutate", "-f", written(tmp_path, *documents))
    assert done.returncode == (2 if code else 0)


def test_a_policy_is_asked_again_only_where_it_wants_that(tmp_path):
    """``a`` counts the labels before ``b`` adds one: asked again it counts that one, too."""
    count = (
        "Object{metadata: Object.metadata{annotations: "
        "{'count': string(object.metadata.?labels.orValue({}).size())}}}"
    )
    for wish, expected in (("Never", "0"), ("IfNeeded", "1")):
        counts = mutating_policy(count, name="a", reinvocationPolicy=wish)
        adds = mutating_policy(LABELLED, name="b")
        bindings = (mutating_binding("a", "a"), mutating_binding("b", "b"))
        file = written(tmp_path, counts, adds, *bindings, pod())
        (made,) = json.loads(waddle("mutate", "-f", file, "-o", "json").stdout)
        assert made["metadata"]["annotations"] == {"count": expected}


def test_older_versions_are_read_alike():
    for version in ("v1alpha1", "v1beta1"):
        document = mutating_policy(LABELLED)
        document["apiVersion"] = API.replace("v1", version)
        assert read_mutating_policy(document).name == "m"


LIMITS = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": "limits", "namespace": "shop"},
    "data": {"max": "3"},
}
COUNTED = mutating_policy(
    'Object{metadata: Object.metadata{labels: {"max": string(params.data.max),'
    ' "seen": string(size(object.metadata.labels))}}}',
    reinvocationPolicy="IfNeeded",
    failurePolicy="Fail",
    paramKind={"apiVersion": "v1", "kind": "ConfigMap"},
)
COUNTED_BY = mutating_binding(
    paramRef={"name": "limits", "namespace": "shop", "parameterNotFoundAction": "Deny"}
)
OWNER = {
    "apiVersion": "mutations.gatekeeper.sh/v1",
    "kind": "AssignMetadata",
    "metadata": {"name": "owner"},
    "spec": {"location": "metadata.labels.owner", "parameters": {"assign": {"value": "me"}}},
}


def tried(folder: Path, expected: Json, case: Json | None = None, **test: Any) -> Any:
    """Returns the result of a suite with one case and an expected object."""
    documents = {
        "policy": COUNTED,
        "binding": COUNTED_BY,
        "limits": LIMITS,
        "owner": OWNER,
        "pod": pod(),
        "expected": expected,
    }
    for name, document in documents.items():
        (folder / f"{name}.yaml").write_text(json.dumps(document))
    whole = {
        "name": "case",
        "object": "pod.yaml",
        "mutated": "expected.yaml",
        "inventory": ["limits.yaml"],
        **(case or {}),
    }
    one = {
        "name": "test",
        "template": "policy.yaml",
        "constraint": "binding.yaml",
        "cases": [whole],
        **test,
    }
    document = {"apiVersion": "test.gatekeeper.sh/v1alpha1", "kind": "Suite", "tests": [one]}
    (folder / "suite.yaml").write_text(json.dumps(document))
    return waddle("verify", str(folder / "suite.yaml"))


def test_a_suite_says_what_a_policy_should_make_of_an_object(tmp_path):
    # The policy is asked again, when its own two labels are there.
    done = tried(tmp_path, pod(max="3", seen="2"))
    assert done.returncode == 0, done.stdout + done.stderr
    done = tried(tmp_path, pod(max="4", seen="2"))
    assert done.returncode == 1
    assert "the mutated object is not the one expected" in done.stdout


def test_a_suite_s_mutators_come_before_a_policy_is_asked_again(tmp_path):
    done = tried(tmp_path, pod(max="3", seen="3", owner="me"), mutators="owner.yaml")
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_suite_tells_why_a_policy_cannot_change_an_object(tmp_path):
    done = tried(tmp_path, pod(max="3", seen="2"), {"inventory": []})
    assert done.returncode == 1
    assert "mutating web: denied request: MutatingAdmissionPolicy/m [binding b]" in done.stdout
    done = tried(tmp_path, pod(), {"mutated": "", "assertions": []})
    assert "assertions must be non-empty" in done.stdout
