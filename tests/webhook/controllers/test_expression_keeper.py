"""The kinds that a constraint names, and the warnings about expressions on them."""

import asyncio
import json

import pytest

from tests import policies
from tests.patience import PATIENCE_SECONDS
from tests.webhook.cluster.fault_server import scripted, status
from webhook.api.gvk import GroupKind, GroupVersionKind
from webhook.cluster.client import ClusterClient
from webhook.cluster.errors import ApiError, ApiUnreachable
from webhook.controllers.apply.expression_keeper import ExpressionKeeper, named_kinds
from webhook.controllers.apply.openapi import KindTypes, kind_type
from webhook.controllers.object_faults import TEMPLATES
from webhook.controllers.status.context import WARNINGS
from webhook.generation.plan import Enforced
from webhook.log import Log


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


def in_cel(expression):
    """A template of one expression; None for one in Rego."""
    if expression is None:
        return policies.template("A", "package a")
    return policies.template("A", cel={"validations": [{"expression": expression}]})


def constraint(*kinds):
    """A constraint of these kinds of the core group."""
    return Enforced(policies.constraint("A", "c", kinds=kinds), "")


def answer(document):
    """Returns an API server's answer with a document."""
    return 200, [json.dumps(document).encode()], "end"


INDEX = answer({"paths": {"api/v1": {"serverRelativeURL": "/openapi/v3/api/v1?hash=1"}}})
SCHEMAS = {
    "Pod": {
        "type": "object",
        "properties": {"spec": {"type": "object", "properties": {"a": {"type": "string"}}}},
        "x-kubernetes-group-version-kind": [{"group": "", "version": "v1", "kind": "Pod"}],
    }
}
CORE = answer({"components": {"schemas": SCHEMAS}})


def reported(folder, script, templates, constraints):
    """Returns the keeper's first report, its requests and its log."""
    lines, found = [], []

    async def run():
        log = Log(lines.append).logger("cluster")
        async with (
            scripted(folder, *script) as (server, credentials),
            ClusterClient(credentials) as client,
            asyncio.timeout(PATIENCE_SECONDS),
            asyncio.TaskGroup() as tasks,
        ):
            is_told = asyncio.Event()

            def notify(statuses):
                found.append(statuses)
                is_told.set()

            keeper = ExpressionKeeper(client, log, notify=notify)
            running = tasks.create_task(keeper.run())
            keeper.follow(templates, constraints)
            await is_told.wait()
            running.cancel()
            return [path for path, _ in server.requests]

    requested = asyncio.run(run())
    return found[0], requested, [json.loads(line)["msg"] for line in lines]


def test_an_expression_that_does_not_fit_a_kind_is_reported_at_its_constraint(tmp_path):
    """The comparison is never equal: an API server accepts it, too."""
    found, requested, lines = reported(
        tmp_path,
        [INDEX, CORE],
        {"a": in_cel("object.spec.a == 1")},
        {("A", "c"): constraint("Pod", "Service")},
    )
    assert list(found) == [("A", "c")]
    # Of kinds that the same document describes it is read once.
    (warning,) = found["A", "c"][WARNINGS]
    assert "no matching overload" in json.dumps(warning)
    assert requested == ["/openapi/v3", "/openapi/v3/api/v1"]
    assert lines == []


def test_a_group_is_asked_at_its_preferred_version_and_a_document_that_is_the_same_is_not_read_again(
    tmp_path,
):
    """A group that is not served has no types, and neither has one without a document."""
    types = "x-kubernetes-group-version-kind"
    gvk = {"group": "apps", "version": "v2", "kind": "Scale"}
    schema = {"type": "object", "properties": {"a": {"type": "string"}}, types: [gvk]}
    index = answer({"paths": {"apis/apps/v2": {"serverRelativeURL": "/openapi/apps?hash=1"}}})
    apps = answer({"preferredVersion": {"version": "v2"}})
    bare = answer({"preferredVersion": {"version": "v1"}})
    script = [index, apps, answer({"components": {"schemas": {"s": schema}}}), bare, status(404)]

    async def run():
        async with (
            scripted(tmp_path, *script, index, apps, bare, status(404), status(500)) as (server, c),
            ClusterClient(c) as client,
        ):
            kinds = KindTypes(client)
            requested = [GroupKind("gone", "A"), GroupKind("apps", "Scale"), GroupKind("bare", "B")]
            first = await kinds.look(sorted(requested, key=lambda one: one.kind == "A"))
            assert list(first) == [GroupVersionKind("apps", "v2", "Scale")]
            assert await kinds.look(requested) == first
            with pytest.raises(ApiError):
                await kinds.look(requested)
            assert await kinds.look([]) == {}
            return [path for path, _ in server.requests]

    requested = asyncio.run(run())
    looked = ["/openapi/v3", "/apis/apps", "/openapi/apps", "/apis/bare", "/apis/gone"]
    assert requested[:5] == looked
    assert requested[5:] == ["/openapi/v3", "/apis/apps", "/apis/bare", "/apis/gone", "/openapi/v3"]


def test_an_expression_that_would_cost_an_api_server_too_much_is_reported_at_its_template(tmp_path):
    costly = "object.a.all(a, object.b.all(b, object.c.all(c, a == b && b == c)))"
    found, requested, _ = reported(tmp_path, [], {"a": in_cel(costly)}, {})
    assert list(found) == [(TEMPLATES, "a")]
    assert found[TEMPLATES, "a"][WARNINGS]
    assert requested == []  # No constraint names a kind.


