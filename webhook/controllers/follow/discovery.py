"""Constraint kinds by the CRDs that are watched anyway; every other kind by discovery."""

from __future__ import annotations

from typing import TYPE_CHECKING

from webhook.api.resource import Resource
from webhook.api.shapes import conditions_of, status_of
from webhook.cluster.discovery import Discovery, UnknownKind
from webhook.constraint import constraint
from webhook.kyverno import kinds as kyverno_kinds

if TYPE_CHECKING:
    from webhook.api.gvk import GroupVersionKind
    from webhook.cluster.client import ClusterClient
    from webhook.controllers.object_writer import ObjectWriter


class ClusterDiscovery(Discovery):
    """Resolves constraint kinds by their CRDs, which are watched already.

    A cluster with 500 templates has a list of resources of 200 KB, which would be read again for
    each new template.
    """

    def __init__(self, client: ClusterClient, crds: ObjectWriter) -> None:
        super().__init__(client)
        self._crds = crds

    async def resource(self, gvk: GroupVersionKind) -> Resource:
        """Returns the kind's resource; raises :class:`UnknownKind` and the errors of requests."""
        if gvk.group == kyverno_kinds.GROUP:
            return await self.of_versions(gvk, kyverno_kinds.VERSIONS)
        if gvk.group != constraint.GROUP:
            return await super().resource(gvk)
        plural = gvk.kind.lower()
        crd = self._crds.store.get("", f"{plural}.{gvk.group}")
        conditions = conditions_of(status_of(crd))
        if any(
            item["type"] == "Established" and item.get("status") == "True" for item in conditions
        ):
            return Resource(gvk, plural, namespaced=False)
        raise UnknownKind(f"the CRD {plural}.{gvk.group} is not established")

    def forget(self, gvk: GroupVersionKind) -> None:
        """Forgets a kind, to look it up again; constraint kinds are looked up each time anyway."""
        if gvk.group != constraint.GROUP:
            super().forget(gvk)
