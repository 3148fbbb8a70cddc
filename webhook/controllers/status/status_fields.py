"""Determines which of our fields of status objects the cluster keeps.

Our CRDs of the statuses are Gatekeeper's with additional fields. If Gatekeeper's own CRDs are
installed, the API server silently prunes the additional fields. So each CRD is watched, and fields
that it does not declare are left out of writes and logged.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from webhook.api import pod_status
from webhook.cluster.kinds import CRDS
from webhook.cluster.reflector import ObjectSelection, Reflector, Settings
from webhook.controllers.status.statuses import declared_fields

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from webhook.api.pod_status import StatusKind
    from webhook.cluster.client import ClusterClient
    from webhook.cluster.store import Change
    from webhook.log import Logger


class StatusFields:
    """Follows the CRD of one kind of status objects; :meth:`run` in a task of its own."""

    def __init__(
        self,
        client: ClusterClient,
        kind: StatusKind,
        tell: Callable[[], None],
        log: Logger,
        *,
        settings: Settings | None = None,
    ) -> None:
        """``tell`` is called when :attr:`kept` has changed."""
        self._kind = kind
        self._tell = tell
        self._log = log
        self._name = f"{kind.plural}.{pod_status.GROUP}"
        self._reflector = Reflector(
            client,
            CRDS,
            self,
            selection=ObjectSelection(fields=f"metadata.name={self._name}"),
            settings=settings,
        )
        self.kept: frozenset[str] | None = None
        """The fields that the CRD declares; None before the CRD exists."""

    @property
    def pruned(self) -> frozenset[str]:
        """Our fields that the cluster does not keep."""
        return frozenset() if self.kept is None else self._kind.own_fields - self.kept

    async def run(self) -> None:
        """Watch until cancelled."""
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
        self._tell()
