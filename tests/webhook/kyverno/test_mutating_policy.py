"""Changes by a MutatingPolicy of Kyverno, and policies that cannot be used."""

from typing import Any

import pytest

from tests.webhook.kyverno.making import LABEL, PODS, Json, applied, document, patch, pod
from webhook.kyverno.autogen import generated_specs
from webhook.kyverno.kinds import InvalidPolicy
from webhook.kyverno.mutating_policy import KyvernoChange, KyvernoMutatingPolicy
from webhook.kyverno.policy import PolicyQuestion
from webhook.kyverno.policy_exception import KyvernoException
from webhook.kyverno.world import World, objects_known

NOTHING = World(objects_known(()), 1_800_000_000 * 10**9)
IN_TEMPLATE = "Object{spec: Object.spec{template: Object.spec.template{"
NO_PATCH = "true ? [] : [JSONPatch{op: 'remove', path: '/spec'}]"
PRIORITY = 'Object{spec: Object.spec{priorityClassName: "low"}}'


def policy(*mutations: Json, **spec: Any) -> KyvernoMutatingPolicy:
    return KyvernoMutatingPolicy(document(*mutations, **spec))


def deployment() -> Json:
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "shop"},
        "spec": {"template": {"spec": pod()["spec"]}},
    }


def question_about(
    obj: Json, *exceptions: KyvernoException, world: World = NOTHING
) -> PolicyQuestion:
    group, _, version = obj["apiVersion"].rpartition("/")
    kind = {"group": group, "version": version}
    request = {
        "kind": {**kind, "kind": obj["kind"]},
        "resource": {**kind, "resource": f"{obj['kind'].lower()}s"},
        "operation": "CREATE",
        "namespace": "shop",
        "name": "web",
        "object": obj,
    }
    return PolicyQuestion(request, None, world, exceptions)


def changed(made: KyvernoMutatingPolicy, obj: Json | None = None) -> KyvernoChange:
    return made.change(question_about(pod() if obj is None else obj))


def test_mutations_follow_each_other_and_the_object_that_came_stays() -> None:
    obj = pod()
    longer = patch(
        '[JSONPatch{op: "add", path: "/metadata/labels/" + jsonpatch.escapeKey("a/b"), '
        'value: object.metadata.labels["team"]}]'
    )
    done = changed(policy(applied(LABEL), longer), obj)
    assert done.result == "pass"
    assert done.object["metadata"]["labels"] == {"team": "a", "a/b": "a"}
    assert "labels" not in obj["metadata"]


def test_a_variable_that_was_read_keeps_its_value() -> None:
    variables = [{"name": "count", "expression": "object.spec.containers.size()"}]
    one = 'Object{metadata: Object.metadata{labels: {"n": string(variables.count)}}}'
    more = patch(
        '[JSONPatch{op: "add", path: "/spec/containers/-", value: Object.spec.containers{name: "d"}}]'
    )
    done = changed(policy(applied(one), more, applied(one), variables=variables))
    assert done.object["metadata"]["labels"] == {"n": "1"}
    assert len(done.object["spec"]["containers"]) == 2


def test_conditions_may_read_variables() -> None:
    given: Json = {
        "variables": [{"name": "wants", "expression": "object.spec.containers.size() > 1"}],
        "matchConditions": [{"name": "c", "expression": "variables.wants"}],
    }
    assert changed(policy(applied(LABEL), **given)).result == "skip"


def test_an_error_leaves_the_object_as_it_came_and_names_what_is_missing() -> None:
    obj = pod()
    done = changed(policy(applied(LABEL), applied(LABEL.replace('"a"', "object.none"))), obj)
    assert (done.result, done.object) == ("error", obj)
    assert done.message == "no such key: none"
    lookup = 'resource.Get("v1", "secrets", "shop", "s").metadata.name'
    world = World(objects_known(()), 0)
    made = policy(applied(LABEL.replace('"a"', lookup)))
    done = made.change(question_about(obj, world=world))
    assert (done.result, done.object) == ("error", obj)
    assert done.missing == tuple(world.missing) != ()


def test_lists_that_are_replaced_whole_need_server_side_apply() -> None:
    args = 'Object{spec: Object.spec{containers: [Object.spec.containers{name: "c", args: ["b"]}]}}'
    done = changed(policy(applied(args)))
    assert done.result == "error"
    assert "may not mutate atomic arrays" in done.message
    done = changed(policy(applied(args), evaluation={"useServerSideApply": True}))
    assert done.object["spec"]["containers"] == [{"name": "c", "image": "nginx", "args": ["b"]}]


def test_controllers_get_what_their_pods_would() -> None:
    made = policy(applied(PRIORITY))
    done = changed(made, deployment())
    assert done.object["spec"]["template"]["spec"]["priorityClassName"] == "low"
    assert made.names(question_about(deployment()).request)
    alone = policy(applied(PRIORITY), autogen={"podControllers": {"controllers": []}})
    assert changed(alone, deployment()).result == "skip"
    assert not alone.names(question_about(deployment()).request)


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        (
            "Object {spec: Object.spec{a: object.spec.b}}",
            f"{IN_TEMPLATE}spec: Object.spec.template.spec{{a: object.spec.template.spec.b}}}}}}}}",
        ),
        ("has(object.metadata.labels)", "has(object.spec.template.metadata.labels)"),
        ("object.metadata.name + namespaceObject.metadata.labels['a']", None),
        ("variables.yes ? Object{} : Object{spec: Object.spec{}}", "...{spec: Object.spec.temp"),
    ],
)
def test_expressions_are_rewritten_as_kyverno_rewrites_them(
    written: str, expected: str | None
) -> None:
    spec = document(applied(written))["spec"]
    of_deployments = next(one for one in generated_specs(spec) if "deployments" in str(one))
    (mutation,) = of_deployments["mutations"]
    rewritten = mutation["applyConfiguration"]["expression"]
    if expected is None:
        assert rewritten == written
    elif expected.startswith("..."):
        assert rewritten.startswith("variables.yes ? Object{} : ")
        assert expected[3:] in rewritten
    else:
        assert rewritten == expected


