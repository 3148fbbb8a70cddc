"""Each criterion of a match; what Gatekeeper's own matcher says of the same is in the comments."""

from __future__ import annotations

import pytest

from webhook.api.admission import read_request
from webhook.constraint.errors import MatchError, ReviewError
from webhook.constraint.review import AugmentedObject, AugmentedReview
from webhook.constraint.targets.admission import AdmissionTarget

TARGET = AdmissionTarget()
MISSING = "namespace selector for namespace-scoped object but missing Namespace"


def obj(kind="Pod", group="", name="web", namespace="", **metadata):
    version = f"{group}/v1" if group else "v1"
    meta = {"name": name, **metadata}
    if namespace:
        meta["namespace"] = namespace
    return {"apiVersion": version, "kind": kind, "metadata": meta}


def namespace(name, **labels):
    return obj("Namespace", name=name, labels=labels)


def matches(match, thing, ns=None, source="Original", namespaces=None):
    """Returns the match by index and residual; asserts that the full matcher agrees."""
    compiled = TARGET.compile_match(match)
    review = TARGET.handle_review(AugmentedObject(thing, ns, source=source), namespaces or {})
    assert review is not None

    def indexed():
        if not compiled.selects(review.key):
            return False
        return compiled.residual is None or compiled.residual(review)

    outcomes = []
    for matcher in (indexed, lambda: compiled.full(review)):
        try:
            outcomes.append(matcher())
        except MatchError as error:
            outcomes.append(str(error))
    assert outcomes[0] == outcomes[1]
    return outcomes[0]


@pytest.mark.parametrize(
    ("kinds", "expected"),
    [
        ([], True),
        ([{}], True),
        ([{"apiGroups": [], "kinds": []}], True),
        ([{"apiGroups": ["*"], "kinds": ["*"]}], True),
        ([{"apiGroups": [""], "kinds": ["Pod"]}], True),
        ([{"kinds": ["Pod"]}], True),
        ([{"apiGroups": [""]}], True),
        ([{"apiGroups": ["apps"], "kinds": ["Pod"]}], False),
        ([{"apiGroups": [""], "kinds": ["pod"]}], False),
        ([{"apiGroups": ["apps"], "kinds": ["*"]}, {"kinds": ["Service", "Pod"]}], True),
    ],
)
def test_kinds_hold_when_one_entry_holds_and_an_empty_list_is_all(kinds, expected):
    assert matches({"kinds": kinds}, obj()) is expected


@pytest.mark.parametrize(
    ("scope", "cluster", "namespaced", "a_namespace"),
    [
        ("Cluster", True, False, True),
        ("Namespaced", False, True, False),
        ("*", True, True, True),
        ("cluster", True, True, True),
        ("", True, True, True),
    ],
)
def test_scope_and_any_other_scope_is_all(scope, cluster, namespaced, a_namespace):
    match = {"scope": scope}

    assert cluster is matches(match, obj("ClusterRole"))
    assert namespaced is matches(match, obj(namespace="shop"))
    assert namespaced is matches(match, obj(), namespace("shop"))
    assert a_namespace is matches(match, namespace("shop"))


@pytest.mark.parametrize(
    ("pattern", "name", "expected"),
    [
        ("shop", "shop", True),
        ("shop", "shops", False),
        ("sh*", "shop", True),
        ("*op", "shop", True),
        ("*ho*", "shop", True),
        ("*", "shop", True),
        ("**", "shop", True),
        ("sh*p", "shop", False),
        ("sh-", "sh-op", False),
    ],
)
def test_namespaces_and_excluded_namespaces_take_wildcards_at_their_ends(pattern, name, expected):
    assert expected is matches({"namespaces": [pattern]}, obj(namespace=name))
    assert expected is matches({"namespaces": ["other", pattern]}, namespace(name))
    assert expected is not matches({"excludedNamespaces": [pattern]}, obj(namespace=name))
    assert expected is not matches({"excludedNamespaces": [pattern, "other"]}, namespace(name))


def test_no_list_of_namespaces_disqualifies_a_cluster_scoped_object():
    assert matches({"namespaces": ["shop"]}, obj("ClusterRole")) is True
    assert matches({"excludedNamespaces": ["*"]}, obj("ClusterRole")) is True


def test_the_namespace_given_counts_before_the_one_that_the_object_states():
    assert matches({"namespaces": ["b"]}, obj(namespace="a"), namespace("b")) is True


def test_label_selectors_need_all_they_ask():
    match = {
        "labelSelector": {
            "matchLabels": {"app": "web"},
            "matchExpressions": [
                {"key": "tier", "operator": "In", "values": ["gold", "silver"]},
                {"key": "app", "operator": "Exists"},
                {"key": "gone", "operator": "DoesNotExist"},
                {"key": "zone", "operator": "NotIn", "values": ["x"]},
            ],
        }
    }

    assert matches(match, obj(labels={"app": "web", "tier": "gold"})) is True
    assert matches(match, obj(labels={"app": "web", "tier": "gold", "zone": "x"})) is False
    assert matches(match, obj(labels={"app": "web", "tier": "gold", "gone": ""})) is False
    assert matches(match, obj(labels={"app": "api", "tier": "gold"})) is False
    assert matches(match, obj(labels={"tier": "gold"})) is False
    assert matches(match, obj()) is False
    assert matches({"labelSelector": {}}, obj()) is True


