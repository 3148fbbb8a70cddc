"""This replica's status objects, written as far as the cluster's CRDs can keep them."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from webhook.api import pod_status
from webhook.cluster.backoff import Backoff
from webhook.cluster.errors import ApiError, UnreachableError
from webhook.controllers.aggregation import STATUS_KINDS, status_resource
from webhook.controllers.constraint_crds import CRDS
from webhook.controllers.object_writer import ObjectWriter
from webhook.controllers.statuses import declared_fields, kept, overlay_status, own_statuses

if TYPE_CHECKING:
    from collections.abc import Mapping

    from webhook.api.pod_status import Json, Pod, StatusKind
    from webhook.cluster.client import Client
    from webhook.log import Logger

OWN_FIELDS: Final = frozenset({"activeGeneration", "since"})
"""What our CRDs declare beyond Gatekeeper's; a cluster with Gatekeeper's own lacks them."""


class StatusWriters:
    """A writer for each kind of status object."""

    def __init__(self, client: Client, pod: Pod, log: Logger) -> None:
        self._client = client
        self._log = log
        selection = own_statuses(pod)
        self._writers = {
            kind: ObjectWriter(client, status_resource(kind), selection, overlay_status, log)
            for kind in STATUS_KINDS
        }
        self._fields: dict[StatusKind, frozenset[str]] = {}
        self._wanted: Mapping[str, Json] = {}
        self._prune = False

    @property
    def writes(self) -> int:
        """Requests that wrote, or tried to."""
        return sum(writer.writes for writer in self._writers.values())

    @property
    def failures(self) -> int:
        """Those that failed."""
        return sum(writer.failures for writer in self._writers.values())

    def want(self, documents: Mapping[str, Json], *, prune: bool) -> None:
        """The status objects there should be, by name; with ``prune`` no others of ours."""
        self._wanted, self._prune = documents, prune
        for kind in self._fields:
            self._hand_over(kind)

    def _hand_over(self, kind: StatusKind) -> None:
        fields = self._fields[kind]
        wanted = {
            name: kept(document, fields)
            for name, document in self._wanted.items()
            if document["kind"] == kind.kind
        }
        self._writers[kind].want(wanted, prune=self._prune)

    async def run(self) -> None:
        """Watch and write until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            for kind in STATUS_KINDS:
                tasks.create_task(self._write(kind))

    async def _write(self, kind: StatusKind) -> None:
        self._fields[kind] = await self._declared(kind)
        self._hand_over(kind)
        await self._writers[kind].run()

    async def _declared(self, kind: StatusKind) -> frozenset[str]:
        """The fields that the cluster's CRD keeps; asked for until there is one."""
        name = f"{kind.plural}.{pod_status.GROUP}"
        backoff = Backoff(initial_seconds=0.5, max_seconds=10.0)
        while True:
            try:
                crd = await self._client.get(CRDS, name)
            except (ApiError, UnreachableError) as error:
                self._log.warning("statuses cannot be written", crd=name, error=str(error))
                await asyncio.sleep(backoff.next_seconds())
                continue
            fields = declared_fields(crd, pod_status.VERSION)
            if kind is not pod_status.CONFIG and not fields >= OWN_FIELDS:
                self._log.warning(
                    "the CRD is another product's: fields of ours are left out of statuses",
                    crd=name,
                    fields=sorted(OWN_FIELDS - fields),
                )
            return fields
