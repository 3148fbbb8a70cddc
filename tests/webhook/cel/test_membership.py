"""Membership in maps and lists: equal numbers, impossible keys, and values that Go cannot hash."""

import pytest

from tests.webhook.cel.evaluation import evaluate
from webhook.cel.engine import compile_expression
from webhook.cel.errors import EvaluationError, LimitExceeded
from webhook.cel.kubernetes import admission
from webhook.cel.run.meter import Meter

BYTES = "internal error: runtime error: hash of unhashable type types.Bytes"
SEMVER = "internal error: runtime error: hash of unhashable type cel.Semver"
FORMAT = "internal error: runtime error: hash of unhashable type cel.Format"

NO_KEY = "error during formatting: no formatting function for map key of type null_type"

DOCUMENT = {
    "s": "abc",
    "m": {"a": 1, "n": {"b": {}}},
    "big": 9007199254740993,
    "top": 9223372036854775807,
    "whole": 2.0,
}


def value_or_error(source):
    """A value, or the words of an error."""
    try:
        return evaluate(source, {"object": DOCUMENT})
    except EvaluationError as error:
        return error.text


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("dyn(semver('1.0.0')) in {1e-3: 1, (1.0/0.0): 2}", SEMVER),
        ("(object.s == '' ? object.m : semver('1.0.0')) in (true ? {1: 1} : {2: 1})", SEMVER),
        ("dyn(semver('1.0.0')) in ['a']", SEMVER),
        ("dyn(semver('1.0.0')) in [dyn('a'), dyn(string(1))]", SEMVER),
        ("dyn(b'a') in ['a', 'b']", BYTES),
        ("dyn(b'a') in [1]", BYTES),
        ("dyn(b'a') in {'a': 1}", BYTES),
        ("dyn(b'a') in url('https://a/?a=1').getQuery()", BYTES),
        ("dyn(b'a') in [{'a': object.m}][0]", BYTES),
        ("dyn(b'a') in [1].transformMap(i, v, v)", BYTES),
        ("dyn(format.dns1123Label()) in {'a': 1}", FORMAT),
        ("dyn(format.named('dns1123Label').value()) in ['a']", FORMAT),
        ("{bytes(object.s): 1}", BYTES),
        # Operands of one form are evaluated at once, and of several up to the first error.
        ("object.nope.indexOf('a') == {bytes(object.s): 1}.size()", BYTES),
        ("dyn('a').contains(string({bytes(object.s): 1}.size()))", BYTES),
        ("object.nope.contains(string({bytes(object.s): 1}.size()))", BYTES),
        ("object.nope.add({bytes(object.s): dyn(1)}[dyn(1)])", "no such key: nope"),
        ("{semver('1.0.0'): 1}", SEMVER),
        (
            "{?bytes(object.s): optional.none()}",
            "internal error: hash of unhashable type: types.Bytes",
        ),
        ("{dyn('a'): 1, ?dyn(bytes(object.s)): optional.none()}", BYTES),
        # Keys of an object are only strings, and an empty object is not searched.
        ("dyn(b'a') in object.m", False),
        ("dyn(b'a') in object", False),
        ("[object.m].exists(m, dyn(semver('1.0.0')) in m.n)", False),
        ("dyn(b'a') in {}", False),
        ("dyn(b'a') in {'x': {}}.x", False),
        ("dyn(b'a') in object.m.n.b", False),
        # A list that is not all known is gone through.
        ("dyn(b'a') in [object.s]", False),
        ("dyn(b'a') in [b'a']", True),
        # These Go can hash, and none of them is a key.
        ("dyn(quantity('1')) in {'a': 1}", False),
        ("dyn(duration('1s')) in ['a']", False),
        ("dyn(null) in {'a': 1}", False),
        ("dyn([1]) in ['a']", False),
        ("dyn(optional.of('a')) in {'a': 1}", False),
    ],
)
def test_what_go_cannot_hash_is_sought_in_no_map(source, found):
    assert value_or_error(source) == found


@pytest.mark.parametrize(
    "source",
    [
        "dyn(b'a') in {'a': 1} || true",
        "dyn(b'a') in {'a': 1} && false",
        "[1, 2].exists(x, x == 2 || dyn(b'a') in ['a'])",
        "[dyn(b'a'), dyn(1)].exists(x, x in {'a': 1} || x == 1)",
        "[dyn(b'a'), dyn(1)].filter(x, x in ['a'])",
        "{bytes(object.s): 1}.size() == 1 || true",
    ],
)
def test_nothing_absorbs_what_is_a_panic_to_cel_go(source):
    assert value_or_error(source) == BYTES


def test_an_operand_that_is_not_asked_is_no_panic():
    assert value_or_error("true || dyn(b'a') in {'a': 1}") is True


