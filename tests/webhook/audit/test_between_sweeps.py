"""Between sweeps what changed is reviewed by all that is in force, whatever of it is new."""

import asyncio
import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from tests.patience import PATIENCE_SECONDS
from tests.webhook.audit.made import DEPLOYMENT, POD, constraint, template
from tests.webhook.mutation.documents import known, label
from webhook.api.gvk import GroupVersionKind
from webhook.api.resource import Resource
from webhook.audit.reviewer import Reviewer
from webhook.audit.sink import Audited
from webhook.audit.sweeps import SweepOptions, Sweeps
from webhook.cluster.errors import ApiError
from webhook.constraint.client import Client
from webhook.constraint.drivers.rego import RegoDriver
from webhook.constraint.expansion import Expansion, ExpansionTemplate
from webhook.constraint.limits import UNLIMITED
from webhook.constraint.result import Responses
from webhook.constraint.targets.admission import AdmissionTarget
from webhook.log import Log
from webhook.metrics.registry import Registry
from webhook.review.policy_set import Exclusions, PolicySet
from webhook.serving.revision import Revision, Serving

PLURALS = {POD: "pods", DEPLOYMENT: "deployments"}
PODS_ARE_BY = """violation[{"msg": msg}] {
  input.review.kind.kind == "Pod"
  msg := object.get(input.review.object, ["metadata", "labels", "by"], "nobody")
}"""
EXPANSION = Expansion(
    [ExpansionTemplate("deployments", frozenset({DEPLOYMENT}), ("spec", "template"), POD)]
)
MUTATIONS = known(label("by", "by", "us")).snapshot


class Cluster:
    """An API server of Pods and Deployments: its lists are empty, its watches tell what changed."""

    log = None

    def __init__(self) -> None:
        self._lines: dict[str, asyncio.Queue[bytes]] = {}
        self.answered: dict[str, str] = {}
        self._version = 1

    def kept(self, obj: Any) -> Any:
        return obj

    async def request(self, method: str, path: str, **_: Any) -> Any:
        assert method == "GET"
        if path not in ("/api", "/apis"):
            return {"metadata": {"resourceVersion": "1"}, "items": []}
        items = [self._group(gvk) for gvk in PLURALS if bool(gvk.group) == (path == "/apis")]
        return {"kind": "APIGroupDiscoveryList", "items": items}

    def _group(self, gvk: GroupVersionKind) -> dict[str, Any]:
        entry = {
            "resource": PLURALS[gvk],
            "responseKind": {"kind": gvk.kind},
            "scope": "Namespaced",
            "verbs": ["list"],
        }
        versions = [{"version": gvk.version, "resources": [entry]}]
        return {"metadata": {"name": gvk.group}, "versions": versions}

    async def get(self, _: Any, name: str) -> dict[str, Any]:
        return {"metadata": {"name": name}}

    async def page(self, path: str, *_: Any, **__: Any) -> tuple[dict[str, Any], int]:
        return await self.request("GET", path), 1

    @asynccontextmanager
    async def stream(
        self, path: str, query: dict[str, str], **_: Any
    ) -> AsyncIterator[SimpleNamespace]:
        if "sendInitialEvents" in query:
            raise ApiError(400, "no such list")
        lines = self._lines.setdefault(path.rpartition("/")[2], asyncio.Queue())

        async def chunks() -> AsyncIterator[bytes]:
            while True:
                yield await lines.get()

        yield SimpleNamespace(iter_any=chunks)

    def change(self, gvk: GroupVersionKind, name: str, namespace: str) -> None:
        """An object is made or changes."""
        self._version += 1
        metadata = {
            "name": name,
            "namespace": namespace,
            "uid": name,
            "resourceVersion": str(self._version),
        }
        obj = {"metadata": metadata, "spec": {"template": {"metadata": {}, "spec": {}}}}
        event = {"type": "MODIFIED", "object": obj}
        lines = self._lines.setdefault(PLURALS[gvk], asyncio.Queue())
        lines.put_nowait(json.dumps(event).encode() + b"\n")


class MessageSink:
    """A sink that keeps its results."""

    def __init__(self) -> None:
        self.swept: list[frozenset[GroupVersionKind]] = []
        self.messages: list[tuple[str, list[str]]] = []
        self.news = asyncio.Event()

    async def start(self, start: Any) -> None:
        self.swept.append(start.kinds)
        self.news.set()

    async def audited(self, audited: Audited) -> None:
        messages = [result.msg for result in audited.responses.results]
        self.messages.append((audited.identity.name, messages))
        self.news.set()

    async def gone(self, identity: Any) -> None:
        raise AssertionError(identity)

    async def end(self, end: Any) -> None:
        del end


class _Alone:
    """The share of an audit whose totals interest nobody."""

    async def look(self) -> None:
        pass

    async def is_current(self) -> bool:
        return False

    def is_ours(self, *_: Any) -> bool:
        return True


def policies() -> Client:
    """Returns a client with one constraint of Pods and Deployments."""
    client = Client(targets=[AdmissionTarget()], drivers=[RegoDriver()])
    client.add_template(template("By", PODS_ARE_BY))
    client.add_constraint(constraint("By", "all", POD, DEPLOYMENT))
    return client


def audit(cluster: Cluster, serving: Serving, sink: MessageSink) -> Sweeps:
    """Returns an audit that goes on between its sweeps and reports to a sink."""
    return Sweeps(
        cluster,  # type: ignore[arg-type]
        serving,
        SweepOptions(500, 20, continuous=True, from_cache=False),
        _Alone(),  # type: ignore[arg-type]
        lambda: UNLIMITED,
        registry=Registry(),
        log=Log(lambda _: None).logger("audit"),
        sinks=[sink],
        events=None,
        notify=lambda _: None,
    )


