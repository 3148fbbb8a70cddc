"""Expressions from their text to their value, and what they may cost."""

import pytest

from tests.webhook.cel.evaluation import ENVIRONMENT, evaluate
from webhook.cel.check.types import DYN
from webhook.cel.engine import compile_expression
from webhook.cel.errors import CompileError, EvaluationError, LimitExceeded
from webhook.cel.kubernetes import admission
from webhook.cel.run.meter import Meter

LOST = "unsupported conversion to ref.Val: "

JOIN = "join: invalid input: "

PARSING = 'strconv.ParseUint: parsing "99999999999999999999"'

ALL = "[1, <nil>, map[m:[2]]]"

HOSTILE = {
    "six loops within each other": (
        "l.all(a, l.all(b, l.all(c, l.all(d, l.all(e, l.all(f, a + b + c + d + e + f >= 0))))))"
    ),
    "a text that doubles": (
        "l.map(a, l.map(b, l.map(c, 'xxxxxxxxxxxxxxxx')).map(x, string(size(x)))).size() > 0"
        " && ['x'.replace('', l.map(i, 'yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy').join(''))].all(s, "
        "s.replace('', s).replace('', s).replace('', s).size() > 0)"
    ),
    "a long range": "lists.range(1000000000).size() > 0",
    "each with each": "sets.equivalent(lists.range(20000), lists.range(20000))",
    "all different": "lists.range(20000).distinct().size() > 0",
    "a large pattern": (
        "lists.range(100000).map(i, 'x').join('').matches('" + "(x+x+)+" * 800 + "y')"
    ),
    "a list that grows": "lists.range(1000).map(i, lists.range(1000)).flatten().size() > 0",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_an_expression_that_would_run_for_long_is_ended_for_its_cost(name):
    source = HOSTILE[name].replace("l.", "object.l.")
    with pytest.raises(LimitExceeded, match="actual cost limit exceeded"):
        evaluate(source, {"object": {"l": list(range(12))}})


def test_nothing_absorbs_the_end_for_cost():
    source = "lists.range(10000000).size() > 0 || true"
    with pytest.raises(LimitExceeded):
        evaluate(source)


def test_a_look_at_the_clock_may_end_an_evaluation():
    class TimeUp(Exception):
        pass

    def look():
        raise TimeUp

    with pytest.raises(TimeUp):
        evaluate("lists.range(5000).all(i, i >= 0)", meter=Meter(look=look))


@pytest.mark.parametrize(
    "source", ["(" * 400 + "1" + ")" * 400, "!" + "(!" * 400 + "true" + ")" * 400, "[" * 5000]
)
def test_an_expression_nested_too_deeply_is_refused(source):
    with pytest.raises(CompileError, match=r"recursion limit|Syntax error"):
        compile_expression(source, ENVIRONMENT)


def test_a_chain_of_a_thousand_conditions_is_no_deep_nesting():
    assert evaluate(" && ".join(["true"] * 1000)) is True


def test_faults_of_several_lines_are_reported_with_line_column_and_mark():
    with pytest.raises(CompileError) as refused:
        compile_expression("object.a == 1 &&\n  nope.b\n  && 1 == 'x'", ENVIRONMENT)
    assert str(refused.value) == (
        "ERROR: <input>:2:3: undeclared reference to 'nope' (in container '')\n"
        " |   nope.b\n"
        " | ..^\n"
        "ERROR: <input>:3:8: found no matching overload for '_==_' applied to '(int, string)'\n"
        " |   && 1 == 'x'\n"
        " | .......^"
    )


@pytest.mark.parametrize(
    ("source", "value"),
    [
        ("object.n == true", False),
        ("true in object.l", False),
        ("object.missing == 1 || object.n == 1", True),
        ("object.l.exists(x, x.y == 1 || x == 1)", True),
        ("has(object.m.k) && object.m.k == 'v'", True),
        ("object.?m.?k.orValue('') == 'v'", True),
        ("object.l.filter(x, x > 1).map(x, x * 2) == [4]", True),
        ("object.m.transformList(k, v, k + v) == ['kv']", True),
    ],
)
def test_values_over_plain_json(source, value):
    document = {"n": 1, "l": [1, 2], "m": {"k": "v"}}
    assert evaluate(source, {"object": document}) is value


@pytest.mark.parametrize(
    ("source", "error"),
    [
        ("object.missing", "no such key: missing"),
        ("object.l[5]", "index out of bounds: 5"),
        ("object.l.map(x, x.y)", "no such key: y"),
        # cel-go evaluates on, and tells the last error of tests and the first of results.
        ("[1, 2].filter(x, x == 1 ? object.a : object.b)", "no such key: b"),
        ("[1, 2].exists_one(x, x == 1 ? object.a : object.b)", "no such key: b"),
        ("[1, 2].map(x, x == 1 ? object.a : object.b)", "no such key: a"),
        ("[1, 2].map(x, x == 1 ? object.a : object.b, x)", "no such key: b"),
        ("[1, 2].transformMap(i, x, x == 1 ? object.a : object.b, x)", "no such key: b"),
        ("[1, 2].transformMap(i, x, x == 2 || object.a, object.b)", "no such key: a"),
        ("[1, 2].transformMap(i, x, x == 1 ? object.a : object.b)", "no such key: a"),
        ("[1, 2].transformMapEntry(i, x, x == 1 ? object.a : object.b, {})", "no such key: b"),
        (
            "[1, 2, 3].transformMapEntry(i, x, x < 3 || object.a, {0: i})",
            "no such key: a",
        ),
        ("[1, 2].transformMapEntry(i, x, {0: i})", "insert failed: key 0 already exists"),
        ("object.n.all(x, true)", "got 'types.Int', expected iterable type"),
        ("object.n + 'a'", "no such overload"),
        ("semver('1.99999999999999999999.x')", f"{PARSING}: value out of range"),
        ("semver('1.0.0-a.99999999999999999999')", f"{PARSING}: value out of range"),
        ("object.m.k.matches('a(' + object.m.k)", "error parsing regexp: missing closing ): `a(v`"),
    ],
)
def test_errors_are_reported_with_the_words_of_kubernetes(source, error):
    document = {"n": 1, "l": [1, 2], "m": {"k": "v"}}
    with pytest.raises(EvaluationError) as raised:
        evaluate(source, {"object": document})
    assert raised.value.text == error


@pytest.mark.parametrize(
    ("source", "found"),
    [
        # An operand that is no optional stays what it is, and no other form is run for it.
        ("int(object.s.orValue(1u))", "no such overload: int(string)"),
        ("(object.strs + [1]).min()", "no such overload: min(list)"),
        ("(0.0 / 0.0) > object.s", "NaN values cannot be ordered"),
        ("timestamp(0).getHours(object.path)", "time: invalid location name"),
        ("object.percent.format([])", "index 0 out of range"),
        # An optional in an optional is opened by the conditional that gives it.
        ("optional.of(1).optMap(v, optional.none()).value()", None),
        ("[optional.of(1).optMap(v, optional.of(v)).value()][0]", 1),
        ("(true ? optional.of(optional.none()) : optional.none()).value()", None),
        # One on the way of a path has no fields.
        ("[optional.of({'x': 1})][0].?x.orValue(2)", 2),
        ("has({'o': optional.of({'x': 1})}.o.x)", False),
        ("{'o': optional.of({'x': 1})}.o.x", "no such key: x"),
        ("[optional.of({'x': 1})].map(o, o.x)[0].orValue(2)", 1),
        # Of an optional without value nobody asks for the key; of one on the way somebody does.
        ("optional.none()[uint(object.s + 'x')].hasValue()", False),
        (
            "{2: optional.none()}[2][?timestamp(0).getDate('500m')].hasValue()",
            "unknown time zone 500m",
        ),
        # A number that is none is no key that can be found.
        ("{(0.0 / 0.0): 1}[(0.0 / 0.0)]", "no such key: NaN"),
        ("(0.0 / 0.0) in {(0.0 / 0.0): 1}", False),
        # Lists are sorted by what is in them.
        ("(true ? [[true, false]] : object.m).flatten().sort()", [False, True]),
        ("[dyn(optional.of(1)), dyn('a')].unwrapOpt()", "value a is not optional"),
        ("[dyn('a')].unwrapOpt()", "no such overload: unwrapOpt(list)"),
        ("quantity('1.5Gi').add(quantity('100m')).asApproximateFloat()", 1610612736.1000001),
        ("quantity('100m').sub(quantity('100m')).isInteger()", False),
        ("quantity('0m').add(1).isInteger()", True),
        ("dyn({1.0: 'a'})[1]", "no such key: 1"),
        (
            "timestamp(0).getDayOfYear(strings.quote('02:30'))",
            r'strconv.Atoi: parsing "\"02": invalid syntax',
        ),
        ("dyn({1.0: 'a'})[1.0] + dyn({1: 'b'})[1.0]", "ab"),
        ("1 in dyn({1.0: 'a'}) || !(1.0 in dyn({1: 'a'}))", False),
        ("dyn({1.0: 'a'}) == dyn({1: 'a'}) && dyn({1: 'a'}) != dyn({1.0: 'a'})", True),
        ("quantity('3').sub(-9223372036854775808).asInteger()", -9223372036854775805),
        ("quantity('0').sub(-9223372036854775808).asApproximateFloat()", -9223372036854775808.0),
        ("quantity('-3').sub(-9223372036854775808).asInteger()", "cannot convert value to integer"),
        ("(['a'] + [object.?none.orValue(null)]).join()", "join: invalid input: 0"),
        ("object.missing in []", False),
        (
            "optional.of(1).optFlatMap(v, optional.of(optional.of(optional.none()))).value()",
            None,
        ),
        # Paths of optional fields, and sums, that are computed at once.
        ("object.?o.?a.?b.orValue(1)", 2),
        ("object.?o.?a.?c.orValue(1)", 1),
        ("object.?s.?a.orValue(1)", 1),
        ("object.?strs.?a.orValue(1)", "unsupported index type 'string' in list"),
        ("optional.of(object).?s.orValue('')", "12"),
        ("object.s + object.s + object.missing", "no such key: missing"),
        ("object.s + object.o + int(object.s + 'x')", "no such overload"),
        # A library's value equals only its own kind; within lists an error is no difference.
        ("dyn(quantity('1')) == dyn(1)", "no such overload"),
        ("dyn(quantity('1')) == 'a'", "no such overload"),
        ("dyn(quantity('1')) == true", "no such overload"),
        ("dyn(quantity('1')) != dyn(1)", True),
        ("dyn(quantity('1')) == null", False),
        ("dyn([quantity('1')]) == dyn([1])", True),
        ("dyn(quantity('1')) in [dyn(1)]", False),
        ("quantity('2') == quantity('1').add(1)", "no such overload"),
        ("quantity('1').add(1) == quantity('2')", True),
        # A conditional loses a library's value in an optional.
        (
            "object.?s.optMap(v, quantity(v)).orValue(quantity('0'))",
            "unsupported conversion to ref.Val: (*resource.Quantity)12",
        ),
        ("object.?s.optMap(v, quantity(v)).hasValue()", True),
        ("object.?s.optMap(v, quantity(v).isInteger()).value()", True),
        ("object.?none.optMap(v, quantity(v)).orValue(quantity('3')).isInteger()", True),
        ("object.?s.optMap(v, quantity(v)).optMap(w, true || w == w).value()", True),
        (
            "optional.of(1).optMap(v, semver('1.2.3')) == optional.of(semver('1.2.3'))",
            "unsupported conversion to ref.Val: (semver.Version)1.2.3",
        ),
        ("optional.of(1).optMap(v, ip('::1')) != optional.of(ip('::1'))", True),
        ("optional.of(1).optMap(v, ip('::1')) == optional.none()", False),
        (
            "dyn(optional.of(1).optMap(v, ip('::1'))).x",
            f"{LOST}(*errors.errorString){LOST}(netip.Addr)::1",
        ),
        ("(object.s == '' ? dyn(1) : optional.of(ip('::1'))).?x", f"{LOST}(netip.Addr)::1"),
        ("(object.s == '' ? dyn(1) : optional.of(optional.of({'x': 1}))).?x.value()", 1),
        (
            "optional.of(1).optFlatMap(v, v == 2 ? optional.none() : optional.of(ip('::1'))).value()",
            f"{LOST}(*errors.errorString){LOST}(netip.Addr)::1",
        ),
        ("has(dyn(optional.of(ip('::1'))).x)", f"{LOST}(netip.Addr)::1"),
        ("optional.of(1).optMap(v, [ip('::1')]).value()[0] == ip('::1')", True),
        ("optional.of(1).optMap(v, type(v)).value() == dyn('int')", True),
        ("[optional.of(optional.of(1))].map(v, v.hasValue() ? v : v)[0].value() == dyn(1)", True),
        # Operators and functions of what has none: which of them tell their own name.
        ("dyn(quantity('1')) + 1", "no such overload: _+_"),
        ("dyn(semver('1.0.0')) < object.s", "no such overload: _<_"),
        ("-dyn(ip('10.0.0.1'))", "no such overload: -_"),
        ("string(-dyn(duration('1h')))", "-3600s"),
        ("-dyn(duration('-9223372036854775808ns'))", "integer overflow"),
        ("duration('2562047h') + duration('1h')", "integer overflow"),
        ("string(timestamp(0) - timestamp('9999-12-31T23:59:59Z'))", "integer overflow"),
        ("size(dyn(duration('1h')))", "no such overload"),
        ("dyn(timestamp(0)).size()", "no such overload"),
        ("size(object.o.a.b)", "no such overload: size"),
        ("object.o.matches(object.s)", "no such overload: matches"),
        ("object.s.matches(object.o)", "no such overload"),
        ("object.o.find(object.s)", "no such overload: find(map, string)"),
        # By a pattern that is known less is told, and a type is its name, an optional its value.
        ("object.o.matches('a')", "no such overload"),
        ("object.o.find(dyn('a'))", "no such overload"),
        ("object.s.findAll('a', object.o)", "no such overload"),
        ("object.s.findAll('a', object.s)", "no such overload"),
        ("dyn(int).matches('in') && dyn(optional.of('ab')).find('a') == 'a'", True),
        ("dyn('abab').findAll('ab', dyn(optional.of(1)))", ["ab"]),
        # Invalid keys have their type of Go in the message: part of a variable, or computed.
        ("{'a': 1}[object.strs]", "invalid qualifier type: []interface {}"),
        ("{'a': 1}[dyn(object.strs)]", "invalid qualifier type: *types.baseList"),
        ("{'a': 1}[true ? object.o : {}]", "invalid qualifier type: map[string]interface {}"),
        ("{'a': 1}[false ? object.o : {}]", "invalid qualifier type: *types.baseMap"),
        ("{'a': 1}[object.rows[dyn(0u)]]", "invalid qualifier type: *types.baseMap"),
        (
            "{'a': 1}[object.strs[0.0] == 'a' ? null : object.s]",
            "invalid qualifier type: types.Null",
        ),
        ("object.missing.format([object.missing].distinct())", "no such key: missing"),
        ("[object].map(v, {'a': 1}[v.o])[0]", "invalid qualifier type: *types.baseMap"),
        # A value in a message is as Go writes it.
        ("[dyn('a'), dyn(b'ab')].join()", "join: invalid input: [97 98]"),
        ("[dyn('a'), dyn(duration('90m'))].join()", "join: invalid input: 1h30m0s"),
        ("[dyn('a'), dyn(duration('-1500us'))].join()", "join: invalid input: -1.5ms"),
        ("[dyn('a'), dyn(optional.of(1))].join()", "join: invalid input: optional(1)"),
        ("[dyn('a'), dyn(optional.none())].join()", "join: invalid input: optional.none()"),
        (
            "[dyn('a'), dyn(timestamp('2024-02-29T12:30:45.5+02:00'))].join()",
            "join: invalid input: 2024-02-29 12:30:45.5 +0200 +0200",
        ),
        (
            "[dyn(optional.of(1)), dyn(timestamp(0))].unwrapOpt()",
            "value 1970-01-01 00:00:00 +0000 UTC is not optional",
        ),
        # A map shows values of CEL's, a list of an object's own what Go decoded.
        ("[dyn('a'), dyn({'a': dyn(b'x'), 'b': dyn(null)})].join()", f"{JOIN}{{a: [120], b: 0}}"),
        ("[dyn('a'), dyn([duration('1h')])].join()", f"{JOIN}[1h0m0s]"),
        ("[dyn('a'), dyn([dyn(null), dyn([object.all])])].join()", f"{JOIN}[0, [{ALL}]]"),
        ("[dyn('a'), dyn({'l': object.all})].join()", f"{JOIN}{{l: {ALL}}}"),
        ("[dyn('a'), dyn(optional.of(object.all))].join()", f"{JOIN}optional({ALL})"),
        ("[dyn('a'), dyn([] + object.all + [])].join()", f"{JOIN}{ALL}"),
        ("[dyn('a'), dyn(object.all.filter(x, true))].join()", f"{JOIN}[1, 0, {{m: [2]}}]"),
        ("[dyn(optional.of(1)), dyn(object.all)].unwrapOpt()", f"value {ALL} is not optional"),
        ("[dyn('a'), dyn(list), dyn(map)].join()", f"{JOIN}list(dyn)"),
        # Of a zero no sign is shown, of what rounds to it its own.
        ("'%f|%.1f|%.0f'.format([-0.0, -0.0, -0.4])", "0.000000|0.0|-0"),
        (
            "'%.256f|%.300f'.format([1234.5678, 1.5])",
            "1,234.567800000000033833202905952930450439453125|1.5" + "0" * 43,
        ),
        ("'%.65537e'.format([1.5])", "1.500000\u00d710\u2070\u2070"),
        ("'%e'.format([-0.0])", "0.000000\u00d710\u2070\u2070"),
        (
            "'%s'.format([dyn([quantity('1')])])",
            "error during formatting: no formatting function for kubernetes.Quantity",
        ),
    ],
)
def test_what_a_checker_takes_for_another_type_is_what_it_is_to_kubernetes(source, found):
    o = {"a": {"b": 2}}
    document = {"s": "12", "strs": ["a"], "path": "/UTC", "percent": "%", "o": o, "rows": [o]}
    document["all"] = [1, None, {"m": [2]}]
    try:
        outcome = evaluate(source, {"object": document})
    except EvaluationError as error:
        outcome = error.text
    assert outcome == found


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("quantity('1').x", "unexpected failed resolution of 'kubernetes.Quantity'"),
        ("quantity('1').?x == 1", r"applied to '\(optional_type\(!error!\), int\)'"),
        ("{}.sortBy(v, v)", "sortBy can only be applied to a list, identifier"),
        ("'%v'.format([])", "index 0 out of range"),
        ("'%'.format([])", "unexpected end of string"),
        ("[type(1)].exists(t, t == int)", "reference to undefined type: t"),
        ("optional.of(type(1)).optMap(t, 1)", "reference to undefined type: t"),
        # cel-go computes these ahead at any depth: conversions, types, their lists and maps.
        ("object.x[duration(duration('5s'))]", "invalid qualifier type: types.Duration"),
        ("object.x[?timestamp(int('5'))]", "invalid qualifier type: types.Timestamp"),
        ("object.x[dyn(bytes('a'))]", "invalid qualifier type: types.Bytes"),
        ("object.x[type(1)]", r"invalid qualifier type: \*types.Type"),
        ("object.x[int]", r"invalid qualifier type: \*types.Type"),
        ("object.x[[duration(duration('5s'))]]", r"invalid qualifier type: \*types.baseList"),
        ("object.x[{dyn([1]): int}]", r"invalid qualifier type: \*types.baseMap"),
        ("true ? 1 : int(dyn([1]))", r"instantiation failed: no such overload: int\(list\)"),
        ("true ? dyn(1) : dyn(string(dyn(int)))", r"no such overload: string\(type\)"),
        ("{b'a': 1}.size() == 1", "hash of unhashable type types.Bytes"),
        ("true || {1: {bytes('a'): 1}}.size() == 1", "hash of unhashable type types.Bytes"),
    ],
)
def test_what_is_refused_early_is_reported_with_the_words_of_kubernetes(source, message):
    with pytest.raises(CompileError, match=message):
        compile_expression(source, ENVIRONMENT)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("1e300", "1e300"),
        ("1e+300", "1e+300"),
        ("1e20", "100e18"),
        ("1e31", "10e30"),
        ("+5k", "+5k"),
        ("8Ki", "8Ki"),
        ("1.500k", "1.500k"),
        ("+0", "0"),
    ],
)
def test_a_quantity_is_shown_as_kubernetes_shows_it(text, shown):
    assert evaluate(f"quantity('{text}')").shown == shown


