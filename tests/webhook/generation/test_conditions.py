"""Match conditions of generated policies say what the webhook's match says."""

import itertools
from functools import cache

import pytest

from tests.webhook.generation.patterns import KINDS, NAMES, PATTERNS
from webhook.api import names
from webhook.api.admission import read_request
from webhook.api.gvk import GroupVersionKind
from webhook.cel.engine import compile_expression
from webhook.cel.kubernetes import match_conditions
from webhook.cel.run.meter import Meter
from webhook.constraint.match import MatchSubject, View, compile_criteria, for_process
from webhook.generation import conditions
from webhook.review.releasing import only_releases

ENVIRONMENT = match_conditions()
HELD = {
    "kind": "Pod",
    "metadata": {"name": "a", "labels": {"a": "b"}, "finalizers": ["x", "y"], "generation": 1},
    "spec": {"containers": [{"name": "c"}]},
}


def changed(**changes):
    """A Pod after a change of its metadata; without what is None."""
    fields = {**HELD["metadata"], **changes}
    return {
        **HELD,
        "metadata": {name: value for name, value in fields.items() if value is not None},
    }


@pytest.mark.parametrize("old", [HELD, changed(deletionTimestamp="2026-01-01T00:00:00Z")])
@pytest.mark.parametrize(
    "new",
    [
        HELD,
        changed(finalizers=["y"], generation=2, managedFields=[{"manager": "m"}]),
        changed(finalizers=["y", "x"]),
        changed(finalizers=None),
        changed(finalizers=[]),
        changed(finalizers=["z"]),
        changed(finalizers=None, labels=None),
        changed(finalizers=None, labels={"a": "c"}),
        changed(finalizers=None, annotations={"a": "b"}),
        changed(finalizers=None) | {"spec": {"containers": []}},
        changed(finalizers=None) | {"status": {}},
        {key: value for key, value in changed(finalizers=None).items() if key != "spec"},
    ],
)
def test_an_update_that_only_removes_finalizers_meets_no_generated_policy(old, new):
    """The API server refused it by them: such Pods hung in Terminating."""
    deletion = {key: old["metadata"].get(key) for key in ("deletionTimestamp",)}
    new = {**new, "metadata": {**new["metadata"], **deletion}}
    request = {"operation": "UPDATE", "kind": {"group": "", "version": "v1", "kind": "Pod"}}
    document = {**request, "object": new, "oldObject": old}
    released = (
        only_releases(read_request(document)) and len(new["metadata"].get("finalizers", [])) < 2
    )
    given = {"object": new, "oldObject": old, "request": request}
    given |= {"namespaceObject": None, "params": None, "authorizer": None}
    expression = conditions.not_released()["expression"]
    assert compiled(expression).evaluate(given, Meter()) is not released
    for one in ({"object": new, "oldObject": None}, {"object": None, "oldObject": old}):
        operation = "DELETE" if one["object"] is None else "CREATE"
        given |= {**one, "request": {**request, "operation": operation}}
        assert compiled(expression).evaluate(given, Meter()) is True


@cache
def compiled(expression):
    """An expression, compiled once."""
    return compile_expression(expression, ENVIRONMENT)


def holds(listed, request, parameters):
    """Whether all conditions hold for a request."""
    given = {
        "object": request.get("object"),
        "oldObject": request.get("oldObject"),
        "request": {
            "kind": {"group": request["group"], "version": "v1", "kind": request["kind"]},
            **({"namespace": request["namespace"]} if request["namespace"] else {}),
        },
        "namespaceObject": None,
        "params": parameters,
        "authorizer": None,
    }
    return all(compiled(one["expression"]).evaluate(given, Meter()) is True for one in listed)


def matched(match, request):
    """Returns whether the webhook matches the request."""
    gvk = GroupVersionKind(request["group"], "v1", request["kind"])
    documents = [request.get("object"), request.get("oldObject")]
    views = tuple(View(document, gvk) for document in documents if document is not None)
    namespace = request["namespace"]
    known = None if not namespace else {"metadata": {"name": namespace}}
    subject = MatchSubject(views, known, "Original")
    test = compile_criteria(for_process(match, "webhook"))
    return any(test(view, subject) for view in views)


