"""Rules of ClusterPolicies written as ValidatingPolicies, and what these say."""

from __future__ import annotations

from typing import Any

import pytest

from webhook.kyverno.conversion import converted, for_requester
from webhook.kyverno.patterns import Unwritable
from webhook.kyverno.policy import PolicyQuestion
from webhook.kyverno.validating_policy import ValidatingPolicy, fault_of
from webhook.kyverno.world import World, objects_known

Json = dict[str, Any]
ABOUT = {"any": [{"resources": {"kinds": ["Pod"]}}]}


def cluster_policy(rule: Json, **spec: Any) -> Json:
    return {
        "apiVersion": "kyverno.io/v1",
        "kind": "ClusterPolicy",
        "metadata": {"name": "old"},
        "spec": {"rules": [{"name": "r", "match": ABOUT, **rule}], **spec},
    }


def converted_policy(rule: Json, **spec: Any) -> Json:
    [(_, policy)] = converted(cluster_policy(rule, **spec))
    assert not isinstance(policy, Unwritable), policy
    return policy


def verdict_of(rule: Json, spec: Json, kind: str = "Pod", **fields: Any) -> str:
    """Returns the converted rule's verdict of an object."""
    metadata = {"name": "web", "namespace": "shop", **fields.pop("metadata", {})}
    obj = {"apiVersion": "v1", "kind": kind, "metadata": metadata, "spec": spec}
    group = fields.pop("group", None) or ("apps" if kind == "Deployment" else "")
    request = {
        "kind": {"group": group, "version": "v1", "kind": kind},
        "operation": "CREATE",
        "name": "web",
        "namespace": "shop",
        "object": obj,
        **fields,
    }
    namespace = {"metadata": {"name": "shop", "labels": {"tier": "front"}}}
    verdict = ValidatingPolicy(converted_policy(rule)).say(
        PolicyQuestion(request, namespace, World(objects_known(())))
    )
    return verdict.result


def pattern(**spec: Any) -> Json:
    return {"validate": {"pattern": {"spec": spec}}}


CONTAINERS = [{"name": "a", "image": "nginx:1"}, {"name": "b", "image": "redis:latest"}]


@pytest.mark.parametrize(
    ("pattern_given", "spec", "result"),
    [
        ({"hostNetwork": False}, {"hostNetwork": False}, "pass"),
        ({"hostNetwork": False}, {}, "fail"),
        ({"=(hostNetwork)": False}, {}, "pass"),
        ({"=(hostNetwork)": False}, {"hostNetwork": True}, "fail"),
        ({"X(hostPID)": "null"}, {"hostPID": True}, "fail"),
        ({"X(hostPID)": "null"}, {}, "pass"),
        ({"containers": [{"image": "!*:latest"}]}, {"containers": CONTAINERS}, "fail"),
        ({"containers": [{"image": "*:*"}]}, {"containers": CONTAINERS}, "pass"),
        ({"^(containers)": [{"name": "b"}]}, {"containers": CONTAINERS}, "pass"),
        ({"^(containers)": [{"name": "c"}]}, {"containers": CONTAINERS}, "fail"),
        (
            {"containers": [{"(name)": "a", "image": "nginx:*"}]},
            {"containers": CONTAINERS},
            "pass",
        ),
        ({"containers": [{"(name)": "z", "image": "x"}]}, {"containers": CONTAINERS}, "skip"),
        ({"(hostNetwork)": True, "hostPID": False}, {"hostNetwork": False}, "skip"),
        ({"(a)": {"(b)": 1}, "c": 1}, {"a": {"b": 2}}, "skip"),
        ({"(a)": {"(b)": 1}, "c": 1}, {"a": {"b": 1}}, "fail"),
        ({"(a)": {"(b)": 1}, "c": 1}, {"a": {"b": 1}, "c": 1}, "pass"),
        ({"(a)": [{"(b)": {"c": 1}}], "d": 1}, {"a": [{"b": {"c": 2}}, {}]}, "skip"),
        ({"(a)": [{"(b)": {"c": 1}}], "d": 1}, {"a": [{"b": {"c": 1}}, {}]}, "fail"),
        ({"(a)": [{"(b)": {"c": 1}}], "d": 1}, {"a": [{"b": {"c": 1}}], "d": 1}, "pass"),
        ({"=(a)": {"(b)": 1, "c": 1}}, {"a": {"b": 2}}, "skip"),
        ({"=(a)": {"(b)": 1, "c": 1}}, {}, "pass"),
        ({"=(a)": {"(b)": 1, "c": 1}}, {"a": {"b": 1}}, "fail"),
        ({"a": {"(b)": 1, "c": 1}}, {}, "fail"),
        ({"priority": ">=2 & <5"}, {"priority": 3}, "pass"),
        ({"priority": "1-2 | 7"}, {"priority": 7}, "pass"),
        ({"priority": "1-2"}, {"priority": 3}, "fail"),
        ({"memory": "<=1Gi"}, {"memory": "512Mi"}, "pass"),
        ({"memory": "<=1Gi"}, {"memory": "2Gi"}, "fail"),
        ({"nodeName": "node-?-*"}, {"nodeName": "node-1-x"}, "pass"),
        ({"nodeName": "a | b"}, {"nodeName": "b"}, "pass"),
        ({"groups": "1-5"}, {"groups": [1, 2]}, "pass"),
        ({"groups": "1-5"}, {"groups": [1, 9]}, "fail"),
        ({"nodeName": "?*"}, {"nodeName": ""}, "fail"),
    ],
)
def test_a_pattern_holds_as_kyverno_says(pattern_given: Json, spec: Json, result: str) -> None:
    assert verdict_of(pattern(**pattern_given), spec) == result


