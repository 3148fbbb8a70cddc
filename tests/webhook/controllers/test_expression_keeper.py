"""Which kinds a constraint names."""

import pytest

from webhook.api.gvk import GroupKind
from webhook.controllers.expression_keeper import named_kinds


@pytest.mark.parametrize(
    ("kinds", "named"),
    [
        ([{"apiGroups": [""], "kinds": ["Pod", "Service"]}], {("", "Pod"), ("", "Service")}),
        ([{"apiGroups": ["apps", "x"], "kinds": ["A"]}], {("apps", "A"), ("x", "A")}),
        ([{"apiGroups": ["*"], "kinds": ["Pod"]}, {"apiGroups": [""], "kinds": ["*"]}], set()),
        ([{"kinds": ["Pod"]}, {"apiGroups": [""]}], set()),
        (None, set()),
    ],
)
def test_kinds_are_those_that_are_named_whole(kinds, named):
    found = named_kinds({"spec": {"match": {"kinds": kinds}}})
    assert found == {GroupKind(*one) for one in named}
    assert named_kinds({}) == frozenset()
