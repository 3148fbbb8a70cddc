"""Random ValidatingAdmissionPolicies and MutatingAdmissionPolicies with bindings, parameters, objects.

All objects are ConfigMaps or Pods. Each policy is about the objects that carry its own label, so that
an API server may have all of them at once.
"""

import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

Json = dict[str, Any]
API = "admissionregistration.k8s.io/v1"
CASE = "case"
SPACE = "default"

_TESTS = (
    "has(object.data)",
    "object.data.size() > 1",
    "object.data.a == 'x'",
    "object.data['a'].startsWith('x')",
    "'a' in object.data",
    "int(object.data.n) > 3",
    "int(object.data.n) / int(object.data.z) == 1",
    "object.data.all(k, k.size() == 1)",
    "object.data.exists(k, object.data[k] == 'y')",
    "object.data.exists_one(k, object.data[k].contains('x'))",
    "object.metadata.labels.?team.orValue('none') == 'red'",
    "object.?data.?q.hasValue()",
    "quantity(object.data.q).isGreaterThan(quantity('1Gi'))",
    "isQuantity(object.data.q)",
    "object.data.a.matches('^[xy]+$')",
    "object.data.a.lowerAscii() in ['x', 'y']",
    "[object.data.a, object.data.b].join('-') == 'x-y'",
    "object.data.map(k, object.data[k]).filter(v, v != 'x').size() < 2",
    "oldObject == null",
    "oldObject != null && oldObject.data.a == object.data.a",
    "request.operation == 'UPDATE'",
    "request.namespace == namespaceObject.metadata.name",
    "request.resource.resource == 'configmaps'",
    "request.dryRun",
    "has(namespaceObject.metadata.labels)",
    "format.dns1123Label().validate(object.data.a).hasValue()",
    "semver(object.data.s).isLessThan(semver('2.0.0'))",
    "ip(object.data.ip).family() == 4",
    "timestamp('2026-01-01T00:00:00Z').getFullYear() == 2026",
    "duration('1h') > duration('59m')",
    "authorizer.requestResource.check('create').allowed()",
    "authorizer.group('').resource('pods').namespace('default').check('get').allowed()",
)
_WITH_PARAMS = (
    "object.data.a == params.data.a",
    "int(object.data.n) <= int(params.data.max)",
    "params == null || params.data.size() > 0",
    "params.metadata.name != 'p1'",
    "has(params.data.none)",
)
_MESSAGES = (
    "'a is ' + object.data.a",
    "string(object.data.size())",
    "''",
    "'two\\nlines'",
    "'n: ' + string(int(object.data.n) + 1)",
)
_VALUES = ("'v'", "object.data.a", "null", "string(object.data.none)", "object.metadata.name")
_CHANGES = (
    'Object{metadata: Object.metadata{labels: {"new": "1"}}}',
    'Object{metadata: Object.metadata{annotations: {"a/b": string(object.data.size())}}}',
    'Object{data: {"a": object.data.a + "!"}}',
    "has(object.data.b) ? Object{data: {'b': 'changed'}} : Object{}",
    "Object{metadata: Object.metadata{?labels: optional.none()}}",
    "Object{data: Object.data{x: 'y'}}",
    "Object{metadata: Object.wrong{labels: {'a': 'b'}}}",
    "Object{metadata: Object.metadata{finalizers: ['example.com/a', 'example.com/b']}}",
    '[JSONPatch{op: "add", path: "/data/c", value: "c"}]',
    '[JSONPatch{op: "remove", path: "/data/b"}]',
    '[JSONPatch{op: "replace", path: "/data/a", value: string(1 + 1)}]',
    '[JSONPatch{op: "test", path: "/data/a", value: "x"}, JSONPatch{op: "remove", path: "/data/a"}]',
    '[JSONPatch{op: "copy", from: "/data/a", path: "/data/copied"}]',
    '[JSONPatch{op: "move", from: "/data/none", path: "/data/moved"}]',
    '[JSONPatch{op: "add", path: "/metadata/labels/" + jsonpatch.escapeKey("x/y~z"), value: "v"}]',
    'has(object.data.n) ? [JSONPatch{op: "add", path: "/data/d", value: object.data.n}] : []',
)
_POD_CHANGES = (
    (
        "Object{spec: Object.spec{containers: object.spec.containers.map(c, "
        "Object.spec.containers{name: c.name, imagePullPolicy: 'Always'})}}"
    ),
    "Object{spec: Object.spec{initContainers: [Object.spec.initContainers{name: 'i', image: 'i'}]}}",
    (
        "Object{spec: Object.spec{containers: [Object.spec.containers{name: 'side', image: 's', "
        "env: [Object.spec.containers.env{name: 'A', value: '1'}]}]}}"
    ),
    (
        "Object{spec: Object.spec{containers: [Object.spec.containers{name: 'b', "
        "env: [Object.spec.containers.env{name: 'A', value: '2'}, "
        "Object.spec.containers.env{name: 'B', value: '3'}]}, "
        "Object.spec.containers{name: 'a', ports: [Object.spec.containers.ports{containerPort: 80}]}]}}"
    ),
    "Object{spec: Object.spec{containers: [Object.spec.containers{name: 'a', args: ['x']}]}}",
    "Object{spec: Object.spec{nodeSelector: {'disk': 'ssd'}}}",
    "Object{spec: Object.spec{securityContext: Object.spec.securityContext{runAsNonRoot: true}}}",
    "Object{spec: Object.spec{tolerations: [Object.spec.tolerations{key: 'a'}]}}",
    (
        "Object{spec: Object.spec{containers: [Object.spec.containers{name: 'a', "
        "resources: Object.spec.containers.resources{limits: {'cpu': '1'}}}]}}"
    ),
    (
        "Object{spec: Object.spec{containers: [Object.spec.containers{name: 'a'}, "
        "Object.spec.containers{name: 'a'}]}}"
    ),
    '[JSONPatch{op: "add", path: "/spec/containers/0/args", value: ["x"]}]',
    (
        '[JSONPatch{op: "add", path: "/spec/containers/-", value: '
        'Object.spec.containers{name: "c", image: "c"}}]'
    ),
    '[JSONPatch{op: "add", path: "/spec/nodeSelector", value: {"disk": "ssd"}}]',
)


