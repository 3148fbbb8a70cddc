"""A bug in bringing one report up to date costs that report alone."""

import asyncio
import json
from typing import Any

import pytest

from tests.patience import PATIENCE_SECONDS
from tests.webhook.reports.made import finding
from webhook.api.gvk import GroupVersionKind
from webhook.api.resource import Resource
from webhook.cluster.errors import ApiError, ApiUnreachable
from webhook.log import Log
from webhook.metrics.cluster import OBJECT_FAULTS
from webhook.metrics.registry import Registry
from webhook.reports import policy_reports
from webhook.reports.finding import Assessment, Policy, ReportSubject, settled
from webhook.reports.policy_reports import PolicyReports
from webhook.reports.refresher import Refresher
from webhook.reports.report_api import WGPOLICY
from webhook.reports.writer import RETRIES, Faults, NotServed

CONFIG_MAP = GroupVersionKind("", "v1", "ConfigMap")
POLICY = Policy("RequireRunAsNonRoot", "must-run-as-non-root")
BUG = "ZeroDivisionError: a bug"


def marked(name):
    """A resource by its name."""
    return ReportSubject(CONFIG_MAP, "default", name, f"uid-{name}")


class BugLog:
    """The reports of bugs."""

    def __init__(self):
        self.lines, self.registry = [], Registry()
        self.log = Log(self.lines.append).logger("test")
        self.faults = Faults(self.log, self.registry)

    @property
    def errors(self):
        """Returns the errors of the log lines with a traceback."""
        lines = [json.loads(line) for line in self.lines]
        return [line["error"] for line in lines if "stacktrace" in line]


class Cluster:
    """Every resource is there; of some, reports have a bug so many times."""

    def __init__(self, **bugs):
        self.bugs, self.put_ = dict(bugs), []

    async def resource(self, gvk):
        return Resource(gvk, "configmaps", namespaced=True)

    async def get(self, _, name, namespace):
        return {"metadata": {"name": name, "namespace": namespace, "uid": f"uid-{name}"}}

    async def assess(self, _, obj):
        name = obj["metadata"]["name"]
        if self.bugs.get(name):
            self.bugs[name] -= 1
            raise ZeroDivisionError("a bug")
        return Assessment(settled([finding()]), {POLICY: "uid"})

    def policies(self, subject):
        del subject
        return {POLICY: "uid"}

    async def put(self, subject, assessment, *, is_new):
        self.put_.append((subject.name, is_new, set(assessment.policies)))


async def at_rest(work):
    """Have it run until nothing is left to do."""
    async with asyncio.timeout(PATIENCE_SECONDS), asyncio.TaskGroup() as tasks:
        running = tasks.create_task(work.run())
        while not work.is_idle:  # noqa: ASYNC110  # no event tells
            await asyncio.sleep(0.001)
        running.cancel()


def refreshed(cluster, log, *names):
    """A refresher that has done with these resources."""

    async def run():
        seams: Any = cluster
        refresher = Refresher(seams, seams, seams, seams, log.log, log.faults)
        refresher._backoff.initial_seconds = refresher._backoff.max_seconds = 0.001
        for name in names:
            other = Policy("Other", name)
            assert refresher.mark(marked(name), is_new=True, policies=[other])
        await at_rest(refresher)
        return refresher

    return asyncio.run(run())


def test_a_bug_with_one_resource_is_reported_and_it_is_tried_again_with_all_that_was_known_of_it():
    """The bug ended the writing of all reports, and everything beside it."""
    cluster, log = Cluster(b=2), BugLog()
    refresher = refreshed(cluster, log, "a", "b", "c")
    known = {one[0]: one[1:] for one in cluster.put_}
    assert known == {name: (True, {POLICY, Policy("Other", name)}) for name in "abc"}
    assert dict(refresher.lost) == {}
    assert log.errors == [BUG]  # the log has the same bug once
    assert log.registry.counters[OBJECT_FAULTS] == {("report",): 2}


def test_what_has_a_bug_again_and_again_is_left_to_the_next_audit():
    cluster, log = Cluster(b=100), BugLog()
    refresher = refreshed(cluster, log, "a", "b")
    assert [one[0] for one in cluster.put_] == ["a"]
    assert dict(refresher.lost) == {"failed": 1}
    assert log.registry.counters[OBJECT_FAULTS] == {("report",): RETRIES + 1}


class Store:
    """Keeps reports of policies; of some namespaces it has a bug so many times."""

    def __init__(self, error=None, **bugs):
        self.bugs, self.written = dict(bugs), []
        self.error = error or ZeroDivisionError("a bug")
        self.outcomes = {"create": 0}

    async def read(self, _, namespace):
        if self.bugs.get(namespace):
            self.bugs[namespace] -= 1
            raise self.error

    async def swap(self, _, desired, namespace):
        entries = desired["results"] if desired else []
        self.written.append((namespace, [one["resources"][0]["name"] for one in entries]))
        return "create"


def stored(store, log, *places, monkeypatch):
    """The reports of policies when all that was found is written."""
    monkeypatch.setattr(policy_reports, "GATHER_SECONDS", 0.0)

    async def run():
        writer: Any = store
        reports = PolicyReports(
            writer, WGPOLICY, log.log, entries_max=5, resources_max=10, faults=log.faults
        )
        reports._backoff.initial_seconds = reports._backoff.max_seconds = 0.001
        for namespace in places:
            about = marked("a")._replace(namespace=namespace)
            found = Assessment(settled([finding()]), {POLICY: ""})
            await reports.put(about, found, is_new=True)
        await at_rest(reports)
        return reports

    return asyncio.run(run())


def test_a_bug_with_one_place_is_reported_and_its_changes_are_written_later(monkeypatch):
    store, log = Store(x=2), BugLog()
    reports = stored(store, log, "x", "y", monkeypatch=monkeypatch)
    assert sorted(store.written) == [("x", ["a"]), ("y", ["a"])]
    assert reports.unwritten == 0
    assert log.errors == [BUG]
    assert log.registry.counters[OBJECT_FAULTS] == {("report",): 2}


def test_a_place_that_has_a_bug_again_and_again_is_left_to_the_next_audit(monkeypatch):
    store, log = Store(x=100), BugLog()
    reports = stored(store, log, "x", "y", monkeypatch=monkeypatch)
    assert store.written == [("y", ["a"])]
    assert reports.unwritten == 1


@pytest.mark.parametrize(
    ("error", "unwritten"),
    [
        (ApiUnreachable("away"), 0),
        (ApiError(500, "broken"), 0),
        (ApiError(403, "no right"), 1),
        (ApiError(422, "not so"), 1),
        (NotServed("no CRD"), 1),
    ],
    ids=str,
)
def test_what_the_api_server_says_is_no_bug_and_is_tried_again_unless_it_is_for_good(
    monkeypatch, error, unwritten
):
    store, log = Store(error, x=2), BugLog()
    reports = stored(store, log, "x", monkeypatch=monkeypatch)
    assert reports.unwritten == unwritten
    assert store.written == [("x", ["a"])] * (1 - unwritten)
    assert log.errors == []
    assert log.registry.counters == {}
