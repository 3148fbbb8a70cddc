"""Writes reports by compare-and-swap: several writers, no leader, no repeated writes."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import TYPE_CHECKING, Any, Final, Literal

from webhook.backoff import Backoff
from webhook.cluster.errors import ApiError, ApiUnreachable
from webhook.metrics.cluster import OBJECT_FAULTS
from webhook.reports.report import difference, is_ours

if TYPE_CHECKING:
    from collections.abc import Callable

    from webhook.api.resource import Resource
    from webhook.api.shapes import Json
    from webhook.cluster.client import ClusterClient
    from webhook.log import Logger
    from webhook.metrics.registry import Registry
    from webhook.reports.capacity import Capacity
    from webhook.reports.report_api import ReportApi

    DesiredReport = Callable[[Json | None], Json | None]
    """Returns the report that is to replace the current one."""


DIFFERENT_LOGGED_MAX: Final = 100
"""The most remembered lasting faults, each logged once."""

RETRIES: Final = 5
"""The most retries of one resource, or of one place of reports; the next audit finds the rest."""

TEXT_CHARACTERS_MAX: Final = 300
"""The compared length of an error's text, in characters: some print the whole object."""


class Faults:
    """Counts and logs unexpected exceptions; for tasks of one loop."""

    def __init__(self, log: Logger, registry: Registry | None = None) -> None:
        self._log = log
        self._registry = registry
        self._logged: set[tuple[str, str]] = set()

    def take(self, message: str, error: Exception, **fields: Any) -> None:
        """Takes an exception about a report; ``fields`` identify the report."""
        if self._registry is not None:
            self._registry.count(OBJECT_FAULTS, "report")
        key = message, f"{type(error).__name__}: {error}"[:TEXT_CHARACTERS_MAX]
        if key not in self._logged and len(self._logged) < DIFFERENT_LOGGED_MAX:
            self._logged.add(key)
            self._log.fault(message, error, **fields)


WriteOutcome = Literal[
    "create", "replace", "delete", "unchanged", "limit", "foreign", "terminating", "conflict"
]

TRIES: Final = 6
"""The most tries of one report before it is put back: each lost swap is another writer's progress.
"""


class NotServed(Exception):
    """The API server does not serve the report kinds: their CRDs are not installed."""


class ReportWriter:
    """Writes one report at a time."""

    def __init__(
        self, client: ClusterClient, api: ReportApi, capacity: Capacity, log: Logger
    ) -> None:
        self._client = client
        self._api = api
        self._capacity = capacity
        self._log = log
        self.outcomes: Counter[WriteOutcome] = Counter()
        self.requests: Counter[str] = Counter()
        """Write requests by action: also refused ones and lost races."""

    async def write(
        self, name: str, namespace: str, desired: Json | None, *, is_new: bool = False
    ) -> WriteOutcome:
        """Writes the report ``desired``, or deletes it for None; see :meth:`revise`."""
        return await self.revise(name, namespace, lambda _: desired, is_new=is_new)

    async def revise(
        self, name: str, namespace: str, desired: DesiredReport, *, is_new: bool = False
    ) -> WriteOutcome:
        """Replaces a report by the result of ``desired`` for the current one.

        With ``is_new`` it is created without a read first. Raises :class:`NotServed`, and the
        errors of requests except conflicts.
        """
        outcome = await self._write(name, namespace, desired, is_new=is_new)
        self.outcomes[outcome] += 1
        return outcome

    async def read(self, name: str, namespace: str) -> Json | None:
        """Returns the present report; None without one. Raises the errors of requests."""
        try:
            return await self._client.get(self._api.resource(namespace), name, namespace)
        except ApiError as error:
            if not error.is_absent:
                raise
            return None

    async def swap(
        self, current: Json | None, desired: Json | None, namespace: str
    ) -> WriteOutcome:
        """Tries to replace ``current`` by ``desired``; returns ``conflict`` after another write.

        Raises as :meth:`write` does.
        """
        write = difference(current, desired)
        if write is None:
            return "unchanged"
        if current is not None and not is_ours(current):
            return "foreign"
        if write.action == "create" and not await self._capacity.has_room():
            return "limit"
        counts, is_refused = self._capacity.counts, False
        try:
            await self._request(write.action, write.document, namespace)
        except ApiError as error:
            is_refused = True
            if _is_terminating(error):
                return "terminating"
            if error.is_conflict or (error.is_absent and write.action != "create"):
                return "conflict"
            if error.is_absent:
                raise NotServed(str(error)) from error
            raise
        finally:
            if write.action == "create":  # Without an answer it may have been created.
                self._capacity.settle(is_created=not is_refused)
        if write.action == "delete":
            self._capacity.deleted(counts)
        return write.action

    def lost_race(self, name: str) -> ApiUnreachable:
        """Returns the error for :data:`TRIES` lost swaps: it is retried later."""
        return ApiUnreachable(f"report {name}: {TRIES} other writers were faster")

    async def _write(
        self, name: str, namespace: str, desired: DesiredReport, *, is_new: bool
    ) -> WriteOutcome:
        backoff = Backoff(initial_seconds=0.05, max_seconds=1.0)
        outcome: WriteOutcome = "conflict"
        for attempt in range(TRIES):
            blind = is_new and not attempt and desired(None) is not None
            current = None if blind else await self.read(name, namespace)
            outcome = await self.swap(current, desired(current), namespace)
            if outcome == "foreign":
                self._log.warning(
                    "another product's report has this resource's name; it is left alone",
                    report=name,
                    namespace=namespace,
                )
            if outcome != "conflict":
                break
            if not blind:
                await asyncio.sleep(backoff.next_seconds())
        return outcome

    async def _request(self, action: str, document: Json, namespace: str) -> None:
        resource: Resource = self._api.resource(namespace)
        self.requests[action] += 1
        if action == "create":
            await self._client.create(resource, document, namespace)
        elif action == "replace":
            await self._client.replace(resource, document)
        else:
            await self._delete(resource, document["metadata"], namespace)

    async def _delete(self, resource: Resource, metadata: dict[str, Any], namespace: str) -> None:
        """Deletes the report only in the state that was read."""
        preconditions = {"uid": metadata["uid"], "resourceVersion": metadata["resourceVersion"]}
        await self._client.request(
            "DELETE",
            resource.path(metadata["name"], namespace),
            body={"preconditions": preconditions},
        )


def _is_terminating(error: ApiError) -> bool:
    """Returns whether the namespace is terminating or deleted, with the resource and its report."""
    if error.status == 403:
        return "is being terminated" in error.message
    return error.is_absent and error.message.startswith("namespaces ")