@dataclass(frozen=True, slots=True)
class Case:
    """A policy with its bindings, and the objects that it is asked about."""

    name: str
    policy: Json
    bindings: tuple[Json, ...]
    objects: tuple[Json, ...]


def parameters() -> list[Json]:
    """Returns the parameter objects of bindings, in the namespace of all objects."""
    return [
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": name, "namespace": SPACE, "labels": labels},
            "data": data,
        }
        for name, labels, data in (
            ("p1", {"group": "one"}, {"a": "x", "max": "5"}),
            ("p2", {"group": "one"}, {"a": "y", "max": "1"}),
            ("p3", {"group": "two"}, {"a": "x", "max": "many"}),
        )
    ]


def cases(seed: int, count: int, *, mutating: bool = False) -> Iterator[Case]:
    """Yields so many cases of a seed."""
    for number in range(count):
        chance = random.Random(f"{seed}/{number}/{mutating}")
        name = f"{'m' if mutating else 'v'}{seed}-{number}"
        yield (_mutating if mutating else _validating)(chance, name)


def _expression(chance: random.Random, *, params: bool, variables: list[str]) -> str:
    """A test, or several that are joined."""
    known = [*_TESTS, *(_WITH_PARAMS * 3 if params else ()), *variables * 4]
    text = chance.choice(known)
    while chance.random() < 0.35:
        other = chance.choice(known)
        text = chance.choice(
            (
                f"({text}) || ({other})",
                f"({text}) && ({other})",
                f"!({text})",
                f"({other}) ? ({text}) : ({other})",
            )
        )
    return text


def _conditions(chance: random.Random) -> list[Json]:
    if chance.random() < 0.6:
        return []
    usable = [one for one in _TESTS if "variables" not in one]
    return [
        {"name": f"c{number}", "expression": chance.choice(usable)}
        for number in range(chance.randint(1, 2))
    ]


def _matched(chance: random.Random, name: str, resource: str) -> Json:
    rule = {
        "apiGroups": [chance.choice(("", "", "*"))],
        "apiVersions": [chance.choice(("v1", "v1", "*", "v2"))],
        "operations": chance.choice((["CREATE", "UPDATE"], ["CREATE"], ["UPDATE", "CREATE"])),
        "resources": [chance.choice((resource, resource, "*", f"{resource}/*"))],
        "scope": chance.choice(("*", "Namespaced", "*", "Cluster")),
    }
    made: Json = {
        "resourceRules": [rule],
        "objectSelector": {"matchLabels": {CASE: name}},
        "matchPolicy": chance.choice(("Equivalent", "Exact")),
    }
    if chance.random() < 0.2:
        made["excludeResourceRules"] = [{**rule, "resourceNames": [f"{name}-0"]}]
    if chance.random() < 0.2:
        selector = chance.choice((SPACE, "other"))
        made["namespaceSelector"] = {"matchLabels": {"kubernetes.io/metadata.name": selector}}
    return made


def _binding(chance: random.Random, kind: str, name: str, number: int, *, params: bool) -> Json:
    spec: Json = {"policyName": name}
    if kind.startswith("V"):
        spec["validationActions"] = chance.choice(
            (["Deny"], ["Deny"], ["Deny", "Audit"], ["Audit"])
        )
    if params and chance.random() < 0.9:
        spec["paramRef"] = {
            "parameterNotFoundAction": chance.choice(("Deny", "Allow")),
            **chance.choice(
                (
                    {"name": "p1"},
                    {"name": "p2", "namespace": SPACE},
                    {"name": "none"},
                    {"selector": {"matchLabels": {"group": "one"}}},
                    {"selector": {"matchLabels": {"group": "three"}}},
                )
            ),
        }
    if chance.random() < 0.2:
        spec["matchResources"] = {
            "objectSelector": {"matchExpressions": [{"key": "team", "operator": "Exists"}]}
        }
    return {
        "apiVersion": API,
        "kind": f"{kind}AdmissionPolicyBinding",
        "metadata": {"name": f"{name}-b{number}"},
        "spec": spec,
    }


