"""Safety of bodies whose comprehensions use variables from around them, compared with OPA.

OPA forgets what else such a literal needs; where an order can be found that binds all, ours
is that one (docs/compatibility/rego.md).
"""

import pytest

from tests.differential.agreement import Question, difference, ours, theirs
from tests.differential.oracle import Oracle

INPUT = {"a": 1, "b": [1, "a"], "none": []}
DATA = {"d": {"x": [[1], {"a": 2}]}}


def question(body: str) -> Question:
    """Returns a rule with the body after a variable, and a function."""
    module = f"package t\nf(x) := 1\np if {{ v := 1; {body} }}\n"
    return Question((module,), "data.t.p = x", "v1", INPUT, has_input=True, data=DATA, level="1.22")


@pytest.mark.parametrize(
    "body",
    [
        "not [{v | 2}, data.d.x[_]]",
        "not [[v | v == 1], data.d.x[i]]",
        "not {v | v == 1} == data.d.x[i]",
        "not [{v | 2 with input.a as 1}, data.d.x[i]]",
        "not [{v | v == 1}, data.d.x[i]] with input.a as 3",
        "not {{v | v == 2}, data.d.y[i]}",
        "not [{v | v == 1}, input.none[i]]",
        "data.d.x[i][j] == {v | true}; j = 0",
        "count([v | true]) == y; y = 1",
        "[[v | true], y] == z; y = 1; z = [[1], 1]",
        "every z in [1, 2] { z > v - y }; y = 1",
        "not [v, data.d.x[i]]",
        "not [{w | w = 1}, data.d.x[i]]",
        "not f(data.d.x[i])",
        "not {v | v == data.d.x[i]}",
        "x = [y | y = [v, x]]",
        "x = [y | y = [v, z]]",
        "f({v | z}) == z",
    ],
)
def test_what_is_safe_is_what_opa_lets_through(body, opa: Oracle):
    query = question(body)
    assert difference(query, ours(query), theirs(opa, query)) == ""


def test_a_variable_that_nothing_binds_is_named(opa: Oracle):
    """OPA lets it through: an array with an unbound variable in it is not false."""
    query = question("not [{v | v == 1}, i]")
    assert theirs(opa, query)[0] == "results"
    assert ours(query) == ("load", [("rego_unsafe_var_error", "var i is unsafe")])


@pytest.mark.parametrize("body", ["x = y; y = x", "some y, z; z = y", "x = z; b = a; a = x"])
def test_names_that_nothing_binds_are_reported_in_opa_s_order(body, opa: Oracle):
    query = question(body)
    assert ours(query) == theirs(opa, query)
