"""From reviewed objects to marks: which reports are updated."""

import asyncio
from types import SimpleNamespace
from typing import Any

from tests.patience import PATIENCE_SECONDS
from tests.webhook.reports.made import finding
from webhook.api.gvk import GroupVersionKind
from webhook.api.resource import Resource
from webhook.audit.sink import Audited, SweepStart, identity_of
from webhook.constraint.result import Responses
from webhook.log import Log
from webhook.metrics.registry import Registry
from webhook.reports.audited import AuditReports
from webhook.reports.finding import Assessment, settled
from webhook.reports.keeper import Reports
from webhook.settings.reports import ReportSettings

CONFIG_MAP = GroupVersionKind("", "v1", "ConfigMap")


def findings_of(obj):
    """A ConfigMap that says so is violating."""
    return settled([finding()] if obj["data"]["deny"] == "no" else [])


class Cluster:
    """One ConfigMap and its report; the answer to a write arrives when ``answers`` is set."""

    deadline_seconds = 30.0

    def __init__(self):
        self.word, self.report = "", None
        self.answers = asyncio.Event()
        self.written = asyncio.Event()

    @property
    def config_map(self):
        """The stored object."""
        metadata = {"name": "flips", "namespace": "watched", "uid": "uid"}
        return {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": metadata,
            "data": {"deny": self.word},
        }

    async def resource(self, gvk):
        return Resource(gvk, "configmaps", namespaced=True)

    async def get(self, *_):
        return self.config_map

    async def page(self, *_args, **_options):
        return {"items": [], "metadata": {}}, 0

    async def request(self, *_args, **_options):
        return {"items": [], "metadata": {}}

    async def assess(self, _, obj):
        return Assessment(findings_of(obj), {})

    def policies(self, _):
        return {}

    async def put(self, _, assessment, *, is_new):
        del is_new
        self.report = assessment.findings or None
        self.written.set()
        await self.answers.wait()


async def flipped() -> Cluster:
    """The object is violating, is repaired, and is violating again before the last answer."""
    cluster: Any = Cluster()
    log, registry = Log(lambda _: None).logger("test"), Registry()
    serving: Any = SimpleNamespace(revision=None)
    limits: Any = None
    reports = Reports(
        cluster, serving, ReportSettings(), log, limits, registry=registry, process="audit"
    )
    findings: Any = SimpleNamespace(of=lambda _, __, obj, ___: findings_of(obj))
    reports.findings, reports._store = findings, cluster
    reports.refresher._kinds = reports.refresher._assessor = cluster
    confirmer: Any = SimpleNamespace(begin=lambda: None)
    sink = AuditReports(reports, confirmer, registry, log, series_max=10)
    snapshot: Any = None
    await sink.start(SweepStart("", snapshot, frozenset()))

    async def put(word: str) -> None:
        cluster.word = word
        obj = cluster.config_map
        await sink.audited(Audited("", identity_of(obj), obj, Responses(), snapshot))

    async with asyncio.timeout(PATIENCE_SECONDS), asyncio.TaskGroup() as tasks:
        running = tasks.create_task(reports.refresher.run())
        cluster.answers.set()
        await put("no")
        await cluster.written.wait()
        while not reports.is_idle:  # noqa: ASYNC110  # no event tells
            await asyncio.sleep(0)
        cluster.answers.clear()
        cluster.written.clear()
        await put("yes")
        await cluster.written.wait()
        await put("no")
        cluster.answers.set()
        while not reports.is_idle:  # noqa: ASYNC110  # no event tells
            await asyncio.sleep(0)
        running.cancel()
    return cluster


def test_an_object_that_changes_back_while_its_report_is_written_has_its_report():
    cluster = asyncio.run(flipped())
    assert cluster.report is not None
