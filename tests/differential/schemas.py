"""Schemas of parameters by chance: mostly sound, with what a CRD may not have here and there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from random import Random

Json = dict[str, Any]

DEPTH_MAX = 3
RULES = (
    "self == 1",
    "self.size() > 0",
    "self.a == 'x'",
    "oldSelf == self",
    "self.all(x, x > 0)",
    "self.all(k, self[k] == 'a')",
    "size(self) < 3",
    "has(self.a)",
    "self.a.b == 1",
    "true",
    "'x'",
    "self.matches('[')",
    "self ==",
    "",
    "  ",
    "a\nb",
    "self.metadata.name == 'x'",
    "oldSelf.orValue(1) == 1",
    "self.exists(x, x.a == 'x')",
    "type(self) == int",
    "duration(self) > duration('1s')",
    "self.startsWith('x')",
    "self.isSorted()",
    "quantity(self).isGreaterThan(quantity('1'))",
    "self.__in__ == 1",
    "self.a-b == 1",
    "self.all(x, self.exists(y, x == y))",
    "self.all(x, x.all(y, y == 'a'))",
    "self.all(k, self.exists(l, k.matches(l)))",
    "self.contains(self)",
    "self == self && self.map(x, x).all(x, x in self)",
)
OTHERS = (
    "uniqueItems",
    "title",
    "description",
    "$ref",
    "id",
    "definitions",
    "patternProperties",
    "dependencies",
    "additionalItems",
    "$schema",
)
FORBIDDEN_WITHIN = (
    "type",
    "default",
    "title",
    "nullable",
    "additionalProperties",
    "x-kubernetes-validations",
    "x-kubernetes-list-type",
)


def schema(chance: Random, depth: int = 0) -> Json:
    """Returns a random schema; recurses by schema."""
    usual = ["object", "object", "array", "string", "integer", "boolean"]
    odd = [*usual, "number", "", "null", "int"]
    kind = chance.choice(odd if chance.random() < 0.15 else usual)
    found: Json = {"type": kind} if chance.random() < 0.93 else {}
    maybe = _Chance(chance, found)
    if depth < DEPTH_MAX and (kind == "object" or chance.random() < 0.05):
        names = ["a", "b", "c", "metadata", "kind", "apiVersion", "a-b", "in"]
        chosen = chance.sample(names, chance.randint(0, 3))
        maybe.set(0.75, "properties", {name: schema(chance, depth + 1) for name in chosen})
        more = [True, False, None, schema(chance, depth + 1), schema(chance, depth + 1)]
        maybe.choose(0.25, "additionalProperties", more)
        maybe.set(0.2, "required", chance.sample(["a", "b", "z"], chance.randint(0, 2)))
        maybe.choose(0.15, "x-kubernetes-map-type", ["atomic", "granular", "x", None])
    if depth < DEPTH_MAX and (kind == "array" or chance.random() < 0.05):
        maybe.set(0.9, "items", schema(chance, depth + 1))
        maybe.choose(0.4, "x-kubernetes-list-type", ["atomic", "set", "map", "map", "bad"])
        keys = chance.sample(["a", "b", "c"], chance.randint(0, 2))
        maybe.set(0.3, "x-kubernetes-list-map-keys", keys)
        maybe.choose(0.2, "maxItems", [0, 1, 5])
    if kind == "string" or chance.random() < 0.05:
        maybe.choose(0.2, "enum", [["x"], ["a", "b"], [], [None], [1]])
        maybe.choose(0.2, "pattern", ["^x", "[", "(?=a)", "a{1001}", ""])
        formats = ["date-time", "date", "byte", "duration", "ipv4", "uuid", "foo"]
        maybe.choose(0.2, "format", formats)
        maybe.choose(0.2, "maxLength", [0, 1, 10, -1])
    if kind in ("integer", "number"):
        maybe.choose(0.2, "minimum", [0, 1, 5])
        maybe.choose(0.2, "maximum", [0, 1, 5])
        maybe.choose(0.1, "exclusiveMinimum", [True, False])
    maybe.set(0.25, "default", value(chance, found if chance.random() < 0.7 else {}))
    maybe.choose(0.08, "nullable", [True, False])
    maybe.choose(0.06, "x-kubernetes-preserve-unknown-fields", [True, True, False])
    maybe.set(0.05, "x-kubernetes-embedded-resource", True)
    if "type" not in found:
        maybe.set(0.5, "x-kubernetes-int-or-string", True)
    if depth:
        rules = [rule(chance) for _ in range(chance.randint(1, 2))]
        maybe.set(0.2, "x-kubernetes-validations", rules)
    maybe.set(0.08, chance.choice(["allOf", "anyOf", "oneOf"]), [within(chance, found)])
    maybe.set(0.04, "not", within(chance, found))
    maybe.set(0.03, "anyOf", [{"type": "integer"}, {"type": "string"}])
    maybe.choose(0.03, chance.choice(OTHERS), [True, "x", "", {}, {"a": {}}, None])
    return found


class _Chance:
    """Sets keywords of a schema now and then."""

    def __init__(self, chance: Random, found: Json) -> None:
        self._chance = chance
        self._found = found

    def set(self, part: float, keyword: str, given: Any) -> None:
        """The keyword, in this part of all cases."""
        if self._chance.random() < part:
            self._found[keyword] = given

    def choose(self, part: float, keyword: str, choices: list[Any]) -> None:
        """The same with one of several values."""
        self.set(part, keyword, self._chance.choice(choices))


def within(chance: Random, outer: Json) -> Json:
    """Returns a schema inside of a logical operator."""
    found: Json = {}
    maybe = _Chance(chance, found)
    maybe.set(0.5, "pattern", "^x")
    maybe.set(0.3, "required", ["a"])
    names = [*(outer.get("properties") or {})][:1] or ["zz"]
    maybe.set(0.4, "properties", {name: {"minLength": 1} for name in names})
    maybe.set(0.15, "items", {"minLength": 1})
    forbidden = ["string", True, "set", None, [{"rule": "true"}]]
    maybe.choose(0.1, chance.choice(FORBIDDEN_WITHIN), forbidden)
    return found


def rule(chance: Random) -> Json:
    """A rule, whose path leads only where Kubernetes does not fall over it."""
    found: Json = {"rule": chance.choice(RULES)}
    maybe = _Chance(chance, found)
    maybe.choose(0.2, "message", ["m", "", "  ", "a\nb"])
    maybe.choose(0.2, "messageExpression", ["'x'", "1", "self", "", "  ", "self.a +"])
    maybe.choose(0.1, "reason", ["FieldValueInvalid", "Nope", ""])
    maybe.choose(0.15, "fieldPath", [".zz", "a", " "])
    maybe.choose(0.1, "optionalOldSelf", [True, False])
    return found


def value(chance: Random, of: Any, depth: int = 0) -> Any:
    """A value that mostly fits a schema."""
    kind = of.get("type") if isinstance(of, dict) and chance.random() < 0.85 else None
    if kind == "object" and depth < DEPTH_MAX:
        known = of.get("properties") or {}
        found = {
            name: value(chance, item, depth + 1)
            for name, item in known.items()
            if chance.random() < 0.7
        }
        return found | ({"extra": 1} if chance.random() < 0.2 else {})
    if kind == "array" and depth < DEPTH_MAX:
        items = of.get("items") or {}
        return [value(chance, items, depth + 1) for _ in range(chance.randint(0, 2))]
    choices: dict[str | None, list[Any]] = {
        "string": ["x", "a", "", "2020-01-01", "10.0.0.1"],
        "integer": [0, 1, 5, -3],
        "number": [0, 1.5],
        "boolean": [True, False],
    }
    anything = [None, 1, "x", True, [], {}, {"a": 1}, ["x"], 1.5]
    return chance.choice(choices.get(kind, anything))