def test_of_several_patterns_one_has_to_hold() -> None:
    rule = {"validate": {"anyPattern": [{"spec": {"a": 1}}, {"spec": {"b": "x*"}}]}}
    assert verdict_of(rule, {"b": "xy"}) == "pass"
    assert verdict_of(rule, {"b": "y"}) == "fail"


@pytest.mark.parametrize(
    ("condition", "spec", "result"),
    [
        (("{{ request.object.spec.hostNetwork || `false` }}", "Equals", True), {}, "pass"),
        (
            ("{{ request.object.spec.hostNetwork }}", "Equals", True),
            {"hostNetwork": True},
            "fail",
        ),
        (
            ("{{request.object.spec.containers[].image}}", "AnyIn", ["*:latest"]),
            {"containers": CONTAINERS},
            "fail",
        ),
        (
            ("{{request.object.spec.containers[].image}}", "AnyNotIn", ["nginx:*", "redis:*"]),
            {"containers": CONTAINERS},
            "pass",
        ),
        (("{{request.object.spec.replicas}}", "GreaterThan", 3), {"replicas": 4}, "fail"),
        (("{{ request.operation }}", "NotEquals", "CREATE"), {}, "pass"),
        (("{{ request.object.metadata.labels.\"a/b\" || '' }}", "Equals", "x"), {}, "pass"),
    ],
)
def test_a_denial_holds_as_kyverno_says(
    condition: tuple[str, str, Any], spec: Json, result: str
) -> None:
    one = dict(zip(("key", "operator", "value"), condition, strict=True))
    assert verdict_of({"validate": {"deny": {"conditions": {"any": [one]}}}}, spec) == result


@pytest.mark.parametrize(
    ("key", "operator", "value", "result"),
    [
        ("request.object.spec.none", "Equals", None, "error"),
        ("request.object.spec.none.to_upper(@)", "AnyIn", {}, "error"),
        ("request.object.spec.none.keys(@)", "Equals", ["a"], "error"),
        ("request.object.spec.containers[0].none", "GreaterThan", 5, "error"),
        ("request.object.spec.containers[5].name", "Equals", "a", "pass"),
        ("request.oldObject.metadata.labels.team", "Equals", "a", "pass"),
        ("length(request.object.spec.containers)", "Equals", "a", "pass"),
        ("length(request.object.spec.none)", "Equals", "a", "error"),
    ],
)
def test_a_missing_key_is_an_error_whatever_it_is_compared_with(
    key: str, operator: str, value: object, result: str
) -> None:
    """A null on the way, of an index or of an object that is not there, is a null at the end."""
    one = {"key": f"{{{{ {key} }}}}", "operator": operator, "value": value}
    rule = {"validate": {"deny": {"conditions": {"all": [one]}}}}
    assert verdict_of(rule, {"containers": CONTAINERS}) == result


LISTS = "request.object.spec.[initContainers, containers][]"
ADDED = f"{LISTS}.securityContext.capabilities.add[]"
ADDS = {"name": "a", "securityContext": {"capabilities": {"add": ["KILL", "CHOWN"]}}}
PORTS = {"ports": [{"hostPort": 5}, {}, {"hostPort": 10}]}
VOLUMES = "request.object.spec.volumes[].keys(@)[]"


