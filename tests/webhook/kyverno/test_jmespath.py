"""JMESPath as trees, as go-jmespath's parser makes them."""

import pytest

from webhook.kyverno.jmespath import CURRENT, QueryNode, parsed


def field(name):
    return QueryNode("field", name)


@pytest.mark.parametrize("step", ["b.*.c", "b.*.c[0]"])
def test_one_step_behind_all_values_is_taken_of_each(step):
    tree = parsed(step)
    assert tree.kind == "values"
    assert tree.parts[0] == field("b")


def test_a_second_step_behind_all_values_is_taken_of_their_list():
    values = QueryNode("values", None, (field("a"), field("b")))
    assert parsed("a.*.b.c") == QueryNode("sub", None, (values, field("c")))


def test_steps_behind_a_leading_wildcard_are_taken_of_each_value():
    steps = QueryNode("sub", None, (field("b"), field("c")))
    assert parsed("*.b.c") == QueryNode("values", None, (CURRENT, steps))
