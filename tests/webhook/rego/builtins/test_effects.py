"""Built-ins whose answer depends on the query: time, chance, prints, services, solutions."""

import pytest

from tests.webhook.rego.builtins.calling import call, fault, members
from webhook.rego.errors import EvaluationError
from webhook.rego.run.limits import EvaluationContext
from webhook.rego.run.values import UNDEFINED, RegoObject


def test_time_stands_still_within_a_query():
    context = EvaluationContext()
    assert call("time.now_ns", context=context) == call("time.now_ns", context=context)
    assert call("time.now_ns", context=EvaluationContext(now_ns=5)) == 5


@pytest.mark.parametrize("name", ["rand.intn", "uuid.rfc4122"])
def test_chance_repeats_itself_for_the_same_operands_within_a_query(name):
    """It differs for others, and between queries with other seeds."""
    rest = (1 << 40,) if name == "rand.intn" else ()
    context = EvaluationContext(seed=1)
    first = call(name, "a", *rest, context=context)
    assert call(name, "a", *rest, context=context) == first
    assert call(name, "b", *rest, context=context) != first
    assert call(name, "a", *rest, context=EvaluationContext(seed=2)) != first


def test_a_random_number_stays_below_its_bound():
    context = EvaluationContext(seed=3)
    assert {call("rand.intn", str(k), -3, context=context) for k in range(50)} == {0, 1, 2}
    assert call("rand.intn", "a", 0, context=context) == 0


def test_a_made_uuid_is_of_version_4():
    parsed = call("uuid.parse", call("uuid.rfc4122", "k"))
    assert parsed == {"version": 4, "variant": "RFC4122"}
    assert call("uuid.parse", "no uuid") is UNDEFINED


@pytest.mark.parametrize(
    ("text", "nanoseconds"),
    [
        ("000003e8-48b9-21ee-b200-325096b39f47", 1693566990121469600),
        ("00000000-0000-1000-b200-325096b39f47", 6227451273709551616),
        ("000003e8-48b9-2800-b200-325096b39f47", 8541290223538308768),
        ("urn:uuid:000003e8-48b9-2Aee-b200-325096b39f47", -7241574670581594464),
        ("ffffffff-ffff-1fff-b200-325096b39f47", -7607606781572612196),
    ],
)
def test_times_of_uuids_are_go_s(text, nanoseconds):
    """Signed, of 64 bits, as OPA 1.22 answers."""
    assert call("uuid.parse", text)["time"] == nanoseconds


def test_walk_yields_outer_values_before_inner_ones_in_order():
    value = {"b": [1, {"c": 2}], "a": members("x")}
    assert list(call("walk", value)) == [
        [[], value],
        [["a"], value["a"]],
        [["a", "x"], "x"],
        [["b"], value["b"]],
        [["b", 0], 1],
        [["b", 1], {"c": 2}],
        [["b", 1, "c"], 2],
    ]


def test_walk_enters_objects_with_keys_of_any_kind():
    walked = list(call("walk", RegoObject([(2, "b"), (None, "a")])))
    assert [path for path, _ in walked] == [[], [None], [2]]


def test_walk_pays_for_each_step():
    """A query that walks far too much is cancelled on the way."""
    steps = call("walk", [0] * 100_000, context=EvaluationContext(steps=50_000))
    with pytest.raises(EvaluationError, match="budget"):
        list(steps)


def test_print_shows_every_combination_of_values_and_what_has_none():
    lines = []
    context = EvaluationContext(print_=lambda _, line: lines.append(line))
    call("internal.print", [members("a"), members(2, 1), members([1])], context=context)
    call("internal.print", [members("x"), members()], context=context)
    assert lines == ["a 1 [1]", "a 2 [1]", "x <undefined>"]


def test_a_template_string_has_one_value():
    assert call("internal.template_string", ["a ", members(1), " b ", members()]) == (
        "a 1 b <undefined>"
    )
    with pytest.raises(EvaluationError, match="must not produce multiple outputs"):
        call("internal.template_string", [members(1, 2)])


def test_a_host_name_is_looked_up_only_through_a_lent_resolver():
    context = EvaluationContext(services={"resolver": lambda name: [f"10.0.0.{len(name)}"]})
    assert call("net.lookup_ip_addr", "host", context=context) == members("10.0.0.4")
    assert fault("net.lookup_ip_addr", "host") == "builtin: lookup host: no resolver is enabled"


def test_the_runtime_is_what_the_caller_says():
    assert call("opa.runtime", context=EvaluationContext(runtime={"env": {}})) == {"env": {}}


@pytest.mark.parametrize(
    ("value", "collection", "found"),
    [
        (1, [1.0], True),
        (True, [1], False),
        ("a", {"k": "a"}, True),
        ("k", {"k": "a"}, False),
        ([1], members([1]), True),
        ("a", "abc", False),
        (None, RegoObject([(1, None)]), True),
    ],
)
def test_membership_compares_as_rego_does(value, collection, found):
    assert call("internal.member_2", value, collection) is found


@pytest.mark.parametrize(
    ("name", "value", "collection", "found"),
    [
        (0, "a", ["a"], True),
        (1, "a", ["a"], False),
        (True, "a", ["b", "a"], False),
        ("k", 1, {"k": 1}, True),
        (1, 2, RegoObject([(1, 2)]), True),
        ("a", "a", members("a"), True),
        ("a", "b", members("a", "b"), False),
    ],
)
def test_membership_with_a_key_wants_both(name, value, collection, found):
    assert call("internal.member_3", name, value, collection) is found