@pytest.mark.parametrize(
    ("key", "operator", "value", "spec", "result"),
    [
        (ADDED, "AnyNotIn", ["CHOWN"], {"containers": [{"name": "b"}, ADDS]}, "fail"),
        (ADDED, "AnyNotIn", ["CHOWN", "KILL"], {"containers": [ADDS]}, "pass"),
        (ADDED, "AnyNotIn", ["CHOWN"], {"containers": [{"name": "b"}]}, "pass"),
        (ADDED, "AllIn", ["CHOWN", "K*"], {"initContainers": [ADDS]}, "fail"),
        (ADDED, "AllNotIn", ["BPF"], {"containers": [ADDS]}, "fail"),
        (f"{LISTS}.name", "AnyIn", ["a"], {"containers": [ADDS]}, "fail"),
        (VOLUMES, "AnyNotIn", ["name", "csi"], {"volumes": [{"name": "v", "nfs": {}}]}, "fail"),
        (VOLUMES, "AnyNotIn", ["name", "csi"], {"volumes": [{"name": "v", "csi": {}}]}, "pass"),
        (f"{VOLUMES} || ''", "AnyNotIn", ["name"], {}, "fail"),
        (f"{LISTS}.ports[].hostPort", "AnyNotIn", "5-9", {"containers": [PORTS]}, "fail"),
        (f"{LISTS}.ports[].hostPort", "AnyNotIn", "5-10", {"containers": [PORTS]}, "pass"),
        (f"{VOLUMES} || ''", "AnyNotIn", ["name", ""], {}, "pass"),
    ],
)
def test_a_condition_asks_what_lies_in_lists_of_lists(
    key: str, operator: str, value: object, spec: Json, result: str
) -> None:
    one = {"key": f"{{{{ {key} }}}}", "operator": operator, "value": value}
    assert verdict_of({"validate": {"deny": {"conditions": {"any": [one]}}}}, spec) == result


def test_equals_compares_a_range_as_text() -> None:
    one = {"key": "{{ request.object.spec.x }}", "operator": "Equals", "value": "1-5"}
    rule = {"validate": {"deny": {"conditions": [one]}}}
    assert verdict_of(rule, {"x": 3}) == "pass"
    assert verdict_of(rule, {"x": "1-5"}) == "fail"


def test_a_range_among_values_is_a_text() -> None:
    one = {"key": f"{{{{ {LISTS}.x }}}}", "operator": "AnyNotIn", "value": ["1-5", "7"]}
    rule = {"validate": {"deny": {"conditions": [one]}}}
    assert verdict_of(rule, {"containers": [{"x": 3}]}) == "fail"
    assert verdict_of(rule, {"containers": [{"x": "1-5"}, {"x": 7}]}) == "pass"


CONTAINER_LISTS = "request.object.spec.[ephemeralContainers, initContainers, containers][]"


def foreach(**entry: Any) -> Json:
    return {"validate": {"foreach": [{"list": "request.object.spec.containers", **entry}]}}


def denied(key: object, operator: str, value: object) -> Json:
    one = {"key": key, "operator": operator, "value": value}
    return {"deny": {"conditions": {"all": [one]}}}


@pytest.mark.parametrize(
    ("entry", "spec", "result"),
    [
        ({"pattern": {"image": "!*:latest"}}, {"containers": CONTAINERS}, "fail"),
        ({"pattern": {"image": "*:*"}}, {"containers": CONTAINERS}, "pass"),
        ({"pattern": {"image": "*:*"}}, {}, "skip"),
        ({"elementScope": True, "pattern": {"image": "*:*"}}, {"containers": CONTAINERS}, "pass"),
        (
            {
                "list": "request.object.spec.containers[].image",
                "elementScope": True,
                "preconditions": {"all": [{"key": "a", "operator": "Equals", "value": "a"}]},
                **denied("{{ element }}", "Equals", "nginx:1"),
            },
            {"containers": CONTAINERS},
            "error",
        ),
        ({"pattern": {"(name)": "a", "image": "nginx:*"}}, {"containers": CONTAINERS}, "pass"),
        ({"pattern": {"(name)": "z", "image": "x"}}, {"containers": CONTAINERS}, "skip"),
        (
            {"anyPattern": [{"name": "a"}, {"image": "redis:*"}]},
            {"containers": CONTAINERS},
            "pass",
        ),
        ({"anyPattern": [{"name": "a"}, {"image": "x"}]}, {"containers": CONTAINERS}, "fail"),
        (denied("{{ element.image }}", "Equals", "redis:*"), {"containers": CONTAINERS}, "fail"),
        (denied("{{ element.image }}", "Equals", "mysql:*"), {"containers": CONTAINERS}, "pass"),
        (denied("{{ element.tty }}", "Equals", True), {"containers": CONTAINERS}, "error"),
        (denied("probe", "AllNotIn", "{{ element.keys(@)[] }}"), {"containers": [{}]}, "fail"),
        (denied("probe", "AllNotIn", "{{ element.keys(@)[] }}"), {"containers": [{"probe": 1}]}, "pass"),
        (
            denied("{{ element.securityContext.capabilities.drop[] || `[]` }}", "AnyNotIn", ["ALL"])
            | {"list": CONTAINER_LISTS},
            {"containers": [{"securityContext": {"capabilities": {"drop": ["ALL", "KILL"]}}}]},
            "fail",
        ),
        (
            {"pattern": {"image": "x"}, "preconditions": {"all": [
                {"key": "{{ element.tty }}", "operator": "Equals", "value": True}
            ]}},
            {"containers": [{"image": "y"}, {"image": "x", "tty": True}]},
            "pass",
        ),
        (
            {"foreach": [{"list": "element.ports", **denied(
                "{{ element0.name }}-{{ element.port }}", "Equals", "a-80")}]},
            {"containers": [{"name": "a", "ports": [{"port": 80}]}]},
            "fail",
        ),
        (
            {"context": [{"name": "limit", "variable": {"value": ["80", "81"]}}]}
            | denied("{{ element.port }}", "AnyIn", "{{ limit }}"),
            {"containers": [{"port": 81}]},
            "fail",
        ),
    ],
)  # fmt: skip
def test_every_item_of_a_list_is_asked(entry: Json, spec: Json, result: str) -> None:
    assert verdict_of(foreach(**entry), spec) == result


