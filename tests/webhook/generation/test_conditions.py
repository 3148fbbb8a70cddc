"""Match conditions of generated policies say what the webhook's match says."""

import itertools
from functools import cache

import pytest

from tests.webhook.generation.patterns import KINDS, NAMES, PATTERNS
from webhook.api import names
from webhook.api.gvk import GroupVersionKind
from webhook.cel.engine import compile_expression
from webhook.cel.kubernetes import match_conditions
from webhook.cel.run.meter import Meter
from webhook.constraint.match import MatchSubject, View, compile_criteria, for_process
from webhook.generation import conditions

ENVIRONMENT = match_conditions()


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
