"""Expressions by themselves, as authors try them: ``variables`` is there as in a template."""

import pytest

from webhook.policies.expression import evaluate


@pytest.mark.parametrize(
    ("source", "value"),
    [
        ("variables.anyObject.a", 1),
        ("type(variables)", "kubernetes.variables"),
        ("variables == variables && variables in [variables]", True),
        ("variables in {variables: 1}", True),
        ("{dyn(variables): 1}.size()", 1),
        ("[variables, variables].distinct().size()", 1),
    ],
)
def test_variables_are_one_value_of_a_type_of_their_own(source, value):
    assert evaluate(source, obj={"a": 1}) == value