def test_an_exception_excuses_and_what_it_allows_is_read() -> None:
    def exception(**spec: Any) -> KyvernoException:
        named = {"policyRefs": [{"kind": "MutatingPolicy", "name": "p"}]}
        conditions = [{"name": "c", "expression": "object.metadata.name == 'web'"}]
        metadata = {"name": "e", "namespace": "shop"}
        whole = {**named, "matchConditions": conditions, **spec}
        return KyvernoException({"metadata": metadata, "spec": whole})

    done = policy(applied(LABEL)).change(question_about(pod(), exception()))
    assert (done.result, done.message) == ("skip", "excused by shop/e")
    allowed = LABEL.replace('"a"', "exceptions.allowedValues[0]")
    done = policy(applied(allowed)).change(question_about(pod(), exception(allowedValues=["b"])))
    assert done.object["metadata"]["labels"] == {"team": "b"}


def test_one_of_a_namespace_changes_nothing_elsewhere() -> None:
    inside = document(applied(LABEL), kind="NamespacedMutatingPolicy")
    assert changed(KyvernoMutatingPolicy(inside)).result == "pass"
    inside["metadata"]["namespace"] = "other"
    assert changed(KyvernoMutatingPolicy(inside)).result == "skip"


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"mutations": []}, "spec.mutations is empty"),
        ({"evaluation": {"mutateExisting": {"enabled": True}}}, "spec.evaluation.mutateExisting: "),
        ({"targetMatchConstraints": {"expression": "{}"}}, "spec.targetMatchConstraints: "),
        ({"targetMatchConditions": [{"name": "a"}]}, "spec.targetMatchConditions: "),
        ({"evaluation": {"mode": "JSON"}}, "spec.evaluation.mode JSON: "),
        ({"evaluation": {"mode": "Envoy"}}, "spec.evaluation.mode Envoy: "),
        ({"evaluation": {"admission": {"enabled": False}}}, "spec.evaluation.admission: "),
        ({"matchConstraints": {}}, "spec.matchConstraints.resourceRules is empty"),
        (
            {"matchConstraints": {"resourceRules": [{**PODS, "operations": ["DELETE"]}]}},
            "spec.matchConstraints.resourceRules[0].operations: nothing is changed at DELETE",
        ),
        ({"reinvocationPolicy": "Always"}, "spec.reinvocationPolicy: 'Always' is not one of "),
        ({"mutations": [{"patchType": "Merge"}]}, "spec.mutations[0].patchType: 'Merge' is not"),
        ({"mutations": [{"patchType": "JSONPatch"}]}, "spec.mutations[0].jsonPatch: is required"),
        ({"mutations": [applied("1")]}, "spec.mutations[0].applyConfiguration.expression: must"),
        ({"mutations": [applied("variables.any")]}, "must evaluate to Object but gives dyn"),
        ({"mutations": [applied("random()")]}, "random() gives another value each time"),
    ],
)
def test_what_is_not_supported_is_refused_by_name(spec: Json, message: str) -> None:
    spec.setdefault("variables", [{"name": "any", "expression": "dyn(1)"}])
    with pytest.raises(InvalidPolicy) as error:
        policy(*spec.pop("mutations", [applied(LABEL)]), **spec)
    assert message in str(error.value)


def test_what_has_another_effect_than_it_seems_to_have_is_noted() -> None:
    autogen = {"mutatingAdmissionPolicy": {"enabled": True}}
    annotations = [{"key": "k", "valueExpression": "'v'"}]
    made = policy(patch(NO_PATCH), autogen=autogen, auditAnnotations=annotations)
    assert [one.partition(":")[0] for one in made.notes] == [
        "spec.autogen",
        "spec.autogen.mutatingAdmissionPolicy",
        "spec.auditAnnotations",
    ]
    assert changed(made).annotations == (("k", "v"),)
    assert policy(applied(LABEL)).notes == ()


def test_long_lists_are_merged_in_time_and_odd_ones_are_errors_at_most() -> None:
    every = "object.spec.containers.map(c, Object.spec.containers{name: c.name, image: 'b'})"
    made = policy(applied(f"Object{{spec: Object.spec{{containers: {every}}}}}"))
    count = 4_000
    done = changed(made, pod(containers=[{"name": f"c{one}"} for one in range(count)]))
    assert [one["image"] for one in done.object["spec"]["containers"]] == ["b"] * count
    one = made.change(question_about(pod(containers=[{"name": {"a": 1}}])))
    assert one.result in {"pass", "error"}
    deep: Json = {}
    for _ in range(5_000):
        deep = {"a": deep}
    nested = policy(patch('[JSONPatch{op: "add", path: "/spec/x", value: 1}]'))
    done = changed(nested, pod(deep=deep))
    assert (done.result, done.message) == ("error", "the object is nested too deeply for it")
