"""This replica's status objects, written as far as the cluster's CRDs can keep them.

Our CRDs of the statuses are Gatekeeper's with additional fields. If Gatekeeper's own CRDs are
installed, the API server silently prunes the additional fields. So each CRD is watched, and fields
that it does not declare are left out of writes and logged.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Final

from webhook.api import pod_status
from webhook.api.pod_status import SIGNATURE, Pod, StatusKind
from webhook.cluster.kinds import CRDS
from webhook.cluster.reflector import ObjectSelection, Reflector
from webhook.controllers.object_writer import ObjectWriter
from webhook.controllers.status.statuses import (
    declared_fields,
    kept,
    overlay_status,
    own_statuses,
    signed,
)
from webhook.controllers.status_kinds import status_resource
from webhook.policy_kinds.known import STATUS_KINDS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from webhook.api.shapes import Json
    from webhook.cluster.client import ClusterClient
    from webhook.cluster.store import Change
    from webhook.controllers.object_faults import ObjectFaults
    from webhook.log import Logger


class StatusFields:
    """Follows the CRD of one kind of status objects; :meth:`run` in a task of its own."""

    def __init__(
        self,
        client: ClusterClient,
        kind: StatusKind,
        notify: Callable[[], None],
        log: Logger,
    ) -> None:
        """``notify`` is called when :attr:`kept` has changed."""
        self._kind = kind
        self._notify = notify
        self._log = log
        self._name = f"{kind.plural}.{pod_status.GROUP}"
        self._reflector = Reflector(
            client,
            CRDS,
            self,
            selection=ObjectSelection(fields=f"metadata.name={self._name}"),
        )
        self.kept: frozenset[str] | None = None
        """The fields that the CRD declares; None before the CRD exists."""

    @property
    def pruned(self) -> frozenset[str]:
        """Our fields that the cluster does not keep."""
        return frozenset() if self.kept is None else self._kind.own_fields - self.kept

    async def run(self) -> None:
        """Watches until cancelled."""
        await self._reflector.run()

    def change(self, changes: Iterable[Change]) -> None:
        """Takes a created or changed CRD; without a CRD nothing can be written."""
        for change in changes:
            if change.kind == "set":
                self._take(declared_fields(change.object, pod_status.VERSION))

    def synced(self) -> None:
        """Logs a warning if the first list has no CRD."""
        if self._reflector.store.get("", self._name) is None:
            self._log.warning(
                "statuses cannot be written: their CRD is missing; apply the manifests of this release",
                crd=self._name,
            )

    def _take(self, fields: frozenset[str]) -> None:
        before, self.kept = self.kept, fields
        if before == fields:
            return
        if self.pruned:
            self._log.warning(
                "the CRD is another product's: statuses lack the fields that only Waddle has",
                crd=self._name,
                fields=sorted(self.pruned),
            )
        elif before is not None:
            self._log.info("the CRD keeps every field of statuses", crd=self._name)
        self._notify()


SETTLED_SECONDS: Final = (1.0, 5.0, 15.0)
"""The delays after a CRD's change at which its statuses are compared again. The API server needs a
moment until it serves by a new CRD, and prunes unknown fields meanwhile. Nothing is written if none
is missing."""


class _Handed:
    """Status objects with the fields that the cluster keeps.

    An unchanged document keeps its identity.
    """

    def __init__(self, fields: frozenset[str], sign: Callable[[bytes], str]) -> None:
        self.fields = fields
        self._sign = sign if SIGNATURE in fields else _nobody
        self._made: dict[str, tuple[Json, Json]] = {}

    def follow(self, documents: Mapping[str, Json]) -> dict[str, Json]:
        """Takes these documents; returns them with the fields that the API server keeps, signed."""
        writers, before = {}, self._made
        for name, document in documents.items():
            known = before.get(name)
            if known is None or known[0] is not document:
                known = document, signed(kept(document, self.fields), self._sign)
            writers[name] = known
        self._made = writers
        return {name: pair[1] for name, pair in writers.items()}


class StatusWriters:
    """A writer for each kind of status object."""

    def __init__(
        self,
        client: ClusterClient,
        pod: Pod,
        log: Logger,
        object_faults: ObjectFaults,
        sign: Callable[[bytes], str],
    ) -> None:
        """``sign`` makes signatures by the keys that replicas share."""
        self._sign = sign
        selection = own_statuses(pod)
        self._writers = {
            kind: ObjectWriter(
                client,
                status_resource(kind),
                selection,
                overlay_status,
                log,
                object_faults=object_faults,
                encodes=True,
            )
            for kind in STATUS_KINDS
        }
        self._fields = {
            kind: StatusFields(client, kind, partial(self._declared, kind), log)
            for kind in STATUS_KINDS
        }
        self._can_write = {kind: asyncio.Event() for kind in STATUS_KINDS}
        self._desired: Mapping[str, Json] = {}
        self._prune = False
        self._handed: dict[StatusKind, _Handed] = {}
        self.pruned: dict[tuple[str, ...], float] = {(kind.kind,): 0 for kind in STATUS_KINDS}
        """The number of our fields that the cluster does not keep, by kind of status object."""

    @property
    def writes(self) -> int:
        """Requests that wrote, or tried to."""
        return sum(writer.writes for writer in self._writers.values())

    @property
    def failures(self) -> int:
        """The number of writes that failed."""
        return sum(writer.failures for writer in self._writers.values())

    def want(self, documents: Mapping[str, Json], *, prune: bool) -> None:
        """Sets the desired status objects, by name; with ``prune`` all others of ours are deleted."""
        self._desired, self._prune = documents, prune
        for kind in STATUS_KINDS:
            self._hand_over(kind)

    def sign_anew(self) -> None:
        """Signs all statuses again after a change of keys."""
        self._handed.clear()
        for kind in STATUS_KINDS:
            self._hand_over(kind)

    def _hand_over(self, kind: StatusKind) -> None:
        fields = self._fields[kind].kept
        if fields is None:
            return
        handed = self._handed.get(kind)
        if handed is None or handed.fields != fields:
            handed = self._handed[kind] = _Handed(fields, self._sign)
        documents = handed.follow(
            {name: status for name, status in self._desired.items() if status["kind"] == kind.kind}
        )
        self._writers[kind].want(documents, prune=self._prune)

    def _declared(self, kind: StatusKind) -> None:
        """Handles a created or changed CRD of a kind."""
        self.pruned[kind.kind,] = len(self._fields[kind].pruned)
        self._can_write[kind].set()
        self._hand_over(kind)
        loop = asyncio.get_running_loop()
        for seconds in SETTLED_SECONDS:
            loop.call_later(seconds, self._writers[kind].compare_all)

    async def run(self) -> None:
        """Watches and writes until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            for kind in STATUS_KINDS:
                tasks.create_task(self._fields[kind].run())
                tasks.create_task(self._write(kind))

    async def _write(self, kind: StatusKind) -> None:
        await self._can_write[kind].wait()
        await self._writers[kind].run()


def _nobody(_: bytes) -> str:
    """Signs nothing: the cluster's CRD keeps no signature."""
    return ""
