"""The server's certificate: from a directory, from the cluster's Secret, or made here."""

from __future__ import annotations

import datetime as dt
import time
from pathlib import Path
from typing import TYPE_CHECKING

from webhook import certs
from webhook.certs import CertificatePair, InvalidCertificate, SwappedContext
from webhook.metrics.policies import RELOAD_FAULT, RELOADS
from webhook.metrics.server import CERT_NOT_AFTER

if TYPE_CHECKING:
    from collections.abc import Callable

    from webhook.log import Logger
    from webhook.metrics.registry import Registry
    from webhook.settings.serve import ServeSettings


class CertificateLoader:
    """Keeps the listener's context on the latest pair that can be used."""

    def __init__(self, settings: ServeSettings, registry: Registry, log: Logger) -> None:
        """Take the pair of ``--cert-dir``; without a directory, or until it has one, make one."""
        self._registry = registry
        self._log = log
        self._min_version = settings.tls_min_version
        self._client_ca_name = settings.client_ca_name
        self._directory = Path(settings.cert_dir) if settings.cert_dir else None
        self._fault = ""
        self._ends: float | None = None
        self._installed: CertificatePair | None = None
        self._kept_not_ready: Callable[[], str] | None = None
        pair = self._read() if self._directory is not None else None
        if pair is None:
            pair = _self_signed(settings)
        context = certs.make_context(pair, self._min_version)
        self.context = SwappedContext(context)
        self._note(pair)

    @property
    def paths(self) -> tuple[Path, ...]:
        """What to watch."""
        return () if self._directory is None else (self._directory.absolute(),)

    def not_ready(self) -> str:
        """Why the certificate in use cannot be trusted, or an empty text; any thread may ask."""
        if self._installed is None and self._fault:
            return self._fault
        if self._kept_not_ready is not None and (reason := self._kept_not_ready()):
            return reason
        if self._ends is not None and self._ends < time.time():
            return "the certificate has expired"
        return ""

    def keep(self, not_ready: Callable[[], str]) -> None:
        """Somebody else brings the pairs, by :meth:`install`, and says why there is none yet."""
        self._kept_not_ready = not_ready

    def install(self, certificate: bytes, key: bytes) -> None:
        """Serve this pair from the next handshake on; any thread may call.

        Raises :class:`~webhook.certs.InvalidCertificate`, and then serves on what it had.
        """
        pair = CertificatePair(certificate, key)
        self.context.install(certs.make_context(pair, self._min_version))
        self._note(pair)

    def _read(self) -> CertificatePair | None:
        """The directory's pair if it can be used; what is wrong is kept and logged otherwise."""
        assert self._directory is not None
        try:
            pair = certs.read_pair(self._directory, self._client_ca_name)
            certs.make_context(pair, self._min_version)
        except InvalidCertificate as error:
            if str(error) != self._fault:
                stays = "" if self._installed is None else "; the one before stays"
                self._log.error(f"certificate cannot be used{stays}", error=str(error))
            self._fault = str(error)
            self._registry.count(RELOADS, "certificate", "error")
            self._registry.set(RELOAD_FAULT, 1, "certificate")
            return None
        self._fault = ""
        self._registry.count(RELOADS, "certificate", "success")
        self._registry.set(RELOAD_FAULT, 0, "certificate")
        self._installed = pair
        return pair

    def load(self) -> bool:
        """Read the directory again and install a new pair; whether it can be used."""
        before = self._installed
        pair = self._read()
        if pair is None:
            return False
        if pair != before:
            self.context.install(certs.make_context(pair, self._min_version))
            self._log.info("certificate installed", directory=str(self._directory))
            self._note(pair)
        return True

    def _note(self, pair: CertificatePair) -> None:
        ends = certs.not_after(pair.certificate)
        if ends is not None:
            self._ends = ends.timestamp()
            self._registry.set(CERT_NOT_AFTER, self._ends)


def service_names(settings: ServeSettings) -> tuple[str, ...]:
    """The DNS names that a certificate is for: the Service's, and localhost."""
    service, namespace = settings.cert_service_name, settings.pod_namespace or "waddle-system"
    return f"{service}.{namespace}.svc", f"{service}.{namespace}.svc.cluster.local", "localhost"


def _self_signed(settings: ServeSettings) -> CertificatePair:
    names = list(service_names(settings))
    if settings.host and settings.host not in names:
        names.append(settings.host)
    pair = certs.self_signed([*names, "127.0.0.1", "::1"], dt.datetime.now(tz=dt.UTC))
    if not settings.client_ca_name:
        return pair
    # Until the directory has the client authorities nobody is let in.
    return CertificatePair(pair.certificate, pair.key, pair.certificate)
