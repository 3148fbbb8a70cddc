"""A copy of our authorities in a Secret that providers of external data mount, to trust us.

Their charts read ``ca.crt`` of a Secret in their own namespace. All replicas keep it, by
compare-and-swap; other entries stay. A failure to write the copy does not affect the certificate
itself.
"""

from __future__ import annotations

import base64
import datetime as dt
from typing import TYPE_CHECKING

from webhook.certificates import plan as planning
from webhook.certificates.reading import CA_CERTIFICATE, secret_data
from webhook.cluster.errors import ApiError, ApiUnreachable
from webhook.cluster.kinds import SECRETS
from webhook.cluster.reflector import FollowedObject, Settings

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from webhook.api.shapes import Json
    from webhook.cluster.client import ClusterClient
    from webhook.log import Logger


class AuthoritiesCopy:
    """Keeps ``ca.crt`` of one Secret; :meth:`run` in a task of its own."""

    def __init__(
        self,
        client: ClusterClient,
        namespace: str,
        name: str,
        wake: Callable[[], object],
        log: Logger,
        *,
        settings: Settings | None = None,
    ) -> None:
        """``wake`` is called when the Secret changes."""
        self._log = log
        self._fault = ""
        self._secret = FollowedObject(
            client, SECRETS, name, wake, namespace=namespace, settings=settings
        )

    async def run(self) -> None:
        """Watch until cancelled."""
        await self._secret.reflector.run()

    async def keep(self, authorities: Mapping[str, bytes], bundle: bytes) -> None:
        """Writes our authorities, from our own Secret's data, into the Secret."""
        if not self._secret.is_known or _holds(self._secret.document, authorities):
            return
        encoded = base64.b64encode(bundle).decode()

        def changed(secret: Json) -> Json | None:
            if _holds(secret, authorities):
                return None
            return secret | {"data": {**(secret.get("data") or {}), CA_CERTIFICATE: encoded}}

        try:
            written = await self._secret.update(changed)
        except (ApiError, ApiUnreachable) as error:
            self._notify(str(error))
            return
        self._fault = ""
        if written is not None:
            self._log.info("authorities copied for providers", secret=self._shown)

    @property
    def _shown(self) -> str:
        return f"{self._secret.namespace}/{self._secret.name}"

    def _notify(self, fault: str) -> None:
        before, self._fault = self._fault, fault
        if fault != before:
            self._log.warning(
                "authorities were not copied: providers that ask for our certificate will not trust it",
                secret=self._shown,
                error=fault,
            )


def _holds(secret: Json | None, authorities: Mapping[str, bytes]) -> bool:
    """Whether a Secret holds every authority that it must, and no other."""
    if secret is None:
        return False
    held = secret_data(secret).get(CA_CERTIFICATE, b"")
    return planning.is_trusted(held, authorities, dt.datetime.now(tz=dt.UTC))