@pytest.mark.parametrize(
    ("key", "operator", "value", "spec", "result"),
    [
        ("{{ length(request.object.spec.x) }}", "GreaterThan", 1, {"x": [1, 2]}, "fail"),
        ("{{ request.object.spec.x[?a=='b'] | length(@) }}", "Equals", 1, {"x": [{"a": "b"}, {}]}, "fail"),
        ("{{ request.object.spec.x[0].a || '' }}", "Equals", "b", {"x": [{"a": "b"}]}, "fail"),
        ("{{ request.object.spec.x[0].a || '' }}", "Equals", "", {"x": []}, "fail"),
        ("{{ contains(request.object.spec.x[], '*') }}", "Equals", True, {"x": ["a", "*"]}, "fail"),
        ("{{ regex_match('^a+$', '{{ request.object.spec.x || 'b' }}') }}", "Equals", False, {}, "fail"),
        ("{{ to_upper(request.object.spec.x) }}", "Equals", "AB", {"x": "ab"}, "fail"),
        ("{{ request.object.spec.x }}", "AnyIn", ["get", "list"], {"x": ["*"]}, "fail"),
        ("{{ request.object.spec.x }}", "AllNotIn", ["get"], {"x": "list"}, "fail"),
        ("{{ request.object.spec.x }}", "NotEquals", "a", {}, "error"),
        ("{{ request.object.spec.x }}", "Equals", "1Gi", {"x": "1024Mi"}, "fail"),
        ("{{ request.object.spec.x }}", "GreaterThan", "1Gi", {"x": "1025Mi"}, "fail"),
        ("{{ request.object.spec.x }}", "GreaterThan", 60, {"x": "2m"}, "fail"),
        ("{{ request.object.spec.x }}", "DurationLessThan", "1h", {"x": "30m"}, "fail"),
        ("{{ request.object.spec.x }}", "Equals", 60, {"x": "1m"}, "fail"),
        ("{{ request.object.spec.x }}", "Equals", "{{ request.object.spec.y }}", {"x": "1Gi", "y": "1024Mi"}, "fail"),
        ("{{ request.object.spec.x || `[]` }}", "AllIn", ["a"], {}, "fail"),
        ("{{ request.object.spec.x.keys(@) || `[]` }}", "AnyIn", ["a"], {"x": {"a": 1}}, "fail"),
    ],
)  # fmt: skip
def test_a_condition_says_what_kyverno_says(
    key: str, operator: str, value: object, spec: Json, result: str
) -> None:
    assert verdict_of({"validate": denied(key, operator, value)}, spec) == result


def test_deny_is_asked_of_deletions_as_well() -> None:
    rule = {"validate": denied("{{ request.object.spec.x }}", "Equals", 1)}
    deleted = {"kind": "Pod", "metadata": {"name": "web"}, "spec": {"x": 1}}
    assert verdict_of(rule, {}, operation="DELETE", object=None, oldObject=deleted) == "fail"
    condition = {"key": "{{ request.operation || 'BACKGROUND' }}", "operator": "NotEquals"}
    rule["preconditions"] = {"all": [{**condition, "value": "DELETE"}]}
    assert verdict_of(rule, {}, operation="DELETE", object=None, oldObject=deleted) == "skip"
    # A text equals no list, so that this leaves out nothing.
    rule["preconditions"] = {"all": [{**condition, "value": ["DELETE"]}]}
    assert verdict_of(rule, {}, operation="DELETE", object=None, oldObject=deleted) == "fail"


