"""The Namespaces of audited objects: from the policies' watches, or from the API server."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from webhook.audit.retries import with_retries
from webhook.cluster.errors import ApiError
from webhook.cluster.kinds import NAMESPACES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from webhook.cluster.client import ClusterClient

    Namespace = Mapping[str, Any]


REMEMBERED_MAX: Final = 1024
"""The most remembered Namespaces without a watch: those that appeared or vanished during the sweep.
"""


class Namespaces:
    """Finds Namespaces for one sweep."""

    def __init__(self, client: ClusterClient, known: Mapping[str, Any]) -> None:
        self._client = client
        self._known = known
        self._answers: dict[str, Namespace | None] = {}

    async def get(self, name: str) -> Namespace | None:
        """Returns the Namespace.

        None without one: its objects are then deleted, too, or terminating. Raises
        :class:`~webhook.cluster.errors.ApiError` and
        :class:`~webhook.cluster.errors.ApiUnreachable`.
        """
        known: Namespace | None = self._known.get(name)
        if known is not None:
            return known
        if name not in self._answers:
            if len(self._answers) >= REMEMBERED_MAX:
                self._answers.clear()
            self._answers[name] = await self._ask(name)
        return self._answers[name]

    async def _ask(self, name: str) -> Namespace | None:
        try:
            return self._client.kept(await with_retries(lambda: self._client.get(NAMESPACES, name)))
        except ApiError as error:
            if error.is_absent:
                return None
            raise
