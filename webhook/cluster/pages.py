"""Reads lists and watch events of the API server into checked objects.

A proxy, a server that shuts down or an aggregated API may send anything. Malformed pages and events
end the list or watch, which is tried again; malformed objects are skipped one by one.
"""

from __future__ import annotations

from typing import Any, Final

from webhook.api.encoding import DecodeError, decode
from webhook.api.gvk import text
from webhook.api.shapes import object_of
from webhook.cluster.errors import ApiUnreachable

_METADATA_LIST: Final = b'{"kind":"PartialObjectMetadataList",'
_MANAGED_FIELDS: Final = b'"managedFields":['
_ENTRIES_END: Final = b"}]"
_DOUBTFUL: Final = (b"[", b"]", b"\\\\")


def without_managed_fields(content: bytes) -> bytes:
    """Returns a list of metadata without ``managedFields``, before it is decoded.

    They are most of such a list, and decoding their many unique keys is nearly all of the work.
    Other lists are returned as they are, and so is a list where the end of the field is not
    certain.
    """
    if not content.startswith(_METADATA_LIST):
        return content
    parts, begin, at = [], 0, content.find(_MANAGED_FIELDS)
    while at >= 0:
        end = _end_of_entries(content, at + len(_MANAGED_FIELDS))
        if end < 0:
            at = content.find(_MANAGED_FIELDS, at + 1)
            continue
        if content[at - 1 : at] == b",":
            at -= 1
        elif content[end : end + 1] == b",":
            end += 1
        parts.append(content[begin:at])
        begin, at = end, content.find(_MANAGED_FIELDS, end)
    return b"".join((*parts, content[begin:])) if parts else content


def _end_of_entries(content: bytes, begin: int) -> int:
    """Returns the position after an array of objects without arrays.

    -1 where its end is not certain.
    """
    end = content.find(_ENTRIES_END, begin)
    entries = content[begin : end + 1]
    if end < 0 or not entries.startswith(b"{") or any(mark in entries for mark in _DOUBTFUL):
        return -1
    # Outside of a text each quote that opened one has its other.
    is_outside = (entries.count(b'"') - entries.count(b'\\"')) % 2 == 0
    return end + len(_ENTRIES_END) if is_outside else -1


def read_page(page: Any, path: str) -> tuple[list[Any], str, str]:
    """Returns a page's items, resource version and continue token.

    Computed lists (ComponentStatus, metrics) have no version. Raises
    :class:`~webhook.cluster.errors.ApiUnreachable` for a malformed page.
    """
    content = object_of(page)
    items = content.get("items")
    version, token = (
        text(content, "metadata", "resourceVersion"),
        text(content, "metadata", "continue"),
    )
    if items is None and (version or token):
        items = []
    if type(page) is not dict or type(items) is not list:
        raise ApiUnreachable(f"{path}: the answer is not a list")
    return items, version, token


def read_event(line: bytes, path: str) -> tuple[str, Any]:
    """Returns the type and the object of a watch event.

    Raises :class:`~webhook.cluster.errors.ApiUnreachable` for a malformed event.
    """
    try:
        event = object_of(decode(line))
    except DecodeError as error:
        raise ApiUnreachable(f"{path}: the watch was torn: {error}") from error
    kind = text(event, "type")
    if not kind or "object" not in event:
        raise ApiUnreachable(f"{path}: the watch was torn: {line[:100]!r} is not an event")
    return kind, event["object"]


def check_object(item: Any) -> None:
    """Raises ``ValueError`` for an object without a name, which could not be stored."""
    if type(item) is not dict or type(item.get("metadata")) is not dict:
        raise ValueError("no object with metadata")
    metadata = item["metadata"]
    if not text(metadata, "name") or type(metadata.get("namespace", "")) is not str:
        raise ValueError("no object with a name")
    for field in ("labels", "annotations"):
        if type(metadata.get(field) or {}) is not dict:
            raise ValueError(f"metadata.{field} is not an object")