def requests():
    """Creations, updates and deletions of namespaced, cluster-wide objects, and Namespaces."""
    for group, kind in (("", "Pod"), ("apps", "Deployment")):
        for namespace, name in itertools.product(("default", "kube-system", "a"), ("web", "a-b")):
            document = {"metadata": {"name": name, "namespace": namespace}}
            base = {"group": group, "kind": kind, "namespace": namespace}
            yield {**base, "object": document}
            yield {**base, "object": document, "oldObject": document}
            yield {**base, "oldObject": document}
    for name in ("default", "kube-system", "web"):
        document = {"metadata": {"name": name}}
        yield {"group": "", "kind": "Namespace", "namespace": "", "object": document}
        yield {"group": "", "kind": "Namespace", "namespace": name, "oldObject": document}
        yield {"group": "rbac", "kind": "Role", "namespace": "", "object": document}
    generated = {"metadata": {"generateName": "web-", "namespace": "a", "name": "web-x1"}}
    yield {"group": "", "kind": "Pod", "namespace": "a", "object": generated}
    yield {"group": "", "kind": "PodExecOptions", "namespace": "a", "object": {"command": ["sh"]}}


MATCHES = [
    {},
    *({"namespaces": one} for one in PATTERNS),
    *({"excludedNamespaces": one} for one in PATTERNS),
    *({"name": one} for one in NAMES),
    *({"kinds": one} for one in KINDS),
    {"namespaces": ["default", "a"], "excludedNamespaces": ["a"], "name": "web*"},
    {"kinds": KINDS[1], "name": "*b", "excludedNamespaces": ["*-system"]},
    *(
        {"namespaces": ["default", "a"], "excludedNamespaces": ["a"], "processes": one}
        for one in ([], ["webhook"], ["audit"], ["audit", "sync"], ["sync", "*"])
    ),
]


@pytest.mark.parametrize("match", MATCHES, ids=repr)
def test_both_forms_of_the_conditions_say_what_the_webhook_says(match):
    for request in requests():
        expected = matched(match, request)
        of_parameters = conditions.of_parameters()
        assert holds(of_parameters, request, {"spec": {"match": match}}) is expected, request
        assert holds(conditions.of_match(match), request, None) is expected, request


def test_a_constraint_without_a_match_or_without_a_spec_matches_everything():
    for parameters in ({}, {"spec": {}}, {"spec": {"match": {}}}, None):
        assert all(holds(conditions.of_parameters(), one, parameters) for one in requests())
    assert conditions.of_match({}) == []


@pytest.mark.parametrize("patterns", PATTERNS, ids=repr)
def test_namespaces_excluded_by_config_are_left_out_and_a_namespace_counts_as_its_own(patterns):
    for request in requests():
        assert holds(conditions.globally_excluded(patterns), request, None) is matched(
            {"excludedNamespaces": patterns}, request
        )


def test_a_namespace_is_exempt_if_it_may_carry_the_label_and_does():
    listed = conditions.globally_exempted(["kube-*"])

    def of(name, labels):
        metadata = {"name": name, **({} if labels is None else {"labels": labels})}
        request = {"group": "", "kind": "Namespace", "namespace": ""}
        return holds(listed, {**request, "object": {"metadata": metadata}}, None)

    label = {names.IGNORE: "yes"}
    assert not of("kube-system", label)
    assert of("kube-system", None)
    assert of("kube-system", {"a": "b"})
    assert of("other", label)
    inside = {"metadata": {"name": "web", "namespace": "kube-system", "labels": label}}
    request = {"group": "", "kind": "Pod", "namespace": "kube-system", "object": inside}
    assert holds(listed, request, None), "its namespace's own label decides, by the selector"


def test_names_of_conditions_are_gatekeeper_s_in_its_order():
    assert [one["name"] for one in conditions.of_parameters()] == [
        f"gatekeeper_internal_match_{name}"
        for name in ("excluded_namespaces", "namespaces", "name", "kinds")
    ]


def test_no_text_of_a_constraint_ends_its_literal():
    evil = 'a", "b"]) || true || size(["'
    found = conditions.of_match({"namespaces": [evil], "name": evil})
    request = {"group": "", "kind": "Pod", "namespace": "a", "object": {"metadata": {"name": "x"}}}
    assert not holds(found, request, None)