def test_a_sum_begins_with_zero():
    assert evaluate("string(object.l.sum())", {"object": {"l": [-0.0, -0.0]}}) == "0"
    assert evaluate("[dyn(-0.0)].sum() + -0.0 == 0.0", {}) is True
    assert evaluate("1.0 / [dyn(-0.0)].sum()", {}) == float("inf")


@pytest.mark.parametrize(
    ("source", "value"),
    [
        # Part of a variable is another value each time it is read, within a macro once a turn.
        ("object.l.map(x, {x: 1})[0] == object.l.map(x, {x: 1})[0]", False),
        ("object.l.exists(x, {x: 1} == {x: 1})", True),
        ("object.l.exists(x, object.l.exists(y, {x: 1} == {y: 1}))", False),
        ("object.l.transformMapEntry(k, v, {v: k}) == {object.l[0]: 0}", False),
        ("[object.l].exists(l, {l[0]: 1} == {l[0]: 1})", False),
        ("[[{}]].exists(l, l.map(x, {x: 1})[0] == l.map(x, {x: 1})[0])", True),
        ("(object.l + object.l).transformMapEntry(k, v, {v: k}).size()", 2),
        ("object.l[0u] in {object.l[0u]: 1}", False),
        ("object.?l.value() in {object.?l.value(): 1}", False),
        ("{'o': object}.o.l in {{'o': object}.o.l: 1}", False),
        ("[{'o': object}].all(m, m.o in {m.o: 1})", True),
        ("[{'o': object}].exists(m, m.o.l in {m.o.l: 1})", False),
        ("(object.l + [])[0] in {(object.l + [])[0]: 1}", False),
        ("[object.l + []].exists(l, l[0] in {l[0]: 1})", False),
        ("[object.l.reverse()].all(l, l[0] in {l[0]: 1})", True),
        ("object.l.first().value() in {object.l.first().value(): 1}", False),
        ("[object.l.first().value()].all(f, f in {f: 1})", True),
        ("object.l.exists(x, dyn(b'a') in x) || {dyn(object.l): 1}.size() == 2", False),
        # An optional is another one each time a variable is read.
        ("[optional.of(1)].all(y, {y: 1} == {y: 1})", False),
        ("[optional.none()].all(y, {y: 1} == {y: 1})", True),
    ],
)
def test_a_list_or_a_map_as_a_key_is_found_by_itself_alone(source, value):
    assert evaluate(source, {"object": {"l": [{"a": 1}]}}) == value


