"""API discovery: the kinds that the API server serves, with their plurals and scopes."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import defaultdict
from dataclasses import field
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from webhook.api.gvk import GroupVersionKind, text
from webhook.api.resource import Resource, group_path
from webhook.api.shapes import object_of, objects_of
from webhook.cluster.errors import ApiError, ApiUnreachable
from webhook.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from webhook.cluster.client import ClusterClient

FRESH_SECONDS: Final = 600.0
"""How long a list of resources is trusted; a kind that is missing is looked up at most each second.
"""

_MISSING_SECONDS: Final = 1.0


class UnknownKind(Exception):
    """The API server does not serve this kind (yet)."""


@dataclass(slots=True)
class _Served:
    """The resources of one group and version, with the time at which they were read."""

    at: float
    resources: dict[GroupVersionKind, Resource] = field(default_factory=dict)


class Discovery:
    """Looks up kinds, group by group, and caches them."""

    def __init__(self, client: ClusterClient) -> None:
        self._client = client
        self._groups: dict[tuple[str, str], _Served] = {}
        self._asking: defaultdict[tuple[str, str], asyncio.Lock] = defaultdict(asyncio.Lock)

    async def resource(self, gvk: GroupVersionKind) -> Resource:
        """Returns the resource of a kind.

        Raises :class:`UnknownKind`, and the errors of requests.
        """
        group = gvk.group, gvk.version
        served = self._believed(gvk)
        if served is None:
            # Many ask at once when a process starts: one request answers them all.
            async with self._asking[group]:
                served = self._believed(gvk) or await self._look_up(*group)
        listed = served.resources.get(gvk)
        if listed is None:
            raise UnknownKind(f"the API server serves no {gvk}")
        return listed

    async def of_versions(self, gvk: GroupVersionKind, versions: Iterable[str]) -> Resource:
        """Returns the resource of a kind in the first version that is served.

        Raises :class:`UnknownKind`, and the errors of requests.
        """
        for version in versions:
            with contextlib.suppress(UnknownKind):
                return await Discovery.resource(self, gvk._replace(version=version))
        raise UnknownKind(f"the API server serves no {gvk.kind} of {gvk.group}")

    def _believed(self, gvk: GroupVersionKind) -> _Served | None:
        """Returns the cached resources of the kind's group; None if they are outdated."""
        served = self._groups.get((gvk.group, gvk.version))
        if served is None:
            return None
        limit = FRESH_SECONDS if gvk in served.resources else _MISSING_SECONDS
        return served if time.monotonic() - served.at < limit else None

    def forget(self, gvk: GroupVersionKind) -> None:
        """Drops a kind from the cache, because its definition changed."""
        self._groups.pop((gvk.group, gvk.version), None)

    async def kinds(self, group: str, version: str) -> list[Resource]:
        """Returns every kind of a group and version; empty if it is not served."""
        served = await self._look_up(group, version)
        return list(served.resources.values())

    async def of_kind(self, group: str, kind: str) -> list[Resource]:
        """Returns the resources of a kind in all versions of a group; empty if it is not served."""
        return [resource for resource in await self.of_group(group) if resource.gvk.kind == kind]

    async def of_group(self, group: str) -> list[Resource]:
        """Returns the resources of a group in all its versions; empty if it is not served."""
        if not group:
            return await self.kinds("", "v1")
        try:
            answer = await self._client.request("GET", f"/apis/{quote(group, safe='')}")
        except ApiError as error:
            if error.is_absent:
                return []
            raise
        versions = [
            text(version, "version") for version in objects_of(object_of(answer).get("versions"))
        ]
        return [
            resource
            for version in versions
            if version
            for resource in await self.kinds(group, version)
        ]

    async def _look_up(self, group: str, version: str) -> _Served:
        served = _Served(time.monotonic())
        path = group_path(group, version)
        try:
            answer = await self._client.request("GET", path)
        except ApiError as error:
            if not error.is_absent:
                raise
            answer = {"resources": []}
        for resource in _resources(answer, path, group, version):
            served.resources.setdefault(resource.gvk, resource)
        self._groups[group, version] = served
        return served


def _resources(answer: Any, path: str, group: str, version: str) -> Iterator[Resource]:
    """Yields the resources in a discovery document; skips malformed entries.

    An aggregated API or a proxy may send anything. Raises
    :class:`~webhook.cluster.errors.ApiUnreachable` if the answer is no resource list, because that
    does not prove that a kind is not served.
    """
    entries = object_of(answer).get("resources", ())
    if entries is not None and type(entries) is not list:  # Go writes an empty one as null.
        raise ApiUnreachable(f"{path}: the answer is not a list of resources")
    for entry in objects_of(entries):
        plural, kind = text(entry, "name"), text(entry, "kind")
        namespaced = entry.get("namespaced") or False
        is_subresource = "/" in plural
        if plural and kind and not is_subresource and type(namespaced) is bool:
            yield Resource(GroupVersionKind(group, version, kind), plural, namespaced)