def test_an_error_in_a_condition_of_a_rule_in_cel_is_no_pass() -> None:
    condition = {"name": "a", "expression": "object.spec.replicas > 1"}
    cel = {"expressions": [{"expression": "true"}]}
    rule = {"celPreconditions": [condition], "validate": {"cel": cel}}
    policy = converted_policy(rule, failurePolicy="Ignore")
    assert "failurePolicy" not in policy["spec"]
    assert (
        converted_policy(pattern(x=1), failurePolicy="Ignore")["spec"]["failurePolicy"] == "Ignore"
    )


@pytest.mark.parametrize(
    "expression", ["oldObject == null", "null == oldObject", "!(oldObject != null)"]
)
def test_a_rule_in_cel_keeps_its_meaning_where_no_old_object_is(expression: str) -> None:
    rule = {"validate": {"cel": {"expressions": [{"expression": expression}]}}}
    assert verdict_of(rule, {}) == "pass"
    assert verdict_of(rule, {}, operation="UPDATE", oldObject={"metadata": {}}) == "fail"


def test_a_kind_of_no_builtin_group_is_of_any() -> None:
    match = {"any": [{"resources": {"kinds": ["Gateway"]}}]}
    spec = converted_policy({**pattern(x=1), "match": match})["spec"]
    assert spec["matchConstraints"]["resourceRules"] == [
        {
            "apiGroups": ["*"],
            "apiVersions": ["*"],
            "operations": ["CREATE", "UPDATE"],
            "resources": ["gateways"],
        }
    ]
    assert 'request.kind.kind in ["Gateway"]' in spec["matchConditions"][0]["expression"]


def test_who_asks_may_be_a_pattern() -> None:
    subject = {"kind": "ServiceAccount", "namespace": "ci", "name": "build-*"}
    match = {"any": [{"resources": {"kinds": ["Pod"]}, "subjects": [subject]}]}
    rule = {**pattern(x=1), "match": match}
    user = {"username": "system:serviceaccount:ci:build-7"}
    assert verdict_of(rule, {}, userInfo=user) == "fail"
    assert verdict_of(rule, {}, userInfo={"username": "jane"}) == "skip"


@pytest.mark.parametrize(
    "message", ["{{ request.object.spec.x }}", "{{ request.object.x || 'a' }}"]
)
def test_a_message_may_be_a_single_variable(message: str) -> None:
    """Its value is of any type, and a message is a text."""
    rule = {"validate": {"message": message, **denied("a", "Equals", "a")}}
    ValidatingPolicy(converted_policy(rule))


@pytest.mark.parametrize(
    "expression",
    ["request.object == null", "image('a').tag() == ''", "cel.bind(x, 1, x == 1)", "params.x"],
)
def test_what_a_rule_in_cel_cannot_say_is_not_converted(expression: str) -> None:
    """Kyverno compiles it as a ValidatingAdmissionPolicy, where the names of its own are unknown."""
    rule = {"validate": {"cel": {"expressions": [{"expression": expression}]}}}
    [(_, why)] = converted(cluster_policy(rule))
    assert "Kyverno cannot compile it" in str(why)


def test_a_message_has_its_variables() -> None:
    rule = {"validate": {"message": "no {{ request.object.spec.x }}", **denied("a", "Equals", "a")}}
    assert converted_policy(rule)["spec"]["validations"][0]["messageExpression"] == (
        "(\"no \" + string((request.operation != 'DELETE' ? object.spec : oldObject.spec).?x.value()))"
    )


@pytest.mark.parametrize(
    ("validation", "rest"),
    [
        ({"messageExpression": "object.metadata.name"}, {"message": "rule"}),
        ({"messageExpression": "1", "message": "own"}, {"message": "own"}),
        ({"messageExpression": "string(object.metadata.name)"}, None),
    ],
)
def test_a_message_expression_that_gives_no_text_leaves_the_plain_message(
    validation: Json, rest: Json | None
) -> None:
    """As in Kyverno, which decides by such a rule."""
    failing = {"expression": "false", **validation}
    expressions = [failing, {"expression": "true"}]
    rule = {"validate": {"message": "rule", "cel": {"expressions": expressions}}}
    policy = converted_policy(rule)
    first = policy["spec"]["validations"][0]
    assert first == {"expression": "false", **(validation if rest is None else rest)}
    assert fault_of(policy) == ""
    assert failing == {"expression": "false", **validation}, "what was given is as it was"
    assert verdict_of(rule, {}) == "fail"


