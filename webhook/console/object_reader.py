"""Reads one object from the API server for visitors with the right to it. Never reads a Secret."""

from __future__ import annotations

import asyncio
import re
from typing import TYPE_CHECKING, Any, Final

from webhook.api.gvk import gvk_of
from webhook.cluster.discovery import Discovery, UnknownKind
from webhook.cluster.errors import ApiError, ApiUnreachable
from webhook.cluster.kinds import SECRETS
from webhook.console.picture import NamedObject, NotReadable
from webhook.console.visitor import Right

if TYPE_CHECKING:
    from webhook.api.resource import Resource
    from webhook.cluster.client import ClusterClient

OBJECT_SECONDS: Final = 5.0

# A path segment of dots alone would lead to another object.
_NAME: Final = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9.:_-]{0,251}[A-Za-z0-9])?")


class ObjectReader:
    """Reads with the console's own account; the visitor's right is checked before."""

    def __init__(self, client: ClusterClient, discovery: Discovery) -> None:
        self._client = client
        self._discovery = discovery

    async def right(self, place: NamedObject) -> Right:
        """Returns the right that reading an object needs; raises :class:`NotReadable`."""
        resource = await self._resource(place)
        return Right(place.gvk.group, resource.plural, place.namespace, "get", place.name)

    async def read(self, place: NamedObject) -> dict[str, Any]:
        """Returns the object; raises :class:`NotReadable`."""
        resource = await self._resource(place)
        path = resource.path(place.name, place.namespace)
        try:
            async with asyncio.timeout(OBJECT_SECONDS):
                document: dict[str, Any] = await self._client.request("GET", path)
        except ApiError as error:
            if error.is_absent:
                raise NotReadable("the object does not exist now") from None
            if error.is_forbidden:
                raise NotReadable(
                    f"this console's own account may not read it: {error.message}"
                ) from None
            raise NotReadable(f"the API server refused: {error}") from None
        except (ApiUnreachable, TimeoutError) as error:
            raise NotReadable(_unanswered(error)) from None
        if gvk_of(document) != place.gvk:
            raise NotReadable(f"the API server returned a {gvk_of(document)}")
        return document

    async def _resource(self, place: NamedObject) -> Resource:
        gvk = place.gvk
        if gvk.group_kind == SECRETS.gvk.group_kind:
            raise NotReadable("the console never reads a Secret")
        parts = (gvk.group or "core", gvk.version, place.namespace or "none", place.name)
        if not all(_NAME.fullmatch(part) for part in parts):
            raise NotReadable("this is not a valid name of an object")
        try:
            async with asyncio.timeout(OBJECT_SECONDS):
                resource = await self._discovery.resource(gvk)
        except (ApiError, UnknownKind) as error:
            raise NotReadable(str(error)) from None
        except (ApiUnreachable, TimeoutError) as error:
            raise NotReadable(_unanswered(error)) from None
        if resource.namespaced != bool(place.namespace):
            scope = "is in a namespace" if resource.namespaced else "is in no namespace"
            raise NotReadable(f"a {gvk.kind} {scope}")
        return resource


def _unanswered(error: BaseException) -> str:
    why = str(error) or f"no answer within {OBJECT_SECONDS:g} s"
    return f"the API server cannot be asked: {why}"
