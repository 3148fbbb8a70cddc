"""Policies in CEL by chance, and objects for them: what is bound, in every place that may read it."""

import random
from typing import Any

Json = dict[str, Any]

CONDITIONS = (
    "true",
    "false",
    "object == null",
    "object.spec.n == 1",
    "object.spec.missing == 1",
    "oldObject.spec.n == 1",
    "has(object.spec) && object.spec.n > 0",
    "variables.anyObject.spec.n in [1, 2]",
    "request.operation == 'CREATE' || object.spec.missing == 1",
    "request.name == 'p'",
    "namespaceObject == null",
    "namespaceObject.metadata.labels.env == 'x'",
    "variables.params == null",
    "variables.params.x == 1",
    "variables.params.?x.hasValue()",
    "variables.params.list.exists(i, i == 'a')",
    "has(variables.params.list) && variables.params.list.all(i, i in object.metadata.labels)",
    "object.spec.?m[?0].orValue(3) == 3",
    "object.metadata.labels.all(k, k.startsWith('a'))",
    "object.spec.items.map(i, i.v).sum() == 3",
    "object.spec.items.filter(i, i.v > 1).size() == 1",
    "object.spec.items.exists_one(i, i.v == 1)",
    "quantity(object.spec.q).isLessThan(quantity('1Gi'))",
    "1 / (object.spec.n - 1) == 0",
)
VALUES = (
    *CONDITIONS,
    "object.spec.items",
    "object.spec.items.map(i, i.v)",
    "object.spec.n + 1",
    "'a' + string(object.spec.n)",
    "object.spec.?q.orValue('1Mi')",
    "variables.params.list",
    "has(variables.params.x) ? variables.params.x : 7",
    "variables.anyObject.metadata.?labels.orValue({})",
    "request.userInfo.username",
    "[1, 2, 3].map(x, x * object.spec.n)",
)
OF_THE_CONSTRAINT = ("params.metadata.name", "params.spec.parameters", "has(params.spec.match)")
READING = (
    "dyn(variables.{0}) == 1",
    "variables.{0} == variables.{0}",
    "size(dyn(variables.{0})) > 1",
    "({1}) || dyn(variables.{0}) == 2",
    "type(variables.{0}) == string",
    "[dyn(variables.{0})].all(x, x != 3)",
)
MESSAGES = (
    "'n ' + string(object.spec.n)",
    "'at ' + request.operation",
    "string(object.spec.missing)",
    "string(size(object.spec.items))",
    "''",
    "'l\\n1'",
    "variables.anyObject.metadata.name + '!'",
    "string(variables.params.x)",
    "namespaceObject.metadata.name",
    "object.spec.items.map(i, string(i.v)).join(',')",
)


def _condition(chance: random.Random, names: list[str]) -> str:
    text = chance.choice(CONDITIONS)
    if names and chance.random() < 0.5:
        return chance.choice(READING).format(chance.choice(names), text)
    return text


def source(chance: random.Random, *, reads_constraint: bool = True) -> Json:
    """A template's source, which both of us take; ``reads_constraint`` if variables may."""
    names: list[str] = []
    variables = []
    values = VALUES + (OF_THE_CONSTRAINT if reads_constraint else ())
    for number in range(chance.randint(0, 4)):
        text = _condition(chance, names) if chance.random() < 0.3 else chance.choice(values)
        variables.append({"name": f"v{number}", "expression": text})
        names.append(f"v{number}")
    validations = []
    for _ in range(chance.randint(1, 4)):
        validation = {"expression": _condition(chance, names)}
        if chance.random() < 0.4:
            validation["message"] = chance.choice(("told", " told ", "", "{}"))
        if chance.random() < 0.5:
            validation["messageExpression"] = chance.choice(MESSAGES)
        validations.append(validation)
    made: Json = {"variables": variables, "validations": validations}
    if chance.random() < 0.4:
        count = chance.randint(1, 3)
        made["matchCondition"] = [
            {"name": f"c{number}", "expression": _condition(chance, names)}
            for number in range(count)
        ]
    if chance.random() < 0.3:
        made["failurePolicy"] = chance.choice(("Fail", "Ignore"))
    return made


def spec(chance: random.Random) -> Json:
    """A constraint's spec, with parameters or without."""
    parameters = chance.choice((None, {}, {"x": 1}, {"x": 1, "list": ["a"]}, {"list": []}))
    return {} if parameters is None else {"parameters": parameters}


def thing(chance: random.Random) -> Json:
    """An object; what policies read may be there, or be of another type."""
    fields = {
        "n": (1, 2, 0, "x", 1.5, None),
        "items": ([{"v": 1}, {"v": 2}], [], [{"v": "a"}], [{}], "x", None),
        "q": ("1Mi", "2Gi", "zz", 5),
        "m": ([3], [], {"a": 1}, [None]),
    }
    made = {name: chance.choice(values) for name, values in fields.items() if chance.random() < 0.7}
    metadata: Json = {"name": "p", "namespace": "d"}
    if chance.random() < 0.7:
        metadata["labels"] = {"a": "b"}
    document: Json = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata}
    if chance.random() < 0.9:
        document["spec"] = made
    return document