def test_what_a_rule_is_about_is_kept() -> None:
    rule = pattern(x=1)
    several = {"any": [{"resources": {"kinds": ["Pod"], "names": ["w*"], "namespaces": ["s?op"]}}]}
    assert verdict_of({**rule, "match": several}, {}) == "fail"
    several["any"][0]["resources"]["namespaces"] = ["other"]
    assert verdict_of({**rule, "match": several}, {}) == "skip"
    selected = {"resources": {"kinds": ["Pod"], "selector": {"matchLabels": {"app": "web"}}}}
    assert verdict_of({**rule, "match": selected}, {}) == "skip"
    assert (
        verdict_of({**rule, "match": selected}, {}, metadata={"labels": {"app": "web"}}) == "fail"
    )
    front = {"resources": {"kinds": ["Pod"], "namespaceSelector": {"matchLabels": {"tier": "f*"}}}}
    assert verdict_of({**rule, "match": front}, {}) == "fail"
    excluded = {"any": [{"resources": {"names": ["web"]}}]}
    assert verdict_of({**rule, "exclude": excluded}, {}) == "skip"
    given = {"all": [{"key": "{{request.operation}}", "operator": "Equals", "value": "DELETE"}]}
    assert verdict_of({**rule, "preconditions": given}, {}) == "skip"


def test_pods_of_controllers_are_asked_as_well() -> None:
    rule = {"validate": {"podSecurity": {"level": "baseline"}}}
    pods = {"template": {"spec": {"containers": [{"name": "c"}], "hostNetwork": True}}}
    deployment = {"kind": "Deployment"}
    assert verdict_of(rule, pods, **deployment) == "fail"
    assert verdict_of(
        rule, {"template": {"metadata": {}, "spec": {"containers": []}}}, **deployment
    ) == ("pass")
    off = cluster_policy(rule)
    off["metadata"]["annotations"] = {"pod-policies.kyverno.io/autogen-controllers": "none"}
    [(_, policy)] = converted(off)
    assert isinstance(policy, dict)
    assert policy["spec"]["autogen"] == {"podControllers": {"controllers": []}}


LABELLED = {"kinds": ["Pod"], "selector": {"matchLabels": {"a": "b"}}}


@pytest.mark.parametrize(
    "more",
    [
        {"exclude": {"any": [{"resources": LABELLED}]}},
        {"exclude": {"any": [{"resources": {"namespaces": ["a"]}}, {"resources": LABELLED}]}},
        {"exclude": {"resources": {"kinds": ["Deployment"]}}},
        {"match": {"any": [{"resources": {"kinds": ["Pod"], "names": ["a*"]}}]}},
        {"match": {"any": [{"resources": {"kinds": ["Pod"], "annotations": {"a": "b"}}}]}},
    ],
)
def test_rules_that_kyverno_does_not_generate_are_about_pods_alone(more: Json) -> None:
    alone = {"autogen": {"podControllers": {"controllers": []}}}
    policy = converted_policy({**pattern(hostNetwork=False), **more})
    assert policy["spec"].items() >= alone.items()
    excluded = {"exclude": {"any": [{"resources": {"namespaces": ["a"]}}]}}
    assert "autogen" not in converted_policy({**pattern(hostNetwork=False), **excluded})["spec"]


@pytest.mark.parametrize(
    "other",
    [
        {"generate": {"kind": "Secret"}},
        {"mutate": {"patchesJson6902": "[]"}},
        {"match": {"any": [{"resources": LABELLED}]}},
        {"match": {"any": [{"resources": {"kinds": ["Pod", "Service"]}}]}},
    ],
)
def test_one_rule_without_controllers_keeps_the_others_from_them(other: Json) -> None:
    policy = cluster_policy(pattern(hostNetwork=False))
    policy["spec"]["rules"].append({"name": "other", "match": ABOUT, **other})
    (_, first), _ = converted(policy)
    assert isinstance(first, dict)
    assert first["spec"]["autogen"] == {"podControllers": {"controllers": []}}


