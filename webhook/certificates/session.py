"""The listener's certificate as the cluster keeps it, over every session at the API server."""

from __future__ import annotations

from typing import TYPE_CHECKING

from webhook.certificates.keeper import ServingCertificate

if TYPE_CHECKING:
    from webhook.certificates.loader import CertificateLoader
    from webhook.certificates.plan import CertificatePlace
    from webhook.cluster.client import ClusterClient
    from webhook.log import Logger


class ClusterCertificate:
    """Hands the Secret's pair to the listener, and holds readiness back until the pair is trusted."""

    def __init__(self, place: CertificatePlace, loader: CertificateLoader, log: Logger) -> None:
        self._place = place
        self._loader = loader
        self._log = log
        self._keeper: ServingCertificate | None = None
        self._was_ready = False
        loader.keep(self.not_ready)

    def not_ready(self) -> str:
        """Returns why the API server cannot call us yet, or an empty text; any thread may call it.

        Once empty it stays so, in later sessions too: the pair continues to be served.
        """
        if self._was_ready:
            return ""
        keeper = self._keeper
        reason = (
            "the certificate's Secret is not read yet" if keeper is None else keeper.not_ready()
        )
        self._was_ready = not reason
        return reason

    def faults(self) -> tuple[str, ...]:
        """Returns what is wrong with Secret and configurations; any thread may call it."""
        return () if self._keeper is None else self._keeper.faults()

    def writes(self) -> tuple[int, int]:
        """Writes of this session to Secret and configuration, and how many failed."""
        if self._keeper is None:
            return 0, 0
        statistics = self._keeper.statistics()
        return statistics.secret_writes + statistics.bundle_writes, statistics.failures

    async def run(self, client: ClusterClient) -> None:
        """Keeps the certificate by this session until cancelled."""
        self._keeper = ServingCertificate(client, self._place, self._loader.install, self._log)
        await self._keeper.run()