@pytest.mark.parametrize("template", [in_cel(None), in_cel(1)], ids=["Rego", "broken"])
def test_nothing_is_asked_for_templates_without_an_expression_that_can_be_read(tmp_path, template):
    templates, constraints = {"a": template}, {("A", "c"): constraint("Pod")}
    found, requested, lines = reported(tmp_path, [], templates, constraints)
    assert (found, requested, lines) == ({}, [], [])


def test_an_outage_is_reported_and_the_kinds_are_looked_up_after_it(tmp_path):
    found, _, lines = reported(
        tmp_path,
        [status(500), INDEX, CORE],
        {"a": in_cel("object.spec.a == 1")},
        {("A", "c"): constraint("Pod")},
    )
    assert list(found) == [("A", "c")]
    assert lines == ["schemas of kinds cannot be read from the API server; trying again"]


def nested(levels):
    """A schema so deep."""
    schema = {"type": "string"}
    for _ in range(levels):
        schema = {"type": "object", "properties": {"a": schema}}
    return schema


@pytest.mark.parametrize(
    ("schema", "is_known"),
    [
        (nested(100), True),
        (nested(3_000), False),
        ({"type": "object", "properties": {"a": {"type": "array", "items": []}}}, False),
        ({"type": "object", "properties": {"a": {"allOf": 5}}}, False),
        ({"type": "object", "properties": {"a": {"$ref": "nowhere"}}}, True),
    ],
)
def test_a_schema_that_cannot_be_followed_leaves_its_kind_without_a_type(schema, is_known):
    """Such a schema ended the session at the cluster: no change of policy was followed."""
    gvk = GroupVersionKind("a", "v1", "A")
    named = {"x-kubernetes-group-version-kind": [{"group": "a", "version": "v1", "kind": "A"}]}
    document = {"components": {"schemas": {"A": schema | named}}}
    assert (kind_type(document, gvk) is not None) is is_known
    odd = {"components": {"schemas": {"B": None, "A": schema | named}}}
    assert kind_type(odd, gvk) is None


POD = GroupVersionKind("", "v1", "Pod")
PODS = {"serverRelativeURL": "/openapi/v3/api/v1?hash=1"}


def looked(folder, *script, of=POD.group_kind):
    """The kinds whose types are found by such answers, and what was asked for."""

    async def run():
        async with (
            asyncio.timeout(PATIENCE_SECONDS),
            scripted(folder, *script) as (server, credentials),
            ClusterClient(credentials) as client,
        ):
            found = await KindTypes(client).look([of])
            return list(found), [path for path, _ in server.requests]

    return asyncio.run(run())


@pytest.mark.parametrize(
    "document",
    [
        None,
        [],
        "x",
        5,
        {"components": None},
        {"components": []},
        {"components": {"schemas": None}},
        {"components": {"schemas": [1]}},
    ],
)
def test_a_document_of_another_shape_describes_no_kind(tmp_path, document):
    assert kind_type(document, POD) is None
    found, requested = looked(tmp_path, INDEX, answer(document))
    assert (found, requested) == ([], ["/openapi/v3", "/openapi/v3/api/v1"])


@pytest.mark.parametrize(
    "odd",
    [
        None,
        "x",
        [],
        {},
        {"serverRelativeURL": None},
        {"serverRelativeURL": 5},
        # It would be another host, behind that of the API server.
        {"serverRelativeURL": ".example.com/openapi/v3"},
        {"serverRelativeURL": "@example.com/openapi/v3"},
    ],
)
def test_an_entry_of_the_index_that_is_no_place_is_left_out(tmp_path, odd):
    paths = {"apis/odd/v1": odd, "api/v1": PODS}
    assert looked(tmp_path, answer({"paths": paths}), CORE)[0] == [POD]
    assert looked(tmp_path, answer({"paths": {"api/v1": odd}})) == ([], ["/openapi/v3"])


def test_an_index_of_nothing_may_have_null_for_its_paths(tmp_path):
    assert looked(tmp_path, answer({"paths": None})) == ([], ["/openapi/v3"])


@pytest.mark.parametrize("document", [None, [], "x", {}, {"paths": []}, {"paths": "x"}])
def test_what_is_no_index_is_no_answer_and_is_asked_again(tmp_path, document):
    """Such an answer ended the session at the cluster, again and again."""
    with pytest.raises(ApiUnreachable, match="/openapi/v3: the answer is not an index"):
        looked(tmp_path, answer(document))
    found, _, lines = reported(
        tmp_path,
        [answer(document), INDEX, CORE],
        {"a": in_cel("object.spec.a == 1")},
        {("A", "c"): constraint("Pod")},
    )
    assert list(found) == [("A", "c")]
    assert lines == ["schemas of kinds cannot be read from the API server; trying again"]


@pytest.mark.parametrize(
    "group",
    [None, [], "x", {}, {"preferredVersion": None}, {"preferredVersion": {"version": 5}}],
)
def test_a_group_that_prefers_no_version_has_no_types(tmp_path, group):
    found, requested = looked(tmp_path, INDEX, answer(group), of=GroupKind("odd", "Odd"))
    assert (found, requested) == ([], ["/openapi/v3", "/apis/odd"])