@pytest.mark.parametrize("kind", ["Deployment", "Job", "CronJob", "Pod"])
def test_pod_security_of_named_controllers_is_about_their_pods(kind: str) -> None:
    kinds = ["Pod", "apps/v1/Deployment", "Job", "CronJob"]
    match = {"any": [{"resources": {"kinds": kinds}}]}
    rule = {"match": match, "validate": {"podSecurity": {"level": "baseline"}}}

    def of(**metadata: Any) -> Json:
        pod: Json = {"containers": [{"name": "c"}], "hostNetwork": bool(metadata.get("host"))}
        if kind == "Pod":
            return pod
        spec = {"template": {"spec": pod}}
        return {"jobTemplate": {"spec": spec}} if kind == "CronJob" else spec

    fields: Json = {"kind": kind, "group": {"Job": "batch", "CronJob": "batch"}.get(kind)}
    assert verdict_of(rule, of(), **fields) == "pass"
    assert verdict_of(rule, of(host=True), **fields) == "fail"


def test_pod_security_asks_no_annotations_of_a_template_without_metadata() -> None:
    rule = {"validate": {"podSecurity": {"level": "baseline"}}}
    spec = {"template": {"spec": {"containers": []}}}
    assert verdict_of(rule, spec, kind="Deployment") == "pass"


SECURE = {
    "runAsNonRoot": True,
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "seccompProfile": {"type": "RuntimeDefault"},
}


@pytest.mark.parametrize(
    ("level", "changed", "result"),
    [
        ("restricted", {}, "pass"),
        ("restricted", {"runAsNonRoot": None}, "fail"),
        ("restricted", {"allowPrivilegeEscalation": None}, "fail"),
        ("restricted", {"capabilities": {"drop": ["ALL"], "add": ["CHOWN"]}}, "fail"),
        ("baseline", {"capabilities": {"add": ["CHOWN"]}}, "pass"),
        ("baseline", {"capabilities": {"add": ["SYS_ADMIN"]}}, "fail"),
        ("baseline", {"privileged": True}, "fail"),
        ("baseline", {"seLinuxOptions": {"type": "spc_t"}}, "fail"),
        ("restricted", {"runAsUser": 0}, "fail"),
    ],
)
def test_pod_security_is_asked_by_its_level(level: str, changed: Json, result: str) -> None:
    context = {key: value for key, value in (SECURE | changed).items() if value is not None}
    spec = {"containers": [{"name": "c", "securityContext": context}]}
    rule = {"validate": {"podSecurity": {"level": level, "version": "latest"}}}
    assert verdict_of(rule, spec) == result


def test_actions_and_evaluation_are_kept() -> None:
    policy = converted_policy(pattern(x=1), validationFailureAction="Enforce", background=False)
    assert policy["spec"]["validationActions"] == ["Deny"]
    assert policy["spec"]["evaluation"] == {"background": {"enabled": False}}
    assert converted_policy(pattern(x=1))["spec"]["validationActions"] == ["Audit"]


@pytest.mark.parametrize(
    ("rule", "why"),
    [
        ({"context": [{"name": "x"}], **pattern(x=1)}, "context[0] x: nothing asks for more"),
        ({"generate": {"kind": "Secret"}}, "it has `generate`, and only `validate` is converted"),
        ({}, "it has no `validate`"),
        ({"validate": {"failureActionOverrides": [{}], "pattern": {}}}, "for each action"),
        (pattern(x="{{request.name}}"), "a variable: {{request.name}}"),
        (pattern(**{"<(x)": 1}), "the anchor < of <(x)"),
        (pattern(x=[1, 2]), "a list of several patterns"),
        ({"match": {"any": [{"resources": {"kinds": ["*Set"]}}]}, **pattern(x=1)}, "kinds: *Set"),
        ({"match": {"any": [{"roles": ["a"], "resources": {}}]}, **pattern(x=1)}, "match.roles"),
        ({"validate": {"foreach": [{}]}}, "validate.foreach[0].list is missing"),
        (foreach(pattern={"image": "{{ element.x }}"}), "a variable"),
        (foreach(**denied("{{ divide(element.a, element.b) }}", "Equals", 1)), "function divide"),
        (foreach(**denied("{{ elementIndex }}", "Equals", 1)), "the variable elementIndex"),
        ({"validate": denied("{{ a.b[ }}", "Equals", 1)}, "JMESPath"),
        ({"validate": denied('{{ request."object".spec.x }}', "Equals", 1)}, "write again"),
        ({"validate": {"podSecurity": {"level": "privileged"}}}, "it asks nothing"),
        (
            {
                "match": {"any": [{"resources": {"kinds": ["Pod", "Rollout"]}}]},
                "validate": {"podSecurity": {"level": "baseline"}},
            },
            "in a Rollout Kyverno finds no Pod",
        ),
        ({"validate": {"podSecurity": {"level": "baseline", "version": "v1.24"}}}, "v1.24"),
        (
            {"validate": {"podSecurity": {"level": "baseline", "exclude": [{"images": ["*"]}]}}},
            "exclude.images",
        ),
    ],
)
def test_what_cannot_be_written_is_named(rule: Json, why: str) -> None:
    [(_, message)] = converted(cluster_policy(rule))
    assert isinstance(message, Unwritable)
    assert why in str(message)


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        ({"validationFailureActionOverrides": [{"action": "Enforce"}]}, "for each action"),
        ({"webhookConfiguration": {"matchConditions": [{"name": "a"}]}}, "as matchConditions"),
        ({"applyRules": "One", "rules": [pattern(x=1), pattern(x=2)]}, "applyRules One"),
    ],
)
def test_a_field_over_all_rules_that_cannot_be_written_refuses_each(spec: Json, why: str) -> None:
    policy = cluster_policy(pattern(x=1))
    policy["spec"] |= spec
    refusals = [refusal for _, refusal in converted(policy)]
    assert len(refusals) == len(policy["spec"]["rules"])
    for refusal in refusals:
        assert isinstance(refusal, Unwritable)
        assert why in str(refusal)


