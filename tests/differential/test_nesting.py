"""Bodies that nest more iterations than a Python function can hold."""

import pytest

from tests.differential.agreement import difference, ours, theirs
from tests.differential.nesting import DEEP, question
from tests.differential.oracle import Oracle


@pytest.mark.parametrize("form", DEEP)
def test_more_nested_iterations_than_python_allows_are_split_into_functions(form: str, opa: Oracle):
    query = question(form)
    mine = ours(query)
    assert difference(query, mine, theirs(opa, query)) == ""
    assert mine[0] == ("eval" if form == "values that disagree" else "results")
