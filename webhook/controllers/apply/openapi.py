"""Reads the types of kinds' objects, as the API server describes them (``/openapi/v3``)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from webhook.api.gvk import GroupKind, GroupVersionKind, text
from webhook.api.shapes import object_of
from webhook.cluster.errors import ApiError, ApiUnreachable

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from webhook.cel.check.objects import ObjectType
    from webhook.cluster.client import ClusterClient

_KINDS: Final = "x-kubernetes-group-version-kind"


def schema_name(definitions: Mapping[str, Any], gvk: GroupVersionKind) -> str | None:
    """Returns the name of a kind's schema among the definitions of its group and version."""
    gvk_extension = {"group": gvk.group, "version": gvk.version, "kind": gvk.kind}
    for name, schema in definitions.items():
        if gvk_extension in schema.get(_KINDS, ()):
            return name
    return None


def kind_type(document: object, gvk: GroupVersionKind) -> ObjectType | None:
    """Returns the type of a kind's objects, from the OpenAPI v3 document of its group and version.

    None if the document has no schema of the kind, or one that is too deep or malformed. The schema
    is the CRD author's.
    """
    # Imported here: a cluster without templates in CEL shall not load the CEL engine.
    from webhook.cel.check.objects import object_type  # noqa: PLC0415

    definitions = object_of(object_of(object_of(document).get("components")).get("schemas"))
    try:
        name = schema_name(definitions, gvk)
        return None if name is None else object_type(gvk.kind, name, definitions)
    except (AttributeError, RecursionError, TypeError):
        return None


def _index(answer: Any) -> dict[str, str]:
    """Returns the paths of the documents by group and version; entries without a path are left out.

    Raises :class:`~webhook.cluster.errors.ApiUnreachable` if the answer is not an index.
    """
    paths = object_of(answer).get("paths", ())
    if paths is not None and type(paths) is not dict:  # Go encodes an empty one as null
        raise ApiUnreachable("/openapi/v3: the answer is not an index of documents")
    places = {path: text(place, "serverRelativeURL") for path, place in object_of(paths).items()}
    # The API server copies paths from aggregated APIs. They are appended to the server's address: a
    # path without a slash could change the host, and send our token there.
    return {path: place for path, place in places.items() if place.startswith("/")}


class KindTypes:
    """Looks types up and keeps them while the API server's documents stay the same."""

    def __init__(self, client: ClusterClient) -> None:
        self._client = client
        self._index: dict[str, str] = {}
        self._versions: dict[str, str] = {}
        self._known: dict[GroupVersionKind, tuple[str, ObjectType | None]] = {}

    async def look(self, kinds: Iterable[GroupKind]) -> dict[GroupVersionKind, ObjectType]:
        """Returns the types of kinds, each at its group's preferred version.

        Unknown types are left out.

        Changed documents are read again. Raises :class:`~webhook.cluster.errors.ApiError` and
        :class:`~webhook.cluster.errors.ApiUnreachable`.
        """
        sorted_kinds = sorted(kinds)
        if not sorted_kinds:
            return {}
        self._index = _index(await self._client.request("GET", "/openapi/v3"))
        self._versions.clear()
        types, read = {}, dict[str, Any]()
        for kind in sorted_kinds:
            gvk = await self._at_version(kind)
            if gvk is not None and (schema := await self._type_of(gvk, read)) is not None:
                types[gvk] = schema
        self._known = {
            gvk: kept for gvk, kept in self._known.items() if gvk.group_kind in sorted_kinds
        }
        return types

    async def _at_version(self, of: GroupKind) -> GroupVersionKind | None:
        if not of.group:
            return GroupVersionKind("", "v1", of.kind)
        if of.group not in self._versions:
            try:
                answer = await self._client.request("GET", f"/apis/{of.group}")
            except ApiError as error:
                if not error.is_absent:
                    raise
                self._versions[of.group] = ""
            else:
                self._versions[of.group] = text(answer, "preferredVersion", "version")
        version = self._versions[of.group]
        return GroupVersionKind(of.group, version, of.kind) if version else None

    async def _type_of(self, gvk: GroupVersionKind, read: dict[str, Any]) -> ObjectType | None:
        """Returns the type of a kind; ``read`` has the documents of this look, which are megabytes."""
        path = f"apis/{gvk.group}/{gvk.version}" if gvk.group else f"api/{gvk.version}"
        url = self._index.get(path)
        if url is None:
            return None
        known = self._known.get(gvk)
        if known is None or known[0] != url:  # the URL has a digest of the document
            if url not in read:
                read[url] = await self._client.request("GET", url.partition("?")[0])
            known = self._known[gvk] = url, kind_type(read[url], gvk)
        return known[1]