def _validating(chance: random.Random, name: str) -> Case:
    params = chance.random() < 0.5
    variables = []
    names: list[str] = []
    for number in range(chance.choice((0, 0, 1, 2))):
        text = _expression(chance, params=params, variables=names)
        variables.append({"name": f"v{number}", "expression": text})
        names.append(f"variables.v{number}")
    validations = []
    for _ in range(chance.randint(1, 3)):
        one: Json = {"expression": _expression(chance, params=params, variables=names)}
        if chance.random() < 0.4:
            one["messageExpression"] = chance.choice(_MESSAGES)
        if chance.random() < 0.3:
            one["message"] = "  said  "
        if chance.random() < 0.3:
            one["reason"] = chance.choice(("Forbidden", "Unauthorized", "RequestEntityTooLarge"))
        validations.append(one)
    spec: Json = {
        "failurePolicy": chance.choice(("Fail", "Fail", "Ignore")),
        "matchConstraints": _matched(chance, name, "configmaps"),
        "matchConditions": _conditions(chance),
        "variables": variables,
        "validations": validations,
    }
    if chance.random() < 0.3:
        value = chance.choice(_VALUES)
        value = value if value == "null" else f"string({value})"
        spec["auditAnnotations"] = [{"key": "k", "valueExpression": value}]
    if params:
        spec["paramKind"] = {"apiVersion": "v1", "kind": "ConfigMap"}
    return _case(chance, "Validating", name, spec, params=params)


def _mutating(chance: random.Random, name: str) -> Case:
    is_pod = chance.random() < 0.5
    params = chance.random() < 0.3
    usable = _POD_CHANGES + _CHANGES[:2] if is_pod else _CHANGES
    mutations = []
    for _ in range(chance.randint(1, 2)):
        text = chance.choice(usable)
        is_patch = text.startswith("[") or "? [" in text
        mutations.append(
            {"patchType": "JSONPatch", "jsonPatch": {"expression": text}}
            if is_patch
            else {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": text}}
        )
    spec: Json = {
        "failurePolicy": chance.choice(("Fail", "Ignore")),
        "reinvocationPolicy": chance.choice(("Never", "Never", "IfNeeded")),
        "matchConstraints": _matched(chance, name, "pods" if is_pod else "configmaps"),
        "matchConditions": [] if is_pod else _conditions(chance),
        "mutations": mutations,
    }
    if params:
        spec["paramKind"] = {"apiVersion": "v1", "kind": "ConfigMap"}
    return _case(chance, "Mutating", name, spec, params=params, is_pod=is_pod)


def _case(
    chance: random.Random, kind: str, name: str, spec: Json, *, params: bool, is_pod: bool = False
) -> Case:
    policy = {
        "apiVersion": API,
        "kind": f"{kind}AdmissionPolicy",
        "metadata": {"name": name},
        "spec": spec,
    }
    bindings = tuple(
        _binding(chance, kind, name, number, params=params)
        for number in range(chance.choice((1, 1, 1, 2)))
    )
    objects = tuple((_pod if is_pod else _config)(chance, name, number) for number in range(3))
    return Case(name, policy, bindings, objects)


def _metadata(chance: random.Random, name: str, number: int) -> Json:
    labels = {CASE: name}
    if chance.random() < 0.5:
        labels["team"] = chance.choice(("red", "blue"))
    return {"name": f"{name}-{number}", "namespace": SPACE, "labels": labels}


def _config(chance: random.Random, name: str, number: int) -> Json:
    given = {
        "a": ("x", "y", "xy", "Not-A-Label"),
        "b": ("y", "z"),
        "n": ("1", "4", "many"),
        "z": ("0", "1"),
        "q": ("2Gi", "1", "no"),
        "s": ("1.2.3", "2.0.0", "v"),
        "ip": ("10.0.0.1", "::1", "1"),
    }
    data = {key: chance.choice(values) for key, values in given.items() if chance.random() < 0.6}
    made: Json = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": _metadata(chance, name, number),
    }
    return {**made, "data": data} if data else made


def _pod(chance: random.Random, name: str, number: int) -> Json:
    containers = [{"name": "a", "image": "a"}, {"name": "b", "image": "b"}]
    if chance.random() < 0.5:
        containers[1]["env"] = [{"name": "A", "value": "0"}, {"name": "C", "value": "9"}]  # type: ignore[assignment]
    if chance.random() < 0.5:
        containers.reverse()
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": _metadata(chance, name, number),
        "spec": {"containers": containers, "automountServiceAccountToken": False},
    }
