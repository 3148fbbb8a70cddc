"""Null fields of Kubernetes' own kinds count as absent, those of others stand."""

from webhook.review.mutating import as_decoded


def test_nulls_of_kubernetes_own_kinds_are_absent_at_every_depth():
    pod = {"apiVersion": "v1", "kind": "Pod", "spec": {"initContainers": None, "a": [{"b": None}]}}

    assert as_decoded(pod) == {"apiVersion": "v1", "kind": "Pod", "spec": {"a": [{}]}}


def test_an_object_without_nulls_is_the_same_one():
    pod = {"apiVersion": "v1", "kind": "Pod", "spec": {"containers": [{"name": "a"}]}}

    assert as_decoded(pod) is pod


def test_nulls_of_other_kinds_stand():
    widget = {"apiVersion": "example.com/v1", "kind": "Widget", "spec": {"size": None}}

    assert as_decoded(widget) is widget