@pytest.mark.parametrize(
    ("source", "value"),
    [
        ("[variables.x][0] in {[variables.x][0]: 1}", True),
        ("[variables.x].all(x, x in {variables.x: 1})", True),
        ("variables.x in {variables.y: 1}", False),
        ("object.l in {variables.x: 1}", False),
        ("variables.x[0] in {variables.x[0]: 1}", False),
    ],
)
def test_a_composed_variable_is_one_key(source, value):
    expression = compile_expression(source, admission({"x": DYN, "y": DYN}, params=False))
    given = {"l": [{"a": 1}]}
    composed = type("Composed", (dict,), {})(x=given["l"], y=given["l"])  # no map of CEL's
    assert expression.evaluate({"object": given, "variables": composed}, Meter()) is value


def test_an_entry_that_is_no_map_is_reported_with_its_type():
    with pytest.raises(EvaluationError) as raised:
        evaluate("object.l.transformMapEntry(i, x, x)", {"object": {"l": ["a"]}})
    assert raised.value.text == "no such overload: cel.@mapInsert(map, string)"


def test_a_sum_of_doubles_whose_first_item_is_none_is_reported_with_its_list():
    with pytest.raises(EvaluationError) as raised:
        evaluate("(object.l + [1.5]).sum()", {"object": {"l": [1]}})
    assert raised.value.text == "no such overload: sum(list)"


@pytest.mark.parametrize(
    ("macro", "message"),
    [
        ("map(", "internal error: "),
        ("transformMapEntry(k, ", "internal"),
        ("transformMap(k, ", "div"),
    ],
)
def test_an_item_that_ends_an_evaluation_ends_it_behind_one_that_errs(macro, message):
    """Of two operands cel-go computes both, even if the first has erred."""
    body = "i == 'a' ? dyn(1 / object.zero) : dyn(i.map(k, k).distinct())"
    with pytest.raises(EvaluationError) as error:
        evaluate(f"[dyn('a'), dyn(true)].{macro}i, {body})", {"object": {"zero": 0}})
    assert error.value.text.startswith(message)
