"""Objects of a sweep, and a sink that keeps its results."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.webhook.audit.made import DEPLOYMENT, POD, SECRET
from webhook.api.gvk import GroupVersionKind
from webhook.api.resource import Resource

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping, Sequence

    from webhook.audit.sink import Audited, Identity, SweepEnd, SweepStart
    from webhook.audit.tally import ConstraintKey, Count

    Failures = Mapping[GroupVersionKind, Exception]

NAMESPACE = GroupVersionKind("", "v1", "Namespace")
RESOURCES = {
    POD: Resource(POD, "pods", namespaced=True),
    SECRET: Resource(SECRET, "secrets", namespaced=True),
    DEPLOYMENT: Resource(DEPLOYMENT, "deployments", namespaced=True),
    NAMESPACE: Resource(NAMESPACE, "namespaces", namespaced=False),
}


class Given:
    """Objects by kind; a kind's list may fail after its objects, or the kind may go."""

    def __init__(
        self, objects: Mapping[GroupVersionKind, Sequence[Any]], failures: Failures | None = None
    ) -> None:
        self.objects = objects
        self.failures = failures or {}
        self.gone: set[GroupVersionKind] = set()
        self.left: frozenset[GroupVersionKind] = frozenset()

    def unseen(self) -> frozenset[GroupVersionKind]:
        return self.left

    async def kinds(self, _: Any) -> tuple[Resource, ...]:
        return tuple(RESOURCES[gvk] for gvk in sorted(self.objects) if gvk not in self.gone)

    async def pages(
        self, _: Any, resource: Resource, kept: Any = None
    ) -> AsyncGenerator[list[Any], None]:
        del kept
        yield list(reversed(self.objects[resource.gvk]))
        if resource.gvk in self.failures:
            raise self.failures[resource.gvk]


class RecordingSink:
    """A sink that keeps everything."""

    def __init__(self) -> None:
        self.starts: list[SweepStart] = []
        self.all: list[Audited] = []
        self.totals: dict[ConstraintKey, int] = {}

    async def start(self, start: SweepStart) -> None:
        self.starts.append(start)

    async def audited(self, audited: Audited) -> None:
        self.all.append(audited)

    async def gone(self, identity: Identity) -> None:
        raise AssertionError(identity)

    async def end(self, end: SweepEnd) -> None:
        del end

    async def publish(self, end: SweepEnd, totals: Mapping[ConstraintKey, Count]) -> None:
        del end
        self.totals = {key: count.total for key, count in totals.items()}
