"""Group, version and kind as objects state them."""

from __future__ import annotations

import pytest

from webhook.api import gvk
from webhook.api.gvk import GroupVersionKind, gvk_of, labels_of, name_of, split_group_version


@pytest.mark.parametrize(
    ("api_version", "expected"),
    [
        ("v1", ("", "v1")),
        ("apps/v1", ("apps", "v1")),
        ("a/b/c", ("", "")),
        ("", ("", "")),
        (None, ("", "")),
        (3, ("", "")),
    ],
)
def test_an_api_version_is_split_as_apimachinery_does(api_version, expected):
    assert expected == split_group_version(api_version)


def test_a_group_version_kind_prints_as_gos_does():
    assert str(GroupVersionKind("apps", "v1", "Deployment")) == "apps/v1, Kind=Deployment"
    assert gvk_of({"apiVersion": "v1", "kind": "Pod"}).group_version == "v1"


def test_fields_of_a_wrong_type_read_as_absent():
    assert name_of({"metadata": "x"}) == ""
    assert name_of({"metadata": {"name": 3}}) == ""
    assert GroupVersionKind("", "", "") == gvk_of({"kind": ["Pod"]})


def test_null_labels_are_empty_and_one_that_is_no_text_voids_them_all():
    assert labels_of({"metadata": {"labels": {"a": None, "b": "c"}}}) == {"a": "", "b": "c"}
    assert labels_of({"metadata": {"labels": {"a": 1, "b": "c"}}}) == {}
    assert labels_of({"metadata": {"labels": "x"}}) == {}


def test_a_kind_whose_fields_are_no_texts_is_none_however_often_it_is_asked_for():
    for odd in (["v1"], {"a": 1}, 3, None, True):
        for _ in range(2):
            assert gvk_of({"apiVersion": odd, "kind": "Pod"}) == ("", "", "Pod")
            assert gvk_of({"apiVersion": "v1", "kind": odd}) == ("", "v1", "")


def test_kinds_that_somebody_makes_up_fill_no_memory():
    for number in range(2 * gvk.KNOWN_MAX):
        assert gvk_of({"apiVersion": f"a{number}/v1", "kind": "K"}) == (f"a{number}", "v1", "K")
        assert len(gvk.KNOWN) <= gvk.KNOWN_MAX
    gvk_of({"apiVersion": "v1", "kind": "K" * 1000})
    assert ("v1", "K" * 1000) not in gvk.KNOWN
