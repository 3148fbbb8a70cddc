"""The memory of a constraint, by the interpreter's own account of allocations."""

from __future__ import annotations

import gc
import json
import tracemalloc

from tests.webhook.constraint.policies import client, constraint, template
from webhook.api.encoding import encode_to_keep
from webhook.constraint.match import MATCHES_MAX, compile_match
from webhook.constraint.structural import with_defaults

COUNT = 200

BYTES_MAX = 4_500
"""Of a constraint as below. It took 10,100 where each had a match of its own, a copy of its whole
document, and 4 KiB for its parameters' key; its document alone is 1,900."""


def constraint_text(number):
    """A constraint as people write them, as a cluster sends it: every object in it is its own."""
    match = {
        "kinds": [{"apiGroups": [""], "kinds": ["Pod"]}],
        "excludedNamespaces": ["kube-system", "gatekeeper-*"],
        "labelSelector": {"matchLabels": {"team": "payments"}},
    }
    made = constraint(name=f"c{number:05}", match=match, parameters={"labels": ["owner", "team"]})
    return json.dumps(made)


def test_a_constraint_takes_little_beside_its_document():
    subject = client()
    subject.add_template(
        template(schema={"type": "object", "x-kubernetes-preserve-unknown-fields": True})
    )
    texts = [constraint_text(number) for number in range(COUNT)]
    subject.add_constraint(json.loads(texts[0]))  # fills the caches
    assert subject.snapshot.revision
    gc.collect()
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        for text in texts[1:]:
            subject.add_constraint(json.loads(text))
        gc.collect()
        taken = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    assert taken / (COUNT - 1) < BYTES_MAX


def test_matches_that_are_written_alike_are_one():
    def match(*namespaces):
        return {"namespaces": [*namespaces], "scope": "Namespaced"}

    assert compile_match(match("a")) is compile_match(match("a"))
    assert compile_match(match("a")) is not compile_match(match("b"))
    assert compile_match({"name": True}) is not compile_match({"name": 1})


def test_of_many_different_matches_few_are_kept():
    first = compile_match({"name": "first"})
    for number in range(MATCHES_MAX):
        compile_match({"name": f"n{number}"})
    assert compile_match({"name": "first"}) is not first


def test_what_lacks_no_default_is_not_copied():
    schema = {
        "type": "object",
        "properties": {
            "a": {"type": "object", "properties": {"x": {"type": "integer", "default": 1}}},
            "b": {"type": "array", "items": {"type": "object", "additionalProperties": {}}},
        },
    }
    whole = {"a": {"x": 2}, "b": [{"c": {}}]}
    assert with_defaults(whole, schema) is whole
    part = {"a": {}, "b": [{"c": {}}]}
    filled = with_defaults(part, schema)
    assert (filled, part["a"]) == ({"a": {"x": 1}, "b": [{"c": {}}]}, {})
    assert filled["b"] is part["b"]


def test_what_is_kept_takes_as_much_memory_as_it_needs():
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        kept = [encode_to_keep({"a": number}) for number in range(COUNT)]
        taken = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    assert taken < COUNT * 100
    assert kept[7] == b'{"a":7}'
