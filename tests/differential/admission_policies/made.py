"""Random ValidatingAdmissionPolicies and MutatingAdmissionPolicies with bindings, parameters, requests.

Each policy is about the objects that carry its own label, or have its own names, so that an API
server may have all of them at once.
"""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tests.differential.admission_policies.expressions import (
    CHANGES,
    MESSAGES,
    OF_REQUESTS,
    PATCHES_OF_LITTLE,
    POD_CHANGES,
    TESTS,
    VALUES,
    WITH_PARAMS,
)
from tests.differential.admission_policies.requests import (
    CASE,
    CONFIG,
    KINDS,
    POD,
    SPACE,
    UPDATED,
    WIDGET,
    Json,
    Kind,
    Request,
    request_of,
)

API = "admissionregistration.k8s.io/v1"


@dataclass(frozen=True, slots=True)
class Case:
    """A policy with its bindings, and the requests that it is asked about."""

    name: str
    policy: Json
    bindings: tuple[Json, ...]
    requests: tuple[Request, ...]

    @property
    def objects(self) -> list[Json]:
        """Returns the objects of the requests."""
        return [one.object for one in self.requests if one.object is not None]


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


def cases(seed: int, count: int, *, mutating: bool = False, varied: bool = False) -> Iterator[Case]:
    """Yields so many cases of a seed.

    All requests create a ConfigMap or a Pod. With ``varied`` validating policies get requests of
    every kind and operation, and mutating ones updates.
    """
    for number in range(count):
        chance = random.Random(f"{seed}/{number}/{mutating}{'/varied' if varied else ''}")
        name = f"{'m' if mutating else 'v'}{seed}-{number}{'r' if varied else ''}"
        if mutating:
            is_pod = not varied and chance.random() < 0.5
            yield _mutating(chance, name, UPDATED if varied else POD if is_pod else CONFIG)
        else:
            yield _validating(chance, name, chance.choice(KINDS) if varied else CONFIG, varied)


def _expression(
    chance: random.Random, tests: Sequence[str], *, params: bool, variables: list[str]
) -> str:
    """A test, or several that are joined."""
    known = [*tests, *(WITH_PARAMS * 3 if params else ()), *variables * 4]
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


def _conditions(chance: random.Random, tests: Sequence[str]) -> list[Json]:
    if chance.random() < 0.6:
        return []
    return [
        {"name": f"c{number}", "expression": chance.choice(tests)}
        for number in range(chance.randint(1, 2))
    ]


def _matched(chance: random.Random, name: str, kind: Kind, *, varied: bool = False) -> Json:
    sub = f"/{kind.sub}" if kind.sub else ""
    resource = f"{kind.resource}{sub}"
    operations = [["CREATE", "UPDATE"], ["CREATE"], ["UPDATE", "CREATE"]]
    if varied:
        operations += [["*"], ["DELETE"], list(kind.operations)]
    # To us any version of a custom resource is served (docs/admission-policies.md, Equivalent).
    other = "v1" if kind is WIDGET else "v2"
    rule: Json = {
        "apiGroups": [chance.choice((kind.group, kind.group, "*"))],
        "apiVersions": [chance.choice(("v1", "v1", "*", other))],
        "operations": chance.choice(operations),
        "resources": [
            chance.choice((resource, resource, f"*{sub}", f"{kind.resource}/*", *["*/*"] * varied))
        ],
        "scope": chance.choice(("*", "Namespaced", "*", "Cluster")),
    }
    selected: Json = {"objectSelector": {"matchLabels": {CASE: name}}}
    if kind.sub:  # what is sent to a subresource has no labels
        rule["resourceNames"] = [f"{name}-{number}" for number in range(3)]
        selected = {}
    made: Json = {
        "resourceRules": [rule],
        **selected,
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


def _validating(chance: random.Random, name: str, kind: Kind, varied: bool) -> Case:
    tests = (*TESTS, *OF_REQUESTS * 3) if varied else TESTS
    params = chance.random() < 0.5
    variables = []
    names: list[str] = []
    for number in range(chance.choice((0, 0, 1, 2))):
        text = _expression(chance, tests, params=params, variables=names)
        variables.append({"name": f"v{number}", "expression": text})
        names.append(f"variables.v{number}")
    validations = []
    for _ in range(chance.randint(1, 3)):
        one: Json = {"expression": _expression(chance, tests, params=params, variables=names)}
        if chance.random() < 0.4:
            one["messageExpression"] = chance.choice(MESSAGES)
        if chance.random() < 0.3:
            one["message"] = "  said  "
        if chance.random() < 0.3:
            one["reason"] = chance.choice(("Forbidden", "Unauthorized", "RequestEntityTooLarge"))
        validations.append(one)
    spec: Json = {
        "failurePolicy": chance.choice(("Fail", "Fail", "Ignore")),
        "matchConstraints": _matched(chance, name, kind, varied=varied),
        "matchConditions": _conditions(chance, tests),
        "variables": variables,
        "validations": validations,
    }
    if chance.random() < 0.3:
        value = chance.choice(VALUES)
        value = value if value == "null" else f"string({value})"
        spec["auditAnnotations"] = [{"key": "k", "valueExpression": value}]
    if params:
        spec["paramKind"] = {"apiVersion": "v1", "kind": "ConfigMap"}
    return _case(chance, "Validating", name, spec, kind, params=params)


def _mutating(chance: random.Random, name: str, kind: Kind) -> Case:
    is_pod = kind is POD
    params = chance.random() < 0.3
    usable: tuple[str, ...] = POD_CHANGES + CHANGES[:2] if is_pod else CHANGES
    if kind is UPDATED:
        usable += PATCHES_OF_LITTLE
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
        "matchConstraints": _matched(chance, name, kind),
        "matchConditions": [] if is_pod else _conditions(chance, TESTS),
        "mutations": mutations,
    }
    if params:
        spec["paramKind"] = {"apiVersion": "v1", "kind": "ConfigMap"}
    return _case(chance, "Mutating", name, spec, kind, params=params)


def _case(
    chance: random.Random, prefix: str, name: str, spec: Json, kind: Kind, *, params: bool
) -> Case:
    policy = {
        "apiVersion": API,
        "kind": f"{prefix}AdmissionPolicy",
        "metadata": {"name": name},
        "spec": spec,
    }
    bindings = tuple(
        _binding(chance, prefix, name, number, params=params)
        for number in range(chance.choice((1, 1, 1, 2)))
    )
    requests = tuple(request_of(chance, kind, name, number) for number in range(3))
    return Case(name, policy, bindings, requests)
