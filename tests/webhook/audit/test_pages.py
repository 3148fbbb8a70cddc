"""Lists in pages from a server that forgets tokens as old API servers and proxies do.

A real API server always gives a token to go on with; that is tried in
tests/system/test_audit_survives_faults.py.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any

import pytest
from aiohttp import web

from tests.webhook.audit.made import POD, SECRET, items
from webhook.api.resource import Resource
from webhook.audit.pages import GET_COST, ListStatistics, Pages, Partial, PartialObject
from webhook.audit.retries import with_retries
from webhook.audit.source import ListSource, UnreadableKind
from webhook.cluster import event_loop
from webhook.cluster.client import ClusterClient
from webhook.cluster.credentials import Credentials
from webhook.cluster.errors import ApiError, ApiUnreachable
from webhook.cluster.page_size import FIRST_OBJECTS, PAGE_BYTES, PAGE_BYTES_MAX, PageSize

PODS = Resource(POD, "pods", namespaced=True)
Answer = tuple[int, dict[str, Any]]
Query = dict[str, str]


@asynccontextmanager
async def listing(answer: Callable[[Query], Answer]) -> AsyncIterator[ClusterClient]:
    """A client of a server that answers lists, and with single objects."""

    async def handle(request: web.BaseRequest) -> web.StreamResponse:
        query = dict(request.query)
        if "as=PartialObjectMetadataList" in request.headers["Accept"]:
            query["as"] = "metadata"
        if not request.path.endswith("/pods"):
            query["one"] = request.path.rpartition("/")[2]
        status, document = answer(query)
        return web.json_response(document, status=status)

    runner = web.ServerRunner(web.Server(handle))
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    host, port = runner.addresses[0]
    configuration = SimpleNamespace(
        host=f"http://{host}:{port}",
        tls_server_name=None,
        proxy=None,
        get_api_key_with_prefix=lambda _: None,
    )
    try:
        async with ClusterClient(Credentials(lambda: configuration)) as client:
            yield client
    finally:
        await runner.cleanup()


def page(found: list[dict[str, Any]], token: str = "") -> Answer:
    return 200, {"items": found, "metadata": {"resourceVersion": "1", "continue": token}}


def expired(token: str = "") -> Answer:
    metadata = {"continue": token} if token else {}
    return 410, {"kind": "Status", "code": 410, "reason": "Expired", "metadata": metadata}


async def read(
    client: ClusterClient, statistics: ListStatistics, page_objects: int = 2
) -> list[str]:
    pages = Pages(client, PODS, size=PageSize.first(page_objects), statistics=statistics)
    names: list[str] = []
    async for found in pages:
        while found:
            names.append(found.pop()["metadata"]["name"])
    return names


def test_pages_follow_each_other_and_are_emptied_in_the_order_of_the_list() -> None:
    queries: list[Query] = []

    def answer(query: Query) -> Answer:
        queries.append(query)
        if "continue" not in query:
            return page(items(["a", "b"]), "after-b")
        return page(items(["c"]))

    async def run() -> None:
        async with listing(answer) as client:
            assert await read(client, ListStatistics()) == ["a", "b", "c"]

    event_loop.run(run())
    assert queries == [{"limit": "2"}, {"limit": "2", "continue": "after-b"}]


async def read_partly(client: ClusterClient, known: set[str], page_objects: int) -> dict[str, bool]:
    """The names of a list, of which the metadata of some will do, and whether each came whole."""
    partial = Partial(
        lambda obj: b"digest" if obj["metadata"]["name"] in known else None,
        PageSize(page_objects, page_objects),
    )
    pages = Pages(
        client,
        PODS,
        size=PageSize(page_objects, page_objects),
        statistics=ListStatistics(),
        partial=partial,
    )
    came: dict[str, bool] = {}
    async for found in pages:
        while found:
            obj = found.pop()
            came[obj["metadata"]["name"]] = type(obj) is not PartialObject
            assert type(obj) is PartialObject or "spec" in obj
    return came


def whole(names: list[str]) -> list[dict[str, Any]]:
    return [{**item, "spec": {}} for item in items(names, "space")]


def test_of_what_is_known_the_metadata_comes_and_a_few_others_are_fetched_each() -> None:
    names = [f"pod-{number:02}" for number in range(2 * GET_COST)]
    queries: list[Query] = []

    def answer(query: Query) -> Answer:
        queries.append(query)
        if (one := query.get("one")) is not None:
            gone = 404, {"kind": "Status", "code": 404, "reason": "NotFound"}
            return gone if one == "pod-07" else (200, whole([one])[0])
        if "continue" not in query:
            _, found = page(items(names, "space"), "on")
            return 200, {**found, "kind": "PartialObjectMetadataList"}
        return 200, {**page(items(["z"], "space"))[1], "kind": "PartialObjectMetadataList"}

    async def run() -> None:
        async with listing(answer) as client:
            known = {*names, "z"} - {"pod-03", "pod-07"}
            came = await read_partly(client, known, len(names))
        assert [name for name, is_whole in came.items() if is_whole] == ["pod-03"]
        assert list(came) == [name for name in [*names, "z"] if name != "pod-07"]

    event_loop.run(run())
    assert [one.get("one") or one.get("as") for one in queries] == [
        *("metadata", "pod-03", "pod-07", "metadata")
    ]


def test_where_many_are_not_known_the_page_and_those_behind_it_are_listed_whole() -> None:
    queries: list[Query] = []

    def answer(query: Query) -> Answer:
        queries.append(query)
        names, token = {"": (["a", "b"], "2"), "2": (["c", "d"], "3"), "3": (["e", "f"], "")}[
            query.get("continue", "")
        ]
        if "as" not in query:
            return page(whole(names), token)
        return 200, {**page(items(names), token)[1], "kind": "PartialObjectMetadataList"}

    async def run() -> None:
        async with listing(answer) as client:
            came = await read_partly(client, {"a", "b", "d", "f"}, 2)
        assert came == dict.fromkeys("ab", False) | dict.fromkeys("cdef", True)

    event_loop.run(run())
    assert [(one.get("continue"), "as" in one) for one in queries] == [
        *((None, True), ("2", True), ("2", False), ("3", False))
    ]


def test_a_server_that_knows_no_lists_of_metadata_is_taken_at_its_word() -> None:
    async def run() -> None:
        async with listing(lambda _: page(whole(["a"]))) as client:
            assert await read_partly(client, {"a"}, 2) == {"a": True}

    event_loop.run(run())


def test_an_expired_token_is_replaced_by_the_one_that_comes_with_the_error() -> None:
    def answer(query: Query) -> Answer:
        match query.get("continue"):
            case None:
                return page(items(["a"]), "old")
            case "old":
                return expired("from-now-on")
            case _:
                return page(items(["b"]))

    async def run() -> None:
        statistics = ListStatistics()
        async with listing(answer) as client:
            assert await read(client, statistics) == ["a", "b"]
        assert (statistics.continued, statistics.restarted) == (1, 0)

    event_loop.run(run())


def test_without_such_a_token_the_list_begins_anew_and_tells_of_nothing_twice() -> None:
    """The order is that of the keys in etcd: `a-b/x` comes before `a/x`."""
    first = [*items(["x"], "a-b"), *items(["x"], "a")]
    rest = [*items(["y"], "a"), *items(["a"], "b")]
    beginnings = 0

    def answer(query: Query) -> Answer:
        nonlocal beginnings
        if "continue" in query:
            return expired()
        beginnings += 1
        return page(first, "old") if beginnings == 1 else page([*first, *rest])

    async def run() -> None:
        statistics = ListStatistics()
        async with listing(answer) as client:
            assert await read(client, statistics) == ["x", "x", "y", "a"]
        assert (statistics.continued, statistics.restarted) == (0, 1)

    event_loop.run(run())


def test_a_list_that_expires_again_and_again_is_given_up() -> None:
    def answer(query: Query) -> Answer:
        return expired() if "continue" in query else page(items(["a"]), "old")

    async def run() -> None:
        async with listing(answer) as client:
            with pytest.raises(ApiError) as found:
                await read(client, ListStatistics())
            assert found.value.is_expired

    event_loop.run(run())


def test_pages_of_large_objects_have_few_of_them() -> None:
    """The first page is small since nobody knows; the next is as the bytes seen before say."""
    limits: list[int] = []
    large = "x" * (PAGE_BYTES // 10)

    def answer(query: Query) -> Answer:
        limits.append(int(query["limit"]))
        found = items(["a", "b"])
        for item in found:
            item["data"] = large
        return page(found, "" if "continue" in query else "on")

    async def run() -> None:
        async with listing(answer) as client:
            await read(client, ListStatistics(), page_objects=500)

    event_loop.run(run())
    assert limits[0] == FIRST_OBJECTS
    assert limits[1] == 9


def test_a_page_that_is_too_large_is_asked_for_with_fewer_objects_and_the_next_sweep_knows() -> (
    None
):
    """Small objects first and large ones behind them; a page of one is taken as it is."""
    limits: list[int] = []
    names = [f"o{number:03}" for number in range(525)]
    large = "x" * (PAGE_BYTES_MAX // 4)

    def answer(query: Query) -> Answer:
        begin, limit = int(query.get("continue", "0")), int(query["limit"])
        limits.append(limit)
        found = items(names[begin : begin + limit])
        for item in found:
            if item["metadata"]["name"] >= "o505":
                item["data"] = large
        end = begin + limit
        return page(found, str(end) if end < len(names) else "")

    async def run() -> None:
        async with listing(answer) as client:
            source = ListSource(client, 500, forbidden_seconds=0)
            for _ in range(2):
                pages = source.pages(None, PODS)  # type: ignore[arg-type]
                listed_names = [
                    obj["metadata"]["name"] async for found in pages for obj in found[::-1]
                ]
                assert listed_names == names

    event_loop.run(run())
    # Truncated pages are requested again: 500, 62 and 7 of the large objects are too many.
    assert limits[:6] == [FIRST_OBJECTS, 500, 500, 62, 7, 1]
    assert limits.count(FIRST_OBJECTS) == 1
    assert limits[-1] == 1


def test_what_passes_is_waited_out_and_what_does_not_is_raised() -> None:
    answers = iter([(503, {}), (500, {}), page(items(["a"]))])

    async def run() -> None:
        async with listing(lambda _: next(answers)) as client:
            assert await read(client, ListStatistics()) == ["a"]
        async with listing(lambda _: (405, {})) as client:
            with pytest.raises(ApiError, match="405"):
                await read(client, ListStatistics())

    event_loop.run(run())


def test_patience_ends() -> None:
    async def fail() -> None:
        raise ApiUnreachable("gone")

    async def run() -> None:
        with pytest.raises(ApiUnreachable):
            await with_retries(fail, seconds=0)

    asyncio.run(run())


def test_a_kind_that_could_be_read_before_is_not_taken_for_one_without_a_right() -> None:
    """Whether a refusal in the middle of rights that change is all there is, nobody knows."""
    allowed = True

    def answer(query: Query) -> Answer:
        del query
        return page(items(["a"])) if allowed else (403, {})

    async def look(source: ListSource) -> list[Any]:
        resource = Resource(SECRET, "secrets", namespaced=True)
        return [found async for found in source.pages(None, resource)]  # type: ignore[arg-type]

    async def run() -> None:
        nonlocal allowed
        async with listing(answer) as client:
            source = ListSource(client, 500, forbidden_seconds=0)
            assert await look(source)
            allowed = False
            with pytest.raises(ApiError):
                await look(source)
            with pytest.raises(UnreadableKind):
                await look(source)
            allowed = True
            assert await look(source)

    event_loop.run(run())


def test_a_refusal_that_has_lasted_is_waited_out_for_one_kind_and_not_for_each() -> None:
    """A cluster may have many kinds that the audit may not read."""
    paths: list[str] = []

    def answer(query: Query) -> Answer:
        paths.append(query["limit"])
        return 403, {}

    async def run() -> None:
        async with listing(answer) as client:
            source = ListSource(client, 500, forbidden_seconds=0.2)
            for gvk in (SECRET, POD):
                before = len(paths)
                pages = source.pages(None, Resource(gvk, "x", namespaced=True))  # type: ignore[arg-type]
                with pytest.raises(UnreadableKind):
                    await anext(pages)
                counts.append(len(paths) - before)

    counts: list[int] = []
    event_loop.run(run())
    assert counts[0] > 1
    assert counts[1] == 1


def test_a_list_that_goes_in_a_circle_is_given_up() -> None:
    def answer(query: Query) -> Answer:
        return page([], {"": "x", "x": "y", "y": "x"}[query.get("continue", "")])

    async def run() -> None:
        async with listing(answer) as client:
            await read(client, ListStatistics())

    with pytest.raises(ApiUnreachable, match="repeats its pages"):
        asyncio.run(run())


def test_what_is_no_object_is_left_out_of_a_page_and_counted() -> None:
    strange: list[Any] = [5, {"metadata": {}}]
    found = [*items(["a"]), *strange, *items(["b"])]
    statistics = ListStatistics()

    async def run() -> list[str]:
        async with listing(lambda _: page(found)) as client:
            return await read(client, statistics)

    assert asyncio.run(run()) == ["a", "b"]
    assert statistics.malformed == 2
