"""Bodies that nest more iterations than a Python function can hold."""

import pytest

from tests.differential.agreement import difference, ours, theirs
from tests.differential.nesting import DEEP, question
from tests.differential.oracle import Oracle


@pytest.mark.parametrize("form", DEEP)
def test_more_nested_iterations_than_python_allows_are_split_into_functions(form: str, opa: Oracle):
    asked = question(form)
    mine = ours(asked)
    assert difference(asked, mine, theirs(opa, asked)) == ""
    assert mine[0] == ("eval" if form == "values that disagree" else "results")