@pytest.mark.parametrize(
    ("source", "found"),
    [
        # Constants are looked up as they are, not compared as the nearest double.
        ("dyn(9223372036854775807) in [9223372036854775807.0]", False),
        ("dyn(18446744073709551615u) in [18446744073709551615.0]", False),
        ("object.big in [9007199254740992.0]", False),
        ("dyn(9007199254740993u) in [9007199254740992.0]", False),
        ("object.top in [9223372036854775807.0, 1.0]", False),
        ("object.top in [object.whole, dyn(9223372036854775807.0)]", True),
        ("dyn(9007199254740992.0) in [9007199254740993]", True),
        ("dyn(9223372036854775808.0) in [9223372036854775807]", True),
        ("dyn(18446744073709551615.0) in [18446744073709551615u]", True),
        ("dyn(-0.0) in [0] && dyn(0) in [-0.0] && dyn(1u) in [1] && dyn(1) in [1u]", True),
        ("object.whole in [int('2'), 3]", True),
        ("dyn(-1) in [1u] || dyn(true) in [1] || dyn(1) in [true] || object.whole in ['2']", False),
        ("dyn(0.0 / 0.0) in [0.0 / 0.0] || dyn(1.5) in [1]", False),
        ("object.missing in ['a']", "no such key: missing"),
        ("object.m in ['a'] || object.m in [1]", False),
    ],
)
def test_numbers_are_found_in_constants_as_in_a_set(source, found):
    assert value_or_error(source) == found


@pytest.mark.parametrize(
    ("source", "found"),
    [
        # Signed and unsigned keys are two; each finds the other where it is alone.
        ("{dyn(1): 1, dyn(1u): 2}.size()", 2),
        ("{dyn(1): 1, dyn(1u): 2}[1u] + {dyn(1): 1, dyn(1u): 2}[1]", 3),
        ("{dyn(1): 1, dyn(1u): 2}[1.0]", 1),
        ("{dyn(1u): 2}[1] + {dyn(1): 1}[dyn(1u)]", 3),
        ("{1u: 7}[?dyn(1)].orValue(0) + {1: 7}[?dyn(1u)].orValue(0)", 14),
        ("{dyn(1u): 2, dyn(1): 1} == {dyn(1): 1, dyn(1u): 2}", True),
        ("{dyn(1u): 1} == {dyn(1): 1} && {1u: 1}.all(k, v, type(k) == uint)", True),
        ("[{dyn(1): 1, dyn(1u): 2}].map(m, m.map(k, type(k)).size())", [2]),
        ("'%s'.format([{1u: 'a'}])", '{1:"a"}'),
        (
            "[1].transformMapEntry(i, v, {dyn(v): 1, dyn(1u): 2})",
            "insert failed: key 1 already exists",
        ),
        # A double finds what it is exactly.
        ("dyn(1.0) in {1u: 1} && dyn(1e19) in {10000000000000000000u: 1}", True),
        ("dyn(-9223372036854775808.0) in {-9223372036854775808: 1}", False),
        ("dyn(9223372036854775808.0) in {9223372036854775807: 1}", False),
        ("dyn(18446744073709551616.0) in {18446744073709551615u: 1}", False),
        ("dyn(9007199254740992.0) in {9007199254740993: 1}", False),
        # Values that Go can hash are keys: a list only alone.
        (
            "dyn(null) in {null: 1} && duration('1s') in {duration('1s'): 1} && int in {int: 1}",
            True,
        ),
        ("[[1]].exists(v, v in {v: 1}) && dyn(ip('::1')) in {ip('::1'): 1}", True),
        ("[1] in {[1]: 1} || dyn(quantity('1')) in {quantity('1'): 1}", False),
        ("{{'a': 1}: 2}.map(k, k.a)", [1]),
        ("{null: 1} == {null: 1} && {[1]: 1} != {[1]: 1}", True),
        ("[1, 2].transformMapEntry(i, v, {object.m: v}).size()", 2),
        ("object.m in {object.m: 1}", False),
        ("[1, 2].transformMapEntry(i, v, {optional.of(object.m).value(): v}).size()", 2),
        ("[1, 2].map(i, object.m).transformMapEntry(i, v, {v: i}).size()", 2),
        ("[1, 2].transformMap(.object, v, v).size()", 2),
        ("{[object.m][0]: 1, object.m: 2, dyn(object.m): 3}.size()", 3),
        ("[object.m].map(x, {x: 1, dyn(x): 2})[0].size()", 1),
        ("{null: 1}.transformMap(k, v, v).size()", 1),
        ("[1, 2].transformMapEntry(i, v, {null: 1})", "insert failed: key 0 already exists"),
        ("[1, 2].transformMapEntry(i, v, {[1]: v})", "insert failed: key [1] already exists"),
        (
            "[1, 2].transformMapEntry(i, v, {dyn({'a': 1}): v})",
            "insert failed: key {a: 1} already exists",
        ),
        ("[1, 2].transformMapEntry(i, v, {dyn({'a': v}): v}).size()", 2),
        ("'%s'.format([{null: 1}])", NO_KEY),
        # Of two zeros the later is the key; an entry that has none is none.
        ("{0.0: 1, -0.0: 2}.map(k, string(k))", ["-0"]),
        ("{'a': 1, ?'a': optional.none()}.size()", 0),
    ],
)
def test_keys_are_numbers_of_their_own_types(source, found):
    assert value_or_error(source) == found


def test_what_is_given_is_gone_through_within_the_budget():
    """Synced data is among it, whose lists and maps may be millions."""
    variables = {"object": {"many": [[] for _ in range(2000)], "m": {}}}
    with pytest.raises(LimitExceeded):
        compile_expression("{dyn(object.m): 1}", admission({}, params=False)).exact(
            dict(variables), Meter(1000)
        )
