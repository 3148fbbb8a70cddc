"""What an API server sends of a list, read as what it should be."""

import pytest

from webhook.cluster.errors import ApiUnreachable
from webhook.cluster.pages import read_page


def test_a_list_that_is_made_when_it_is_asked_for_has_no_version() -> None:
    """As ComponentStatus, which every cluster has, and metrics."""
    items = [{"metadata": {"name": "scheduler"}}]
    page = {"kind": "ComponentStatusList", "metadata": {}, "items": items}
    assert read_page(page, "/api/v1/componentstatuses") == (items, "", "")
    assert read_page({"metadata": {}, "items": []}, "/x") == ([], "", "")


def test_a_list_of_nothing_may_have_null_for_its_items() -> None:
    assert read_page({"metadata": {"resourceVersion": "7"}, "items": None}, "/x") == ([], "7", "")


@pytest.mark.parametrize("page", [None, [], "x", {}, {"items": {}}, {"metadata": {}}])
def test_what_is_no_list_is_an_error(page: object) -> None:
    with pytest.raises(ApiUnreachable, match="/x: the answer is not a list"):
        read_page(page, "/x")