def between(
    before: Revision, after: Revision, *changes: tuple[GroupVersionKind, str, str]
) -> MessageSink:
    """Return the first report after a sweep by one revision, once another is in force.

    ``changes`` are objects that change then, by kind, name and namespace.
    """

    async def run() -> MessageSink:
        cluster, sink, serving = Cluster(), MessageSink(), Serving(before)
        sweeps = audit(cluster, serving, sink)
        async with asyncio.timeout(PATIENCE_SECONDS), asyncio.TaskGroup() as tasks:
            beside = tasks.create_task(sweeps.run())
            await asyncio.sleep(0)
            await sweeps.sweep(before, lambda: None)
            sink.news.clear()
            serving.revision = after
            until = time.monotonic() + PATIENCE_SECONDS
            following = tasks.create_task(sweeps.follow(until, lambda: None))
            for change in changes:
                cluster.change(*change)
            await sink.news.wait()
            beside.cancel()
            following.cancel()
        return sink

    return asyncio.run(run())


def test_a_namespace_that_config_takes_out_or_in_is_so_at_once() -> None:
    """The policies are the same as before: Config alone is another."""
    client = policies()
    every = Revision(PolicySet(client.snapshot), client)
    some = replace(
        every, policies=replace(every.policies, exclusions=Exclusions(audit="out".__eq__))
    )
    changes = (POD, "first", "out"), (POD, "second", "in")
    assert between(every, some, *changes).messages == [("second", ["nobody"])]
    assert between(some, every, *changes).messages[0] == ("first", ["nobody"])


def test_what_an_object_implies_is_reviewed_from_when_the_expansion_is_in_force() -> None:
    client = policies()
    before = Revision(PolicySet(client.snapshot), client)
    sink = between(
        before,
        replace(before, policies=replace(before.policies, expansion=EXPANSION)),
        (DEPLOYMENT, "web", "in"),
    )
    assert sink.messages == [("web", ["[Implied by deployments] nobody"])]


def test_what_an_object_implies_is_mutated_as_it_would_be_now() -> None:
    client = policies()
    before = Revision(PolicySet(client.snapshot, expansion=EXPANSION), client)
    sink = between(
        before,
        replace(before, policies=replace(before.policies, mutations=MUTATIONS)),
        (DEPLOYMENT, "web", "in"),
    )
    assert sink.messages == [("web", ["[Implied by deployments] us"])]


def test_a_constraint_that_comes_with_an_expansion_has_what_implies_its_kind_listed() -> None:
    client = policies()
    before = Revision(PolicySet(client.snapshot), client)
    client.add_constraint(constraint("By", "pods", POD))
    sink = between(before, Revision(PolicySet(client.snapshot, expansion=EXPANSION), client))
    assert sink.swept[1:] == [frozenset({POD, DEPLOYMENT})]


def test_the_first_constraint_of_a_kind_has_it_swept_and_followed() -> None:
    """No watch had it before: an audit may begin while policies still arrive."""
    client = Client(targets=[AdmissionTarget()], drivers=[RegoDriver()])
    client.add_template(template("By", PODS_ARE_BY))
    before = Revision(PolicySet(client.snapshot), client)
    client.add_constraint(constraint("By", "pods", POD))
    sink = between(before, Revision(PolicySet(client.snapshot), client))
    assert sink.swept == [frozenset(), frozenset({POD})]


def test_policies_that_are_the_same_have_nothing_listed_again() -> None:
    client = policies()
    before = Revision(PolicySet(client.snapshot), client)
    sink = between(
        before,
        replace(before, policies=replace(before.policies, mutations=MUTATIONS)),
        (POD, "a", "in"),
    )
    assert sink.swept == [frozenset({POD, DEPLOYMENT})]
    assert sink.messages == [("a", ["nobody"])]


def test_a_bug_with_one_changed_object_costs_that_object_and_not_the_audit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    review = Reviewer.review

    async def faulty(self: Reviewer, resource: Resource, obj: dict[str, Any]) -> Responses | None:
        if obj["metadata"]["name"] == "odd":
            raise ZeroDivisionError
        return await review(self, resource, obj)

    monkeypatch.setattr(Reviewer, "review", faulty)
    client = policies()
    revision = Revision(PolicySet(client.snapshot), client)
    sink = between(revision, revision, (POD, "odd", "in"), (POD, "sound", "in"))
    assert sink.messages == [("sound", ["nobody"])]


def test_another_revision_does_not_put_off_the_totals() -> None:
    """With data that is synced and changes all the time they waited for the next sweep."""
    client = policies()
    before = Revision(PolicySet(client.snapshot), client)

    async def run() -> None:
        serving = Serving(before)
        sweeps = audit(Cluster(), serving, MessageSink())
        async with asyncio.timeout(PATIENCE_SECONDS), asyncio.TaskGroup() as tasks:
            beside = tasks.create_task(sweeps.run())
            await asyncio.sleep(0)
            await sweeps.sweep(before, lambda: None)
            swept = sweeps._continuous
            assert swept is not None
            serving.revision = replace(before)
            await sweeps._step(swept, 0.0, lambda: None)
            assert sweeps._continuous is not None
            assert sweeps._continuous.revision is serving.revision
            assert sweeps._continuous.published_at == swept.published_at
            beside.cancel()

    asyncio.run(run())
