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


def _document_urls(answer: Any) -> dict[str, str]:
    """Returns the URLs of the documents by path, as ``apis/apps/v1``; entries without one are left out.

    Raises :class:`~webhook.cluster.errors.ApiUnreachable` if the answer is not an index.
    """
    paths = object_of(answer).get("paths", ())
    if paths is not None and type(paths) is not dict:  # Go encodes an empty one as null
        raise ApiUnreachable("/openapi/v3: the answer is not an index of documents")
    urls = {path: text(entry, "serverRelativeURL") for path, entry in object_of(paths).items()}
    # The API server copies URLs from aggregated APIs. They are appended to the server's address: one
    # without a slash could change the host, and send our token there.
    return {path: url for path, url in urls.items() if url.startswith("/")}


class KindTypes:
    """Looks types up and keeps them while the API server's documents stay the same."""

    def __init__(self, client: ClusterClient) -> None:
        self._client = client
        self._urls: dict[str, str] = {}
        self._versions: dict[str, str] = {}
        """The preferred version of each group; empty if the group is not served."""
        self._known: dict[GroupVersionKind, tuple[str, ObjectType | None]] = {}
        """Each type with the URL of the document that it was read from."""

    async def look(self, kinds: Iterable[GroupKind]) -> dict[GroupVersionKind, ObjectType]:
        """Returns the types of kinds, each at its group's preferred version; unknown ones are left out.

        Changed documents are read again. Raises :class:`~webhook.cluster.errors.ApiError` and
        :class:`~webhook.cluster.errors.ApiUnreachable`.
        """
        sorted_kinds = sorted(kinds)
        if not sorted_kinds:
            return {}
        self._urls = _document_urls(await self._client.request("GET", "/openapi/v3"))
        self._versions.clear()
        types, documents = {}, dict[str, Any]()
        for kind in sorted_kinds:
            gvk = await self._at_preferred_version(kind)
            if gvk is not None and (schema := await self._type_of(gvk, documents)) is not None:
                types[gvk] = schema
        self._known = {
            gvk: kept for gvk, kept in self._known.items() if gvk.group_kind in sorted_kinds
        }
        return types

    async def _at_preferred_version(self, kind: GroupKind) -> GroupVersionKind | None:
        group = kind.group
        if not group:
            return GroupVersionKind("", "v1", kind.kind)
        if group not in self._versions:
            try:
                answer = await self._client.request("GET", f"/apis/{group}")
            except ApiError as error:
                if not error.is_absent:
                    raise
                answer = None
            self._versions[group] = text(answer, "preferredVersion", "version")
        version = self._versions[group]
        return GroupVersionKind(group, version, kind.kind) if version else None

    async def _type_of(self, gvk: GroupVersionKind, documents: dict[str, Any]) -> ObjectType | None:
        """Returns the type of a kind.

        ``documents`` has those that this look has read. They are not kept: they are megabytes.
        """
        path = f"apis/{gvk.group}/{gvk.version}" if gvk.group else f"api/{gvk.version}"
        url = self._urls.get(path)
        if url is None:
            return None
        known = self._known.get(gvk)
        if known is None or known[0] != url:  # the URL has a digest of the document
            if url not in documents:
                documents[url] = await self._client.request("GET", url.partition("?")[0])
            known = self._known[gvk] = url, kind_type(documents[url], gvk)
        return known[1]
