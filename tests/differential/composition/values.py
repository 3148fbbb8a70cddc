"""Inputs of composed literals: values of every kind, with numerals and sets."""

import functools
from typing import Any, Final

import orjson

from webhook.rego.engine import EvaluationContext, compile_modules
from webhook.rego.run.values import UNDEFINED
from webhook.rego.syntax.parser import parse_query

JSON: Final = (
    *("null", "true", "false", "0", "1", "2", "-1", "80", "443", "8080", "1.5", "0.1"),
    "9007199254740993",
    *('""', '"a"', '"b"', '"ab"', '"ba"', '"1"', '"a%sé"', '"true"'),
    *("[]", "[1]", '["a"]', '["a", "b"]', '[1, "a", null]', "[[1], [2]]", '[["a", 1], {}]'),
    *("{}", '{"a": 1}', '{"a": "b"}', '{"a": null}', '{"a": false, "b": "a"}', '{"b": [1, "a"]}'),
    *('{"a": {"b": "c"}}', '{"a": [1, 2], "1": "x"}', '[{"a": 1}, {"a": "b"}, {"b": 2}]'),
)
"""Values of manifests: they are decoded as the server decodes them."""

REGO: Final = (
    *("set()", "{1}", '{"a"}', '{"a", "b"}', '{1, "a", [1], {"a": 1}}', '[{"a"}, {1}]'),
    *('{1: "a", "a": 1}', '{["a"]: 1}', '{"a": {"b"}}', "[3.0, 1]", "{1e3, 2}"),
    # No two are equal and written differently: OPA answers the second like the first, by its caches.
    *("7.0", "1e4", "123456789012345678901234567890", "2.50", "1e-7", "100000000000000000000.5"),
)
"""Values that only policies make."""

LARGE: Final = {"123456789012345678901234567890", "100000000000000000000.5"}
"""With them OPA 1.17 does sums with fewer digits (``webhook.rego.builtins.registry``)."""

CONSTANTS: Final = {
    "ints": "[80, 8080, 1, 0, -1]",
    "strings": '["a", "ab", "b", "1", ""]',
    "booleans": "[true, false]",
    "lists": '[[], ["a"], [1, "a"], [[1]]]',
    "objects": '[{"a": 1}, {"b": "a"}, {}, {"a": {"b": "c"}}]',
    "sets": '[{1}, {"a", "b"}, set()]',
    "numbers": "[1.5, 2, 5.0, -0.5]",
    "mixed": '[1, "a", null, [1], {"a": 1}, {"a"}, true]',
    "members": '{"a", "b", "ab"}',
    "fields": '{"a": 1, "b": "ab"}',
    "one": '["ab"]',
    "none": "[]",
}
"""Collections written out: what goes through them has values whose kind is known, and often they."""

EXTRA: Final = (
    '"one": 1, "a": "a", "k": "b", "n": null, "e": [], "s": {"a", "b"}, "xs": ["a", 1, "ab"], '
    '"o": {"a": 1, "b": {"c": "ab"}}, "v": {"a": {"b": "c"}}'
)
"""Other parts of the input, which literals compare with."""

DATA: Final[dict[str, Any]] = {
    "d": {"a": 1, "b": {"c": "ab"}, "xs": ["a", 1, None], "ab": {"a": [1]}}
}
"""Base documents."""


def terms(*, large: bool = True) -> tuple[str, ...]:
    """All values as Rego writes them."""
    return tuple(text for text in (*JSON, *REGO) if large or text not in LARGE)


def input_term(values: tuple[str, ...]) -> str:
    """An input that has these values, as a term for the oracle."""
    return f'{{"parameters": {{"vs": [{", ".join(values)}]}}, "review": {{{EXTRA}}}}}'


@functools.cache
def input_value(values: tuple[str, ...]) -> Any:
    """The same as our engine gets it: what JSON can say as it is decoded."""
    found = evaluated(input_term(values))
    found["parameters"]["vs"] = [
        orjson.loads(text) if text in JSON else evaluated(text) for text in values
    ]
    return found


def evaluated(term: str) -> Any:
    """The value of a term without variables."""
    query = compile_modules([]).query(parse_query(f"x = {term}"))
    (bindings,) = query(UNDEFINED, {}, EvaluationContext())
    return bindings["x"]
