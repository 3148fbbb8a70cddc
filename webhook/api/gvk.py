"""Group, version and kind, and the few fields that every Kubernetes object has."""

from __future__ import annotations

from typing import Any, Final, NamedTuple


class GroupKind(NamedTuple):
    """An API group and a kind: what a constraint's match names and the index is keyed by."""

    group: str
    kind: str


class GroupVersionKind(NamedTuple):
    """The group and kind of an object, and the version that its fields are written in."""

    group: str
    version: str
    kind: str

    @property
    def group_version(self) -> str:
        """``apps/v1``, or ``v1`` in the core group."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def group_kind(self) -> GroupKind:
        """Without the version."""
        return GroupKind(self.group, self.kind)

    def __str__(self) -> str:
        """As Go's schema.GroupVersionKind prints itself, which messages carry."""
        return f"{self.group}/{self.version}, Kind={self.kind}"


def split_group_version(api_version: object) -> tuple[str, str]:
    """``apps/v1`` as ``("apps", "v1")``; a malformed one is ``("", "")``, as in apimachinery."""
    if type(api_version) is not str:
        return "", ""
    group, slash, version = api_version.partition("/")
    if not slash:
        return "", group
    return ("", "") if "/" in version else (group, version)


KNOWN_MAX: Final = 1024
"""Kinds that are remembered by what objects state: those of a large cluster, in 800 KiB at most."""

_KNOWN_LENGTH_MAX: Final = 128
"""Of each text of theirs: longer ones nobody has, but whoever would fill the memory."""

KNOWN: Final[dict[tuple[Any, Any], GroupVersionKind]] = {}


def gvk_of(obj: Any) -> GroupVersionKind:
    """The group, version and kind that an object states; empty where it states none."""
    stated = obj.get("apiVersion"), obj.get("kind")
    try:
        return KNOWN[stated]  # Each review asks several times.
    except (KeyError, TypeError):  # A list or an object has no hash.
        pass
    api_version, kind = stated
    gvk = GroupVersionKind(*split_group_version(api_version), kind if type(kind) is str else "")
    texts = type(api_version) is str and type(kind) is str
    if texts and max(len(api_version), len(kind)) <= _KNOWN_LENGTH_MAX:
        if len(KNOWN) >= KNOWN_MAX:
            KNOWN.clear()
        KNOWN[stated] = gvk
    return gvk


def text(obj: Any, *path: str) -> str:
    """The string at ``path``, or ``""`` where there is none or something else."""
    for name in path:
        if type(obj) is not dict:
            return ""
        obj = obj.get(name)
    return obj if type(obj) is str else ""


def name_of(obj: Any) -> str:
    """``metadata.name``."""
    return text(obj, "metadata", "name")


def namespace_of(obj: Any) -> str:
    """``metadata.namespace``."""
    return text(obj, "metadata", "namespace")


def labels_of(obj: Any) -> dict[str, str]:
    """``metadata.labels``: null is the empty text, and one that is no text voids them all.

    That is apimachinery's ``unstructured.GetLabels``.
    """
    metadata = obj.get("metadata")
    labels = metadata.get("labels") if type(metadata) is dict else None
    if type(labels) is not dict:
        return {}
    for value in labels.values():
        if type(value) is not str:
            return _coerced(labels)
    return labels


def _coerced(labels: dict[str, Any]) -> dict[str, str]:
    result = {name: "" if value is None else value for name, value in labels.items()}
    return result if all(type(value) is str for value in result.values()) else {}


def plural_of(kind: str) -> str:
    """The resource of a kind, as Kubernetes guesses it (meta.UnsafeGuessKindToResource)."""
    name = kind.lower()
    if name.endswith("endpoints"):
        return name
    if name.endswith("s"):
        return f"{name}es"
    return f"{name[:-1]}ies" if name.endswith("y") else f"{name}s"
