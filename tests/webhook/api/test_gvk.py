"""Group, version and kind as objects state them."""

from __future__ import annotations

import pytest

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
