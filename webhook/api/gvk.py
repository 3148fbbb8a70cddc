"""Group, version and kind, and the metadata fields common to all Kubernetes objects."""

from __future__ import annotations

from typing import Any, Final, NamedTuple


class GroupKind(NamedTuple):
    """An API group and a kind: the key of a constraint's match and of the index."""

    group: str
    kind: str


class GroupVersionKind(NamedTuple):
    """The group and kind of an object, and the version of its fields."""

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
        """Formats like Go's schema.GroupVersionKind, as in messages."""
        return f"{self.group}/{self.version}, Kind={self.kind}"


def split_group_version(api_version: object) -> tuple[str, str]:
    """Splits ``apps/v1`` into ``("apps", "v1")``.

    A malformed one gives ``("", "")``, as in apimachinery.
    """
    if type(api_version) is not str:
        return "", ""
    group, slash, version = api_version.partition("/")
    if not slash:
        return "", group
    return ("", "") if "/" in version else (group, version)


KNOWN_MAX: Final = 1024
"""The size of the cache of parsed kinds: the kinds of a large cluster, at most 800 KiB."""

_KNOWN_LENGTH_MAX: Final = 128
"""The longest cached text, in characters. Real ones are shorter; an attacker could fill the memory
with longer ones."""

KNOWN: Final[dict[tuple[Any, Any], GroupVersionKind]] = {}


def gvk_of(obj: Any) -> GroupVersionKind:
    """Returns the group, version and kind of an object; empty if the object has none."""
    stated = obj.get("apiVersion"), obj.get("kind")
    try:
        return KNOWN[stated]  # Each review calls it several times.
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
    """Returns the string at ``path``; ``""`` if it is absent or no string."""
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


def shown_name(obj: Any) -> str:
    """Returns kind, namespace and name for people: ``Pod shop/web``."""
    namespace, name = namespace_of(obj), name_of(obj)
    return f"{gvk_of(obj).kind} {f'{namespace}/{name}' if namespace else name}"


def labels_of(obj: Any) -> dict[str, str]:
    """Returns ``metadata.labels``; null becomes an empty text, and any other type voids all labels.

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
    """Returns the resource of a kind, as Kubernetes guesses it (meta.UnsafeGuessKindToResource)."""
    name = kind.lower()
    if name.endswith("endpoints"):
        return name
    if name.endswith("s"):
        return f"{name}es"
    return f"{name[:-1]}ies" if name.endswith("y") else f"{name}s"
