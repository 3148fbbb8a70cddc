"""cel-go panics while it counts costs of values that it takes for lists or numbers."""

import pytest

from tests.webhook.cel.evaluation import evaluate
from webhook.cel.errors import EvaluationError

DOCUMENT = {"i": 1, "s": "abc", "m": {"a": 1}, "ints": [3, 1, 2], "null": None}


def value_or_error(source):
    """A value, or the words of an error."""
    try:
        return evaluate(source, {"object": DOCUMENT})
    except EvaluationError as error:
        return error.text


def no_list(named, missing="Add"):
    return (
        f"internal error: interface conversion: {named} is not traits.Lister: "
        f"missing method {missing}"
    )


def no_depth(named):
    return f"internal error: interface conversion: ref.Val is {named}, not types.Int"


ERROR = no_list("*types.Err")


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("object.missing.distinct()", ERROR),
        ("[object.missing].distinct()", ERROR),
        ("object.i.distinct()", no_list("types.Int", "Contains")),
        ("dyn(timestamp(0)).distinct()", no_list("types.Timestamp", "Contains")),
        ("dyn(true).distinct()", no_list("types.Bool")),
        ("object['null'].distinct()", no_list("types.Null")),
        ("object.m.distinct()", no_list("*types.baseMap")),
        ("dyn(quantity('1')).distinct()", no_list("cel.Quantity")),
        ("dyn(optional.of([1])).distinct()", no_list("*types.Optional")),
        ("[int(object.s)].sort()", ERROR),
        ("[1].sortBy(v, int(object.s))", ERROR),
        ("object.missing.sortBy(v, v.x == 1)", ERROR),
        ("object.i.sortBy(v, v.x == 1)", ERROR),
        ("object.ints.flatten(object.missing)", no_depth("*types.Err")),
        ("object.missing.flatten(object.missing)", no_depth("*types.Err")),
        ("object.ints.flatten(object.s)", no_depth("types.String")),
        ("object.i.flatten(object.m)", no_depth("*types.baseMap")),
        # Where the type of what is sorted is not known, nothing is counted.
        ("object.missing.sort()", "no such key: missing"),
        ("object.i.sort()", "no such overload: sort"),
        ("object.missing.sortBy(v, v.x)", "no such key: missing"),
        ("object.m.sortBy(v, v == 'a')", "no such overload: @sortByAssociatedKeys"),
        ("object.missing.flatten(1)", "no such key: missing"),
        ("object.missing.flatten()", "no such key: missing"),
        ("object.missing.reverse()", "no such key: missing"),
        ("object.ints.sortBy(v, v == 1)", [3, 2, 1]),
        ("[object.ints].flatten(1).distinct()", [3, 1, 2]),
    ],
)
def test_an_operand_that_is_no_list_is_reported_with_the_words_of_go(source, found):
    assert value_or_error(source) == found


@pytest.mark.parametrize(
    "source",
    [
        "object.missing.distinct().size() > 0 || true",
        "[1, 2].exists(x, x == 2 || object.missing.distinct() == [])",
        "[int(object.s), 1].sort() == [1] || true",
    ],
)
def test_nothing_makes_up_for_the_error_of_what_is_counted(source):
    assert value_or_error(source) == ERROR


def test_what_is_not_asked_is_not_counted():
    assert value_or_error("has(object.missing) && object.missing.distinct().size() == 1") is False


@pytest.mark.parametrize(
    "source",
    [
        "object.missing + [object.missing].distinct() == []",
        "size(object.missing) == size([object.missing].distinct())",
    ],
)
def test_of_two_operands_the_second_is_counted_where_the_first_has_no_value(source):
    assert value_or_error(source) == ERROR
