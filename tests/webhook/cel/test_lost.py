"""Values that cel-go could not read back keep their place in collections: reading is an error."""

import pytest

from tests.webhook.cel.evaluation import evaluate
from webhook.cel.errors import EvaluationError

LOST = "optional.of(quantity('1')).optMap(x, dyn(x))"
NO_CONVERSION = "unsupported conversion to ref.Val: (*resource.Quantity)1"


def value_or_error(source):
    try:
        return evaluate(source)
    except EvaluationError as error:
        return error.text


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("[?LOST].size()", 1),
        ("{?'a': LOST}.size()", 1),
        ("[LOST].unwrapOpt().size()", 1),
        ("[true ? optional.of(quantity('1')) : optional.none()].unwrapOpt().size()", 1),
        ("[?LOST].map(x, 1)", [1]),
        ("{?'a': LOST}.transformList(k, v, k)", ["a"]),
        ("[?LOST].reverse().slice(0, 1).distinct().size()", 1),
        ("[?LOST][?0].hasValue() && [?LOST].first().hasValue()", True),
        # An error is no difference, but it is found by nobody.
        ("[?LOST] == [dyn(1)]", True),
        ("[dyn(1)] == [?LOST]", False),
        ("[?LOST] == [dyn(null)]", False),
        ("dyn(1) in [?LOST]", False),
        ("[?LOST].indexOf(dyn(1))", -1),
        ("optional.of(1) == dyn(LOST)", False),
        ("dyn(LOST) == optional.of(1)", NO_CONVERSION),
        ("optional.of(semver('1.0.0')) == dyn(LOST)", NO_CONVERSION),
        ("[optional.of(1)] == [dyn(LOST)]", False),
        ("[?LOST][0]", NO_CONVERSION),
        ("{?'a': LOST}.a", NO_CONVERSION),
        ("{?'a': LOST}.?a", NO_CONVERSION),
        ("has({?'a': LOST}.a)", NO_CONVERSION),
        ("[?LOST].map(x, x)", NO_CONVERSION),
        ("[?LOST].first().value()", NO_CONVERSION),
        ("[dyn(1), ?LOST].sum()", NO_CONVERSION),
        ("[dyn(1), ?LOST].min()", NO_CONVERSION),
        ("[dyn(1), ?LOST].isSorted()", NO_CONVERSION),
        ("[dyn('a'), ?LOST].join()", f"join: invalid input: {NO_CONVERSION}"),
        (
            "'%s'.format([dyn([?LOST])])",
            "error during formatting: no formatting function for error",
        ),
        # No other expression is given it: of a list with an error nothing can be shown.
        ("[?LOST]", NO_CONVERSION),
        ("optional.of({'a': [?LOST]})", NO_CONVERSION),
    ],
)
def test_a_place_is_there_and_what_it_holds_is_an_error(source, found):
    assert value_or_error(source.replace("LOST", LOST)) == found


@pytest.mark.parametrize(
    ("source", "found"),
    [
        # A path's result after a question mark is a value of its own, and no optional's.
        ("dyn([dyn(url('/a'))])[?0]['k'].?y.orValue(1)", 1),
        ("dyn([dyn(url('/a'))])[?0].x.hasValue()", False),
        ("has(dyn([dyn(url('/a'))])[?0].x)", False),
        ("has(dyn({'a': {'x': 1}}).?a.x) && !has(dyn({'a': 1}).?b.x)", True),
        ("dyn({'a': optional.of({'b': 1})}).?a.b.hasValue()", False),
        ("dyn([?LOST])[?0].x.hasValue()", NO_CONVERSION),
        ("dyn(has({'a': 1}.a)).?x.hasValue()", False),
        ("(true ? dyn(true) : has({'a': 1}.a)).?x.hasValue()", False),
        ("(false ? dyn(true) : has({'a': 1}.a)).?x.hasValue()", False),
        ("(true ? dyn({'a': url('/x')}).?a : optional.none()).x.hasValue()", False),
        ("(true ? dyn({'a': url('/x')}).?a : optional.none())[?'x'].hasValue()", False),
        ("has((true ? dyn({'a': url('/x')}).?a : optional.none()).x)", False),
        ("(false ? dyn({}).?a : dyn({'x': 3})).x", 3),
        ("(false ? dyn({}).?a : dyn(optional.of({'x': 3})))[?'x'].value()", 3),
        ("dyn(optional.of({'a': url('/x')})).a.b.hasValue()", False),
        ("dyn(optional.of({'a': url('/x')})).a.?b.hasValue()", False),
        ("has(dyn(optional.of({'a': url('/x')})).a.b)", False),
        ("dyn(optional.of(url('/a'))).x", "unsupported conversion to ref.Val: (*url.URL)/a"),
        # Behind a conditional it goes on in each branch as it would without one.
        ("(false ? optional.none() : {'a': dyn(optional.of({'x': 3}))}.a).x", "no such key: x"),
        ("(false ? 1 : dyn(true ? {'a': dyn(optional.of({'x': 3}))}.a : 2)).x.value()", 3),
        (
            "(true ? (true ? {'a': dyn(optional.of({'x': 3}))}.a : dyn(2)) : dyn(1)).x",
            "no such key: x",
        ),
        ("(true ? (true ? dyn({'a': {'x': 3}}).?a : dyn(2)) : dyn(1)).x.value()", 3),
        ("optional.of(1).optMap(v, dyn({'x': 3})).x.value()", 3),
        (
            "optional.of(1).optMap(v, dyn(url('/x'))).?x",
            "unsupported conversion to ref.Val: (*url.URL)/x",
        ),
        # The first value is unwrapped at any depth.
        ("dyn(optional.of(optional.of({'x': 3}))).x.value()", 3),
        ("[dyn(optional.of(optional.of({'x': 3})))].map(o, o.?x)[0].value()", 3),
        # Whether something is there is told by has() itself: a conditional gives what was found.
        ("dyn(true ? has(dyn({'a': {'x': 3}}).?a.x) : false).value()", 3),
        ("dyn(true ? has(dyn({'a': {}}).?a.x) : false).hasValue()", False),
        ("has(dyn({'a': {'x': 3}}).?a.x)", True),
        (
            "{dyn(3): 'b'}[true ? has(dyn({'a': {}}).?a.x) : false]",
            "invalid qualifier type: *types.Optional",
        ),
        # A key that is none is told before what was lost.
        (
            "dyn(optional.of(url('/a')))[dyn([1].map(x, x))]",
            "invalid qualifier type: *types.baseList",
        ),
    ],
)
def test_a_path_goes_on_in_what_it_has_found(source, found):
    assert value_or_error(source.replace("LOST", LOST)) == found
