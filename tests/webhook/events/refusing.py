"""An API server for Events that refuses when a test says so, as far as their writer can see."""

from __future__ import annotations

from typing import Any

from webhook.cluster.errors import ApiError, ApiUnreachable
from webhook.cluster.kinds import EVENTS

Refusal = ApiError | ApiUnreachable | ValueError


def conflict() -> ApiError:
    """Returns the error of a write after another writer's."""
    return ApiError(409, "modified", reason="Conflict")


def forbidden() -> ApiError:
    """A right is missing."""
    return ApiError(403, "no right", reason="Forbidden")


class RefusingServer:
    """Has Events by their namespaces and names; ``refusals`` are those of the next requests."""

    def __init__(self, *refusals: Refusal | None) -> None:
        self.refusals = [*refusals]
        self.events: dict[tuple[str, str], dict[str, Any]] = {}
        self._versions: dict[tuple[str, str], int] = {}
        self.requests: list[str] = []
        """The verb of each request."""

    async def create(self, kind: Any, document: dict[str, Any], namespace: str) -> dict[str, Any]:
        """Make one, unless there is one of its name."""
        self._note("create", kind)
        key = namespace, document["metadata"]["name"]
        if key in self.events:
            raise ApiError(409, "it exists", reason="AlreadyExists")
        return self._written(key, document)

    async def merge(
        self, kind: Any, name: str, namespace: str, patch: dict[str, Any]
    ) -> dict[str, Any]:
        """Change fields of one, and of its metadata, at its version; the whole of it by then."""
        self._note("merge", kind)
        key = namespace, name
        if key not in self.events:
            raise ApiError(404, "not found", reason="NotFound")
        changes = dict(patch.get("metadata", {}))
        if changes.pop("resourceVersion", None) not in (None, self._version(key)):
            raise conflict()
        known = self.events[key]
        return self._written(key, known | patch | {"metadata": known["metadata"] | changes})

    def count_elsewhere(self, namespace: str, name: str) -> None:
        """Counts an event up, as another process does."""
        known = self.events[namespace, name]
        self._written((namespace, name), known | {"count": known["count"] + 1})

    def _version(self, key: tuple[str, str]) -> str:
        return str(self._versions.get(key, 0))

    def _written(self, key: tuple[str, str], document: dict[str, Any]) -> dict[str, Any]:
        self.events[key] = document
        self._versions[key] = self._versions.get(key, 0) + 1
        metadata = document["metadata"] | {"resourceVersion": self._version(key)}
        return document | {"metadata": metadata}

    def _note(self, verb: str, kind: Any) -> None:
        assert kind is EVENTS
        self.requests.append(verb)
        refusal = self.refusals.pop(0) if self.refusals else None
        if refusal is not None:
            raise refusal