def test_a_namespace_selector_reads_the_namespaces_labels():
    match = {"namespaceSelector": {"matchLabels": {"env": "prod"}}}

    assert matches(match, obj(namespace="a"), namespace("a", env="prod")) is True
    assert matches(match, obj(namespace="a"), namespace("a", env="dev")) is False
    assert matches(match, obj(namespace="a"), namespaces={"a": namespace("a", env="prod")}) is True
    assert matches(match, namespace("a", env="prod")) is True
    assert matches(match, namespace("a", env="dev")) is False
    assert matches(match, obj("ClusterRole")) is True


def test_a_namespace_that_nobody_has_is_an_error_with_gatekeepers_words():
    match = {"namespaceSelector": {"matchLabels": {"env": "prod"}}}

    assert (
        f"error matching the requested object: web :failed to run Match criteria: {MISSING}"
        == matches(match, obj(namespace="a"))
    )


def test_a_criterion_that_fails_before_the_selector_leaves_no_error():
    match = {
        "kinds": [{"kinds": ["Service"]}],
        "namespaceSelector": {"matchLabels": {"env": "prod"}},
    }

    assert matches(match, obj(namespace="a")) is False
    assert matches({**match, "kinds": [], "namespaces": ["b"]}, obj(namespace="a")) is False


def test_a_name_may_be_generated():
    assert matches({"name": "we*"}, obj()) is True
    assert matches({"name": "web"}, obj()) is True
    assert matches({"name": "api"}, obj()) is False
    assert matches({"name": ""}, obj()) is True
    assert matches({"name": "we*"}, obj(name="", generateName="web-")) is True
    assert matches({"name": "*eb*"}, obj(name="", generateName="web-")) is True
    assert matches({"name": "*eb-"}, obj(name="", generateName="web-")) is False
    assert matches({"name": "web-"}, obj(name="", generateName="web-")) is False


def test_a_source_needs_one_to_compare_with():
    assert matches({"source": "All"}, obj(), source="") is True
    assert matches({"source": ""}, obj(), source="") is True
    assert matches({"source": "Original"}, obj()) is True
    assert matches({"source": "Generated"}, obj()) is False
    assert (
        matches({"source": "Original"}, obj(), source="")
        == "error matching the requested object: web :failed to run Match criteria: "
        "source field not specified for resource web"
    )


def request(**fields):
    return AugmentedReview(read_request({"operation": "UPDATE", **fields}))


def asks(match, subject):
    """Returns whether a plan would find the constraint, by the index if there is a key."""
    review = TARGET.handle_review(subject, {})
    compiled = TARGET.compile_match(match)
    assert review is not None
    if review.key is None:
        return compiled.full(review)
    return compiled.selects(review.key) and (compiled.residual is None or compiled.residual(review))


def test_the_old_object_matches_where_the_new_one_does_not():
    match = {"labelSelector": {"matchLabels": {"a": "b"}}}
    new, old = obj(), obj(labels={"a": "b"})

    assert asks(match, request(object=new, oldObject=old)) is True
    assert asks(match, request(object=old, oldObject=new)) is True
    assert asks(match, request(object=new, oldObject=new)) is False
    assert asks({"kinds": [{"kinds": ["Old"]}]}, request(object=new, oldObject=obj("Old"))) is True


def test_objects_that_cannot_be_looked_at_are_errors():
    with pytest.raises(MatchError, match="neither object nor old object are defined"):
        asks({}, request())
    with pytest.raises(
        MatchError, match=r'failed to unmarshal gkReview object \{"metadata":\{"name":…\}\}'
    ):
        asks({"kinds": []}, request(object={"metadata": {"name": "x"}}))


def test_delete_reviews_the_old_object_as_the_object():
    old = obj(labels={"a": "b"})
    review = TARGET.handle_review(request(operation="DELETE", oldObject=old), {})

    assert old == review.document["object"] == review.document["oldObject"]
    with pytest.raises(ReviewError, match="oldObject cannot be nil for DELETE operations"):
        TARGET.handle_review(request(operation="DELETE", object=old), {})


@pytest.mark.parametrize("operation", ["CREATE", "UPDATE", "DELETE", "CONNECT"])
def test_the_key_is_known_without_making_the_review(operation):
    """A request that cannot be reviewed, or is about two kinds, has none."""
    objects = [None, obj(), obj("Job", "batch"), {"metadata": {"name": "x"}}, {"kind": [1]}]
    for new in objects:
        for old in objects:
            value = request(operation=operation, object=new, oldObject=old)
            key = TARGET.key_of(value)
            if key is not None:
                assert TARGET.handle_review(value, {}).key == key
    whole = request(operation=operation, object=obj(), oldObject=obj())
    assert TARGET.key_of(whole) == ("", "Pod")
    for value in (AugmentedObject(obj(), operation=operation), AugmentedObject({}, operation="")):
        assert TARGET.key_of(value) == TARGET.handle_review(value, {}).key


def test_a_large_object_without_a_kind_is_shown_by_its_beginning():
    """Every constraint may repeat the message: two megabytes of it once made an answer of 26."""
    large = {"metadata": {"name": "x" * 10_000}, "items": [[[1]] * 1000] * 1000, "last": "seen?"}

    with pytest.raises(MatchError) as raised:
        asks({"kinds": []}, request(object=large))

    assert len(str(raised.value)) < 1000
    assert "…" in str(raised.value)
    assert "seen?" not in str(raised.value)
