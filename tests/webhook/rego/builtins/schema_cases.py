"""JSON schemas and documents drawn at random, the same ones for the same seed."""

import json
import random

NAMES = "abcd"
TYPES = ["array", "boolean", "integer", "null", "number", "object", "string"]
TEXTS = [
    *("", "a", "ab", "abc", "a.b", "x y", "é", "{a", "[", "-a", "a-b.c"),
    *("2020-01-01", "10:00:00Z", "2020-01-01T10:00:00Z", "1.2.3.4", "::1", "/a/~0", "0#"),
    *("a@b.c", "A <a@b>", "http://a/b", "550e8400-e29b-41d4-a716-446655440000"),
]
FORMATS = [
    *("date", "time", "date-time", "hostname", "email", "ipv4", "ipv6", "uri", "uri-reference"),
    *("uri-template", "uuid", "regex", "json-pointer", "relative-json-pointer", "unknown"),
]
NUMBERS = [0, 1, 2, 3, 5, 10, -1, 100, 1000000, 12345678, 2**60, 0.5, 1.5, -2.25, 1e21, 1e-7, 3.0]
LIMITS = [0, 1, 2, 10, 0.5, 1.5, 1000000, 12345678, 123456.5, 0.00001, 1e21, 2**60, True]
DRAFTS = [
    "http://json-schema.org/draft-04/schema#",
    "http://json-schema.org/draft-06/schema",
    "http://json-schema.org/draft-07/schema#",
    "x",
]


class Generator:
    """Draws schemas of every keyword, some of them wrong, and documents to hold against them."""

    def __init__(self, seed):
        self.source = random.Random(seed)

    def value(self, depth=0):
        """Any JSON value."""
        draw = self.source.random() * (1 if depth < 3 else 0.7)
        if draw < 0.1:
            return None
        if draw < 0.2:
            return self.source.random() < 0.5
        if draw < 0.45:
            return self.source.choice(NUMBERS)
        if draw < 0.7:
            return self.source.choice(TEXTS)
        if draw < 0.85:
            return [self.value(depth + 1) for _ in range(self.source.randint(0, 3))]
        names = self.source.sample(NAMES, self.source.randint(0, 3))
        return {name: self.value(depth + 1) for name in names}

    def document(self):
        """Returns a document for a schema: mostly an object."""
        if self.source.random() < 0.3:
            drawn = self.value()
            return drawn if isinstance(drawn, dict | list) else json.dumps(drawn)
        names = self.source.sample(NAMES, self.source.randint(0, 4))
        return {name: self.value(1) for name in names}

    def schema(self, depth=0):
        """A schema of one to three keywords."""
        if self.source.random() < 0.02 and depth:
            return self.value(2)
        if depth and (depth > 3 or self.source.random() < 0.1):
            return self.source.choice([{}, True, False, {"type": "string"}, {"type": "integer"}])
        found = {}
        for keyword in self.source.sample(sorted(KEYWORDS), self.source.randint(1, 3)):
            found[keyword] = KEYWORDS[keyword](self, depth)
            if self.source.random() < 0.01:
                found[keyword] = self.value(2)
        if not depth and found.get("$ref") == "#/definitions/x":
            found["definitions"] = {"x": self.schema(2), "y": self.schema(2)}
        return found

    def names(self, count):
        """Some property names."""
        return self.source.sample(NAMES, count)


def _one(g, depth):
    return g.schema(depth + 1)


def _several(g, depth):
    return [g.schema(depth + 1) for _ in range(g.source.randint(1, 3))]


def _maybe(g, depth):
    return g.source.choice([True, False, g.schema(depth + 1)])


def _size(g, _depth):
    return g.source.choice([0, 1, 2, 3])


def _limit(g, _depth):
    return g.source.choice(LIMITS)


KEYWORDS = {
    "type": lambda g, _: g.source.choice([*TYPES, g.source.sample(TYPES, 2), "foo"]),
    "properties": lambda g, d: {name: g.schema(d + 1) for name in g.names(2)},
    "additionalProperties": _maybe,
    "patternProperties": lambda g, d: {g.source.choice(["^a", "b$", "."]): g.schema(d + 1)},
    "propertyNames": _one,
    "dependencies": lambda g, d: {
        name: g.source.choice([["a", "b"], g.schema(d + 1)]) for name in g.names(1)
    },
    "items": lambda g, d: g.source.choice([g.schema(d + 1), [g.schema(d + 1), g.schema(d + 1)]]),
    "additionalItems": _maybe,
    "contains": _one,
    "uniqueItems": lambda _g, _: True,
    "required": lambda g, _: g.names(2),
    "minimum": _limit,
    "maximum": _limit,
    "exclusiveMinimum": _limit,
    "exclusiveMaximum": _limit,
    "multipleOf": _limit,
    "minLength": _size,
    "maxLength": _size,
    "minItems": _size,
    "maxItems": _size,
    "minProperties": _size,
    "maxProperties": _size,
    "pattern": lambda g, _: g.source.choice(["^a", "b+", "[", "(?=a)"]),
    "format": lambda g, _: g.source.choice(FORMATS),
    "const": lambda g, _: g.value(1),
    "enum": lambda g, _: [g.value(1) for _ in range(g.source.randint(0, 3))],
    "oneOf": _several,
    "anyOf": _several,
    "allOf": _several,
    "not": _one,
    "if": _one,
    "then": _one,
    "else": _one,
    "$ref": lambda g, _: g.source.choice(["#/definitions/x", "#/definitions/x", "#/nope", "foo"]),
    "$schema": lambda g, _: g.source.choice(DRAFTS),
    "title": lambda _g, _: "t",
}
