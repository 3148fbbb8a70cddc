"""Warnings come before an API server ends an expression for its cost."""

from webhook.constraint.drivers.cel_source import read_source
from webhook.generation.cost_warnings import cost_warnings

PAIR = "object.spec.a.all(x, object.spec.b.exists(y, x == y))"
TRIPLE = "object.spec.a.all(x, object.spec.b.all(y, object.spec.c.exists(z, z == x + y)))"


def warned(**source: object) -> list[tuple[str, str]]:
    """The places that are warned of, and the beginning of each warning."""
    found = cost_warnings(read_source({"validations": [], **source}))
    return [(one["fieldRef"], one["warning"].partition(" entries")[0]) for one in found]


def test_loops_within_loops_over_what_a_request_holds_are_reported_with_the_size_that_ends_them():
    assert warned(validations=[{"expression": PAIR}]) == []
    ((field, message),) = warned(validations=[{"expression": TRIPLE}])
    assert field == "source.validations[0].expression"
    assert message == "an API server would end it where lists and maps have 39"


def test_loops_over_what_is_written_in_the_expression_are_counted_by_its_items():
    few = TRIPLE.replace("object.spec.b", "[object.b1, object.b2]").replace(
        "object.spec.c", "['a']"
    )
    assert warned(validations=[{"expression": few}]) == []


def test_variables_messages_and_match_conditions_are_reported_likewise():
    found = warned(
        variables=[{"name": "all", "expression": TRIPLE}],
        matchCondition=[{"name": "some", "expression": TRIPLE}],
        validations=[
            {"expression": "variables.all", "messageExpression": f"({TRIPLE}) ? 'a' : 'b'"}
        ],
    )
    assert [field for field, _ in found] == [
        "source.matchCondition[0].expression",
        "source.variables[0].expression",
        "source.validations[0].messageExpression",
    ]


def test_expressions_that_are_small_each_are_reported_together():
    found = warned(validations=[{"expression": PAIR}] * 100)
    assert [field for field, _ in found] == ["source.validations"]
