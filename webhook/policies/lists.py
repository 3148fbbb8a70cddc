"""Takes the lists of Kubernetes in files apart."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from webhook.api.gvk import name_of
from webhook.policies.manifests import Manifest, PolicyFault, UnreadableFile
from webhook.printable import type_of


def expand_lists(manifests: Iterable[Manifest]) -> Iterator[Manifest]:
    """The manifests, each ``List`` of Kubernetes replaced by its items, also within a list.

    As for kubectl, items of a ``PodList`` without kind and apiVersion are Pods. Raises
    :class:`UnreadableFile` for items that are no objects.
    """
    for manifest in manifests:
        pending = [manifest]  # a stack: the depth of lists is their author's choice
        while pending:
            item = pending.pop()
            if (items := _items(item)) is None:
                yield item
            else:
                pending += reversed(items)


def _items(manifest: Manifest) -> list[Manifest] | None:
    """Returns the items of a list of Kubernetes; None for any other object."""
    document, kind = manifest.document, manifest.gvk.kind
    is_list = len(kind) > len("List") and kind.endswith("List")
    if name_of(document) or "items" not in document or not (kind == "List" or is_list):
        return None
    items = document["items"]
    if type(items) is not list:
        if is_list or items is None:
            return None
        raise _no_items(manifest, "items: expected a list", items)
    typed = {"apiVersion": document.get("apiVersion"), "kind": kind.removesuffix("List")}
    manifests = []
    for index, item in enumerate(items):
        if type(item) is dict:
            untyped = is_list and not item.get("kind") and not item.get("apiVersion")
            document = {**item, **typed} if untyped else item
            manifests.append(Manifest(document, manifest.file, manifest.line))
        elif item is not None:
            raise _no_items(manifest, f"items[{index}]: expected an object", item)
    return manifests


def _no_items(manifest: Manifest, expected: str, value: object) -> UnreadableFile:
    message = f"{manifest.gvk.kind}: {expected}, got {type_of(value)}"
    return UnreadableFile(PolicyFault(manifest.file, manifest.line, "", message))
