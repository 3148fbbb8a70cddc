"""The published statuses of policies, as of the last publication."""

from __future__ import annotations

from typing import TYPE_CHECKING

from webhook.controllers.status.statuses import keep_since

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from webhook.api.shapes import Json
    from webhook.controllers.object_faults import PolicyKey
    from webhook.controllers.revisions.revisions import InForce


class PublishedPolicies:
    """The statuses by object, and the changes of versions in force for the keeper of revisions.

    Used by one task.
    """

    def __init__(self) -> None:
        self._statuses: dict[PolicyKey, Json] = {}
        self._changes: dict[PolicyKey, InForce | None] = {}

    @property
    def statuses(self) -> Mapping[str, Json]:
        """The status objects, by name."""
        return {document["metadata"]["name"]: document for document in self._statuses.values()}

    def publish(self, key: PolicyKey, make: Callable[[], Json | None]) -> None:
        """Publishes the status that ``make`` returns, None for none.

        After an error the object has none.
        """
        before = self._statuses.pop(key, None)
        status = make()
        if status is not None:
            keep_since(status, before)
            self._statuses[key] = status

    def enforced(self, key: PolicyKey, in_force: InForce | None) -> None:
        """Notes that another version of an object may be in force."""
        self._changes[key] = in_force

    def take_changes(self) -> dict[PolicyKey, InForce | None]:
        """Returns the objects that came into force since the last call.

        None for a withdrawn one.
        """
        taken, self._changes = self._changes, {}
        return taken
