"""Discovery answers of an API server: a faulty group affects only itself."""

import asyncio
import json

import pytest

from tests.patience import PATIENCE_SECONDS
from tests.webhook.cluster.fault_server import scripted
from webhook.api.gvk import GroupVersionKind
from webhook.api.resource import Resource
from webhook.cluster.client import ClusterClient
from webhook.cluster.discovery import Discovery, UnknownKind
from webhook.cluster.errors import ApiUnreachable
from webhook.watch.manager import Manager

WIDGET = GroupVersionKind("odd.example.com", "v1", "Widget")
WIDGETS = {"name": "widgets", "kind": "Widget", "namespaced": True}


def answer(document):
    """Returns a server's answer with a document."""
    return 200, [json.dumps(document).encode()], "end"


def discovered(folder, *script, question):
    """Returns discovery's answer to a question, with these answers of the server."""

    async def run():
        async with (
            asyncio.timeout(PATIENCE_SECONDS),
            scripted(folder, *script) as (_, credentials),
            ClusterClient(credentials) as client,
        ):
            return await question(Discovery(client))

    return asyncio.run(run())


def kinds(discovery):
    return discovery.kinds("odd.example.com", "v1")


def test_kinds_are_without_subresources_each_under_its_first_plural(tmp_path):
    more = [
        {"name": "widgets/status", "kind": "Widget", "namespaced": True},
        {"name": "others", "kind": "Widget", "namespaced": False},
        {"name": "gadgets", "kind": "Gadget", "namespaced": False},
    ]
    found = discovered(tmp_path, answer({"resources": [WIDGETS, *more]}), question=kinds)
    assert found == [
        Resource(WIDGET, "widgets", namespaced=True),
        Resource(WIDGET._replace(kind="Gadget"), "gadgets", namespaced=False),
    ]


@pytest.mark.parametrize("resources", [None, []])
def test_a_group_without_resources_serves_no_kind(tmp_path, resources):
    """Go writes an empty list as null."""
    assert discovered(tmp_path, answer({"resources": resources}), question=kinds) == []
    with pytest.raises(UnknownKind, match=r"serves no odd\.example\.com/v1, Kind=Widget"):
        discovered(
            tmp_path,
            answer({"resources": resources}),
            question=lambda discovery: discovery.resource(WIDGET),
        )


@pytest.mark.parametrize(
    "entry",
    [
        None,
        "gadgets",
        [],
        {},
        {"kind": "Gadget", "namespaced": True},
        {"name": "gadgets", "namespaced": True},
        {"name": 5, "kind": "Gadget", "namespaced": True},
        {"name": "", "kind": "Gadget", "namespaced": True},
        {"name": "gadgets", "kind": ["Gadget"], "namespaced": True},
        {"name": "gadgets", "kind": "Gadget", "namespaced": "false"},
    ],
)
def test_an_entry_of_another_shape_is_left_out_and_the_others_are_known(tmp_path, entry):
    found = discovered(tmp_path, answer({"resources": [entry, WIDGETS]}), question=kinds)
    assert found == [Resource(WIDGET, "widgets", namespaced=True)]


def test_a_kind_that_does_not_say_its_scope_is_cluster_wide_as_go_reads_it(tmp_path):
    entry = {"name": "widgets", "kind": "Widget"}
    for scope in ({}, {"namespaced": None}):
        found = discovered(tmp_path, answer({"resources": [entry | scope]}), question=kinds)
        assert found == [Resource(WIDGET, "widgets", namespaced=False)]


@pytest.mark.parametrize(
    "document", [None, [], "x", 5, {}, {"kind": "Status"}, {"resources": {}}, {"resources": "x"}]
)
def test_what_is_no_list_of_resources_is_no_answer_and_is_asked_again(tmp_path, document):
    """Such an answer does not mean that the kind is not served."""

    async def twice(discovery):
        with pytest.raises(ApiUnreachable, match="the answer is not a list of resources"):
            await discovery.resource(WIDGET)
        return await discovery.resource(WIDGET)

    script = answer(document), answer({"resources": [WIDGETS]})
    assert discovered(tmp_path, *script, question=twice) == Resource(
        WIDGET, "widgets", namespaced=True
    )


@pytest.mark.parametrize(
    "odd", [{"resources": None}, {"resources": [None]}, {"resources": 5}, [], None]
)
def test_an_odd_answer_ends_no_other_watch(tmp_path, odd):
    """Such an answer ended the session at the cluster, again and again."""

    async def run():
        async with (
            asyncio.timeout(PATIENCE_SECONDS),
            scripted(tmp_path, answer(odd)) as (server, credentials),
            ClusterClient(credentials) as client,
            asyncio.TaskGroup() as tasks,
        ):
            manager = Manager(client, Discovery(client))
            manager.registrar("one").add_watch(WIDGET)
            running = tasks.create_task(manager.run())
            await server.done.wait()
            statistics = manager.statistics()[WIDGET]
            assert statistics.last_error
            # That a kind is not served only a list can say.
            assert statistics.absent is (isinstance(odd, dict) and odd["resources"] != 5)
            running.cancel()
            return [path for path, _ in server.requests]

    assert asyncio.run(run()) == ["/apis/odd.example.com/v1"] * 2
