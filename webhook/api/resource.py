"""The paths of a served kind at the API server."""

from __future__ import annotations

from urllib.parse import quote

from webhook.api.gvk import GroupVersionKind
from webhook.values import dataclass


@dataclass(frozen=True, slots=True)
class Resource:
    """A kind with its plural name and its scope."""

    gvk: GroupVersionKind
    plural: str
    namespaced: bool

    @property
    def root(self) -> str:
        """``/api/v1`` or ``/apis/<group>/<version>``."""
        return group_path(self.gvk.group, self.gvk.version)

    def collection(self, namespace: str = "") -> str:
        """Returns the path of all objects, of one namespace or of all."""
        if self.namespaced and namespace:
            return f"{self.root}/namespaces/{quote(namespace, safe='')}/{self.plural}"
        return f"{self.root}/{self.plural}"

    def path(self, name: str, namespace: str = "", *, subresource: str = "") -> str:
        """Returns the path of an object, or of its subresource."""
        assert name, "the path of an object needs its name"
        assert bool(namespace) == self.namespaced, f"{self.gvk}: namespace {namespace!r}"
        suffix = f"/{subresource}" if subresource else ""
        return f"{self.collection(namespace)}/{quote(name, safe='')}{suffix}"


def group_path(group: str, version: str) -> str:
    """Returns the path of a group and version."""
    if not group:
        return f"/api/{quote(version, safe='')}"
    return f"/apis/{quote(group, safe='')}/{quote(version, safe='')}"
