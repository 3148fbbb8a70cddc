"""A path of a local is read once, wherever that reading has happened for sure."""

import random

import pytest

from tests.webhook.rego.written import written
from webhook.rego.engine import EvaluationContext, compile_modules
from webhook.rego.run.text import to_json
from webhook.rego.syntax.parser import parse_module
from webhook.rego.write.common_reads import COMMON_FROM, CommonReads
from webhook.rego.write.references import References

PATHS = ("c.a.x", "c.a.y", "c.a", "c.b.x", "d.a.x", "c.a.x.z")
CONDITIONS = (
    "{0}",
    "not {0}",
    "{0} == {1}",
    "not {0} == {1}",
    "count([1 | {0}; {1}]) == 1",
    "count([k | some k in {0}; k != {1}]) > 0",
    "every k in {0} {{ k != {1} }}",
    "holds({0}, c)",
    "not holds({0}, d)",
    'v{2} := object.get(c, ["a", "x"], {0})',
    "input.{0} == {1} with input.c as d",
    "some k{2} in {0}; k{2} != {1}",
    "{{ {0} | {1} }} != set()",
)
VALUES = (False, True, None, 1, "w", [1, 2], {"z": 1}, {"z": False})
HEAD = """package p
holds(v, o) if { v == o.a.x; o.a.y }
holds(v, o) if { not o.a.y; v != o.b.x }
holds(v, o) if { o.b.x; v == o.a.y }
"""


def module_of(chance):
    """Rules that begin alike, with conditions about the same few paths."""
    rules = []
    for number in range(chance.randint(2, 5)):
        body = [
            chance.choice(CONDITIONS).format(chance.choice(PATHS), chance.choice(PATHS), at)
            for at in range(chance.randint(1, 5))
        ]
        rules.append(
            f"bad contains {number} if {{ some c in input.cs; d := input.d; {'; '.join(body)} }}"
        )
    return HEAD + "\n".join(rules) + "\n"


def object_of(chance):
    """An object that has some of the paths."""
    made = {}
    for name in ("a", "b"):
        if chance.random() < 0.8:
            inner = {key: chance.choice(VALUES) for key in ("x", "y") if chance.random() < 0.7}
            made[name] = inner if chance.random() < 0.9 else chance.choice(VALUES)
    return made


def compiled(source):
    return compile_modules([parse_module(source, "m.rego", "v1")]).rule("data.p.bad")


def text_of(source):
    """Returns the code written for the rule."""
    return written(source, "data.p.bad")[1]


def forgetful(monkeypatch):
    """Let every reading be made anew."""
    read = References._read

    def read_and_forget(self, of, run):
        name = read(self, of, run)
        self._function.reads = {}
        return name

    monkeypatch.setattr(References, "_read", read_and_forget)
    monkeypatch.setattr(CommonReads, "local", lambda *_: None)


@pytest.mark.parametrize("seed", range(40))
def test_what_was_read_before_is_what_would_be_read_again(seed, monkeypatch):
    chance = random.Random(seed)
    sources = [module_of(chance) for _ in range(10)]
    remembering = [compiled(source) for source in sources]
    forgetful(monkeypatch)
    for source, rule in zip(sources, remembering, strict=True):
        again = compiled(source)
        for _ in range(12):
            given = {
                "cs": [object_of(chance) for _ in range(chance.randint(1, 3))],
                "d": object_of(chance),
                "c": object_of(chance),
            }
            found, expected = (rule_(given, {}, EvaluationContext()) for rule_ in (rule, again))
            assert to_json(found) == to_json(expected), source


def test_rules_of_one_loop_read_a_path_once():
    source = """package p
bad contains 1 if { some c in input.cs; not c.a.x }
bad contains 2 if { some c in input.cs; c.a.x == 1 }
bad contains 3 if { some c in input.cs; c.a.x == 2; not c.a.y }
"""
    assert text_of(source).count(".get('x', U)") == 1


def test_what_only_some_turns_read_is_read_again():
    source = """package p
bad contains 1 if { some c in input.cs; c.b; c.a.x == 1 }
bad contains 2 if { some c in input.cs; not c.b; c.a.x == 2 }
"""
    assert text_of(source).count(".get('x', U)") == 2
    rule = compiled(source)
    given = {"cs": [{"b": True, "a": {"x": 1}}, {"a": {"x": 2}}]}
    assert sorted(to_json(rule(given, {}, EvaluationContext()))) == [1, 2]
    given = {"cs": [{"a": {"x": 2}}, {"a": {"x": 1}}]}
    assert to_json(rule(given, {}, EvaluationContext())) == [2]


def test_what_is_left_out_with_a_rule_that_never_holds_is_read_again():
    rule = compiled("""package p
bad contains 1 if { some c in input.cs; c.a.x == 2; 1 == 2 }
bad contains 2 if { some c in input.cs; c.a.x == 1 }
""")
    given = {"cs": [{"a": {"x": 1}}]}
    assert to_json(rule(given, {}, EvaluationContext())) == [2]


MANY_READERS = "package p\n" + "\n".join(
    f'bad contains sprintf("{i} %v", [c.name]) if {{ some c in input.cs; c.n > {i} }}'
    for i in range(6)
)


def test_a_field_that_many_bodies_read_is_read_before_them():
    assert text_of(MANY_READERS).count(".get('name', U)") == COMMON_FROM
    rule = compiled(MANY_READERS)
    given = {"cs": [{"n": 2, "name": "a"}, {"n": 9}, "c", {"n": 4, "name": False}]}
    found = sorted(to_json(rule(given, {}, EvaluationContext())))
    assert found == sorted(["0 a", "1 a", *(f"{i} false" for i in range(4))])


def test_what_few_bodies_read_is_read_where_they_stand():
    two = MANY_READERS.rsplit("\n", 4)[0]
    text = text_of(two)
    assert text.count(".get('name', U)") == 2
    assert "\n\n" not in text.replace("\n\ndef", "\ndef")
