"""Who may have policies validated, and may be told what they would change."""

from __future__ import annotations

import asyncio
from concurrent.futures import Future
from typing import TYPE_CHECKING, Final

from webhook.cluster import authorization
from webhook.cluster.discovery import UnknownKind
from webhook.cluster.errors import ApiError, ApiUnreachable
from webhook.cluster.kinds import NAMESPACE
from webhook.constraint.inventory import kinds_of
from webhook.server.validation import PATH, Access

if TYPE_CHECKING:
    from webhook.api.gvk import GroupVersionKind
    from webhook.app.cluster import ClusterThread
    from webhook.cluster.client import ClusterClient
    from webhook.serving.revision import Serving

ASK_SECONDS: Final = 5.0
"""For all questions to the API server about one caller."""


class CertifiedCallers:
    """Who has reached the port has shown a certificate that says who they are: trusted with all."""

    def ask(self, token: str) -> Future[Access]:
        """Anybody may."""
        del token
        access: Future[Access] = Future()
        access.set_result(Access(200, reads=True))
        return access


class ClusterCallers:
    """Whom the cluster lets: tokens are reviewed by the API server, and rights asked of it."""

    def __init__(self, cluster: ClusterThread, serving: Serving) -> None:
        self._cluster = cluster
        self._serving = serving

    def ask(self, token: str) -> Future[Access]:
        """What a caller with this token may; called by any thread."""
        return self._cluster.ask(lambda client: self._ask(client, token))

    async def _ask(self, client: ClusterClient, token: str) -> Access:
        if not token:
            return Access(401, "a bearer token is needed")
        try:
            async with asyncio.timeout(ASK_SECONDS):
                return await self._access(client, token)
        except (ApiError, ApiUnreachable, TimeoutError, UnknownKind) as error:
            why = str(error) or "no answer in time"
            return Access(503, f"who you are, and what you may, could not be asked: {why}")

    async def _access(self, client: ClusterClient, token: str) -> Access:
        user = await authorization.user_of(client, token)
        if user is None:
            return Access(401, "the bearer token is not valid")
        path = {"nonResourceAttributes": {"path": PATH, "verb": "post"}}
        if not await authorization.may(client, user, path):
            name = user["username"]
            return Access(403, f"{name} may not post to the path {PATH} (nonResourceURLs of RBAC)")
        return Access(200, reads=await authorization.may_list_all(client, user, self._kinds()))

    def _kinds(self) -> list[GroupVersionKind]:
        """Each kind that policies can read."""
        revision = self._serving.revision
        synced = () if revision is None else kinds_of(revision.snapshot.inventory)
        # Policies see the Namespace of what is reviewed, too.
        return sorted({NAMESPACE, *synced})