PODS = {"resources": {"kinds": ["Pod"]}}
OF_ADMINS = {"clusterRoles": ["cluster-admin", "ops"]}
BY_ADMINS = {"any": [{**PODS, **OF_ADMINS}]}
OF_SHOP = {"resources": {"namespaces": ["shop"]}}
OF_OTHERS = {"resources": {"namespaces": ["other"]}}
ADMIN = {"userInfo": {"username": "a"}, "clusterRoles": ["ops"], "roles": ["shop:editor"]}
USER = {"userInfo": {"username": "u"}}


@pytest.mark.parametrize(
    ("rule", "requester", "result"),
    [
        ({"match": BY_ADMINS}, {}, "fail"),  # the user is unknown, so that any user matches
        ({"match": BY_ADMINS}, ADMIN, "fail"),
        ({"match": BY_ADMINS}, USER, "skip"),
        ({"match": {"all": [PODS, {**PODS, "roles": ["shop:editor"]}]}}, ADMIN, "fail"),
        ({"match": {"all": [PODS, {**PODS, "roles": ["shop:editor"]}]}}, USER, "skip"),
        ({"match": {**PODS, **OF_ADMINS}}, USER, "skip"),
        ({"exclude": {"any": [OF_ADMINS]}}, {}, "fail"),
        ({"exclude": {"any": [OF_ADMINS]}}, USER, "fail"),
        ({"exclude": {"any": [OF_ADMINS]}}, ADMIN, "skip"),
        ({"exclude": {"any": [{**OF_OTHERS, **OF_ADMINS}, OF_SHOP]}}, USER, "skip"),
        ({"exclude": {"any": [{**OF_OTHERS, **OF_ADMINS}]}}, ADMIN, "fail"),
        ({"exclude": {"all": [OF_ADMINS, OF_SHOP]}}, ADMIN, "skip"),
        ({"exclude": {"all": [OF_ADMINS, OF_OTHERS]}}, ADMIN, "fail"),
        ({"exclude": {"all": [OF_ADMINS, OF_SHOP]}}, USER, "fail"),
        ({"exclude": {"all": [OF_ADMINS]}}, ADMIN, "skip"),
        ({"exclude": OF_ADMINS}, ADMIN, "skip"),
        ({"match": {"any": [{**PODS, "subjects": [{"kind": "User", "name": "u"}]}]}}, {}, "fail"),
        ({"match": {"any": [{**PODS, "subjects": [{"kind": "User", "name": "u"}]}]}}, USER, "fail"),
        ({"match": {"any": [{**PODS, "subjects": [{"kind": "User", "name": "x"}]}]}}, USER, "skip"),
    ],
)
def test_a_rule_says_of_a_requester_whose_roles_are_known(
    rule: Json, requester: Json, result: str
) -> None:
    document = for_requester(cluster_policy({**pattern(hostNetwork=False), **rule}), requester)
    [(_, policy)] = converted(document)
    assert not isinstance(policy, Unwritable), policy
    obj = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web", "namespace": "shop"}}
    request = {
        "kind": {"group": "", "version": "v1", "kind": "Pod"},
        "operation": "CREATE",
        "name": "web",
        "namespace": "shop",
        "userInfo": requester.get("userInfo") or {},
        "object": {**obj, "spec": {"hostNetwork": True}},
    }
    question = PolicyQuestion(request, None, World(objects_known(())))
    assert ValidatingPolicy(policy).say(question).result == result
