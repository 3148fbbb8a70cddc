"""An API server for Events that refuses when it is told to, as far as what writes them can see."""

from __future__ import annotations

from typing import Any

from webhook.cluster.errors import ApiError, ApiUnreachable
from webhook.cluster.kinds import EVENTS

Refusal = ApiError | ApiUnreachable | ValueError


def conflict() -> ApiError:
    """Another writer was faster."""
    return ApiError(409, "modified", reason="Conflict")


def forbidden() -> ApiError:
    """A right is missing."""
    return ApiError(403, "no right", reason="Forbidden")


class RefusingServer:
    """Has Events by their namespaces and names; ``refusals`` are those of the next requests."""

    def __init__(self, *refusals: Refusal | None) -> None:
        self.refusals = [*refusals]
        self.events: dict[tuple[str, str], dict[str, Any]] = {}
        self.asked: list[str] = []
        """The verb of each request."""

    async def create(self, kind: Any, document: dict[str, Any], namespace: str) -> None:
        """Make one, unless there is one of its name."""
        self._asked("create", kind)
        key = namespace, document["metadata"]["name"]
        if key in self.events:
            raise ApiError(409, "it exists", reason="AlreadyExists")
        self.events[key] = document

    async def merge(
        self, kind: Any, name: str, namespace: str, patch: dict[str, Any]
    ) -> dict[str, Any]:
        """Change fields of one, and of its metadata; the whole of it by then."""
        self._asked("merge", kind)
        if (namespace, name) not in self.events:
            raise ApiError(404, "not found", reason="NotFound")
        known = self.events[namespace, name]
        metadata = known["metadata"] | patch.get("metadata", {})
        made = self.events[namespace, name] = known | patch | {"metadata": metadata}
        return made

    async def get(self, kind: Any, name: str, namespace: str) -> dict[str, Any]:
        """One that is there."""
        self._asked("get", kind)
        if (namespace, name) not in self.events:
            raise ApiError(404, "not found", reason="NotFound")
        return self.events[namespace, name]

    async def replace(self, kind: Any, document: dict[str, Any]) -> None:
        """Put one in another's place."""
        self._asked("replace", kind)
        metadata = document["metadata"]
        self.events[metadata["namespace"], metadata["name"]] = document

    def _asked(self, verb: str, kind: Any) -> None:
        assert kind is EVENTS
        self.asked.append(verb)
        refusal = self.refusals.pop(0) if self.refusals else None
        if refusal is not None:
            raise refusal
