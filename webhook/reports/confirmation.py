"""Confirms reports without writing them.

A report is written when it changes. Each audit confirms all its reports by a Lease of its own: the
sweep that began at ``acquireTime`` reviewed the audit's whole share, and the reports have its
results.
"""

from __future__ import annotations

import asyncio
import datetime as dt
import json
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

from webhook.api import timestamp
from webhook.api.gvk import name_of
from webhook.api.shapes import object_of
from webhook.cluster.errors import ApiError, ApiUnreachable
from webhook.cluster.kinds import LEASES
from webhook.reports.finding import SOURCE
from webhook.reports.report import MANAGED_BY
from webhook.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from webhook.audit.sink import SweepEnd
    from webhook.cluster.client import ClusterClient
    from webhook.log import Logger

CONFIRMS: Final = "waddle.dev/confirms"
"""Label of the Leases; its value is :data:`REPORTS`."""

REPORTS: Final = "reports"
NOT_CONFIRMED: Final = "waddle.dev/kinds-not-confirmed"
LOST: Final = "waddle.dev/reports-not-written"

WRITTEN_SECONDS_MAX: Final = 60.0
"""The longest wait for marked reports before missing ones are counted, in seconds."""

IDLE_SECONDS: Final = 0.2
"""The polling interval of that wait, in seconds."""

SELECTOR: Final = f"{CONFIRMS}={REPORTS}"


@dataclass(frozen=True, slots=True)
class Confirmation:
    """The times of an audit's last sweep.

    ``began`` and ``ended`` are in RFC 3339. ``kinds`` are those whose list was incomplete: the
    reports of their resources are older. ``lost`` counts outdated reports that could not be
    written.
    """

    audit: str
    began: str
    ended: str
    kinds: tuple[str, ...] = ()
    lost: int = 0


def lease(confirmation: Confirmation, author: Author) -> dict[str, Any]:
    """Returns the Lease; it is deleted with the audit's Pod."""
    audit = confirmation.audit
    metadata: dict[str, Any] = {
        "name": f"waddle-reports-{audit}",
        "namespace": author.namespace,
        "labels": {MANAGED_BY: SOURCE, CONFIRMS: REPORTS},
        "annotations": {
            NOT_CONFIRMED: json.dumps(list(confirmation.kinds)),
            LOST: str(confirmation.lost),
        },
    }
    if author.pod_uid:
        owner = {"apiVersion": "v1", "kind": "Pod", "name": audit, "uid": author.pod_uid}
        metadata["ownerReferences"] = [owner]
    return {
        "apiVersion": LEASES.gvk.group_version,
        "kind": LEASES.gvk.kind,
        "metadata": metadata,
        "spec": {
            "holderIdentity": audit,
            "leaseDurationSeconds": max(1, round(author.interval_seconds)),
            "acquireTime": _micro(confirmation.began),
            "renewTime": _micro(confirmation.ended),
        },
    }


def read(document: Mapping[str, Any]) -> Confirmation | None:
    """Reads a Lease; None for a Lease without a confirmation."""
    spec = object_of(document.get("spec"))
    metadata = object_of(document.get("metadata"))
    annotations = object_of(metadata.get("annotations"))
    began, ended = spec.get("acquireTime"), spec.get("renewTime")
    if type(began) is not str or type(ended) is not str:
        return None
    try:
        kinds = tuple(str(kind) for kind in json.loads(annotations.get(NOT_CONFIRMED, "[]")))
        lost = int(annotations.get(LOST, "0"))
        times = _whole(began), _whole(ended)
    except (ValueError, TypeError):
        return None
    audit = str(spec.get("holderIdentity") or name_of(document))
    return Confirmation(audit, *times, kinds, lost)


def oldest(confirmations: Iterable[Confirmation]) -> Confirmation | None:
    """Returns the oldest confirmation: shares add up, so all reports are at least as recent."""
    return min(confirmations, key=lambda item: item.began, default=None)


class Author(NamedTuple):
    """An audit and the place of its Lease; ``interval_seconds`` is the interval of sweeps."""

    pod: str
    namespace: str
    pod_uid: str
    interval_seconds: float


class ReportWriting(Protocol):
    """The writer's interface for confirmations."""

    @property
    def is_idle(self) -> bool:
        """Returns whether all marked reports are written."""

    @property
    def unwritten(self) -> int:
        """Returns the reports that wait to be written, and those given up so far."""


class Confirmer:
    """Confirms reports after each sweep. :meth:`run` needs a task of its own."""

    def __init__(
        self, client: ClusterClient, author: Author, reports: ReportWriting, log: Logger
    ) -> None:
        self._client = client
        self._author = author
        self._reports = reports
        self._log = log
        self._ended = asyncio.Event()
        self._end: SweepEnd | None = None
        self._unwritten = 0
        self._is_logged = False

    def begin(self) -> None:
        """Begins a sweep: reports given up from now on are missing."""
        self._unwritten = self._reports.unwritten

    def confirm(self, end: SweepEnd) -> None:
        """Confirms a complete sweep, once the reports that it marked are written."""
        self._end = end
        self._ended.set()

    async def run(self) -> None:
        """Confirms sweeps until cancelled."""
        while True:
            await self._ended.wait()
            self._ended.clear()
            end, before = self._end, self._unwritten
            assert end is not None
            with suppress(TimeoutError):
                async with asyncio.timeout(WRITTEN_SECONDS_MAX):
                    while not self._reports.is_idle:  # noqa: ASYNC110  # it has no event for it
                        await asyncio.sleep(IDLE_SECONDS)
            await self._report(end, max(0, self._reports.unwritten - before))

    async def _report(self, end: SweepEnd, lost: int) -> None:
        kinds = tuple(sorted(str(gvk) for gvk in {*end.failed, *end.unreadable}))
        confirmation = Confirmation(self._author.pod, end.audit_id, timestamp.now(), kinds, lost)
        try:
            await renew(self._client, lease(confirmation, self._author))
        except (ApiError, ApiUnreachable) as error:
            if not self._is_logged:
                self._log.warning(
                    "the audit's confirmation of reports was not written", error=str(error)
                )
            self._is_logged = True
        else:
            self._is_logged = False


async def renew(client: ClusterClient, lease: dict[str, Any]) -> None:
    """Replaces the previous Lease; raises the errors of requests."""
    metadata = lease["metadata"]
    try:
        current = await client.get(LEASES, metadata["name"], metadata["namespace"])
    except ApiError as error:
        if not error.is_absent:
            raise
        await client.create(LEASES, lease, metadata["namespace"])
        return
    version = {"resourceVersion": current["metadata"]["resourceVersion"]}
    await client.replace(LEASES, {**lease, "metadata": {**metadata, **version}})


def _micro(text: str) -> str:
    """Returns a time in the format of Leases (metav1.MicroTime)."""
    return text.replace("Z", ".000000Z")


def _whole(text: str) -> str:
    """Returns a time in whole seconds."""
    moment = dt.datetime.fromisoformat(text)
    return moment.astimezone(dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
