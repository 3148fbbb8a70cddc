"""The server's certificate: from a directory, from the cluster's Secret, or made here."""

from __future__ import annotations

import datetime as dt
import time
from dataclasses import replace
from typing import TYPE_CHECKING

from webhook.certificates import pairs
from webhook.certificates.pairs import CertificatePair, InvalidCertificate, SwappedContext
from webhook.metrics.policies import RELOAD_FAULT, RELOADS
from webhook.metrics.server import CERT_NOT_AFTER
from webhook.values import dataclass

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable
    from pathlib import Path

    from webhook.log import Logger
    from webhook.metrics.registry import Registry


@dataclass(frozen=True, slots=True)
class CertificateOptions:
    """The source of the certificate, and its uses."""

    directory: Path | None
    """The directory of the pair; None if the pair is made here or comes from the keeper."""
    names: tuple[str, ...]
    """The DNS names of the Service, and localhost."""
    host: str = ""
    """The listening address, which is also a name in certificates made here."""
    min_version: str = "1.3"
    client_ca_name: str = ""
    """The file with the authorities of clients; without it every client is admitted."""
    api_server_ca: Path | None = None
    """The file with the authorities of API servers, which tells them from other clients."""


class ShownPair:
    """A directory's pair for a process that serves nothing: shown to providers, once present."""

    def __init__(self, directory: Path, log: Logger) -> None:
        self._directory = directory
        self._log = log
        self._fault = ""
        self.version: CertificatePair | None = None
        self.load()

    @property
    def paths(self) -> tuple[Path, ...]:
        """Returns the files to watch."""
        return (self._directory.absolute(),)

    def load(self) -> bool:
        """Reads the directory again; returns whether its pair can be used.

        Otherwise the old pair stays.
        """
        before = self._fault
        try:
            pair = pairs.read_pair(self._directory)
            pairs.make_context(pair)
        except InvalidCertificate as error:
            self._fault = str(error)
            if self._fault != before:
                self._log.info("no certificate to show to providers", error=self._fault)
            return False
        self._fault, self.version = "", pair
        return True

    def lend(self, context: ssl.SSLContext) -> None:
        """Makes a client's context show the pair, if there is one; any thread may call it.

        Raises :class:`~webhook.certificates.pairs.InvalidCertificate`.
        """
        if self.version is not None:
            pairs.show(context, self.version)


class CertificateLoader:
    """Keeps the listener's context on the latest pair that can be used."""

    def __init__(self, options: CertificateOptions, registry: Registry, log: Logger) -> None:
        """Takes the pair of the directory; without a directory, or a pair in it, makes one."""
        self._registry = registry
        self._log = log
        self._min_version = options.min_version
        self._client_ca_name = options.client_ca_name
        self._directory = options.directory
        self._api_server_ca = options.api_server_ca
        self._known = b""
        self._known_fault = ""
        self._fault = ""
        self._ends: float | None = None
        self._installed: CertificatePair | None = None
        self._kept_not_ready: Callable[[], str] | None = None
        self._read_known()
        pair = self._read() if self._directory is not None else None
        if pair is None:
            pair = replace(_self_signed(options), known_authorities=self._known)
        self._served = pair
        context = pairs.make_context(pair, self._min_version)
        self.context = SwappedContext(context)
        self._note(pair)

    @property
    def paths(self) -> tuple[Path, ...]:
        """Returns the files to watch."""
        paths = (self._directory, self._api_server_ca)
        return tuple(path.absolute() for path in paths if path is not None)

    @property
    def version(self) -> CertificatePair:
        """The pair that is served now."""
        return self._served

    def lend(self, context: ssl.SSLContext) -> None:
        """Makes a client's context show the pair in use; any thread may call it.

        Raises :class:`~webhook.certificates.pairs.InvalidCertificate`.
        """
        pairs.show(context, self._served)

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
        """Leaves the pairs to a keeper, which calls :meth:`install`; ``not_ready`` is its state."""
        self._kept_not_ready = not_ready

    def install(self, certificate: bytes, key: bytes) -> None:
        """Serves this pair from the next handshake on; any thread may call it.

        Raises :class:`~webhook.certificates.pairs.InvalidCertificate`; the previous pair then
        stays.
        """
        self._install(CertificatePair(certificate, key, known_authorities=self._known))

    def _install(self, pair: CertificatePair) -> None:
        self.context.install(pairs.make_context(pair, self._min_version))
        self._served = pair
        self._note(pair)

    def _read_known(self) -> None:
        """Reads the authorities of API servers; after an error the previous ones stay."""
        if self._api_server_ca is None:
            return
        before = self._known_fault
        try:
            self._known = pairs.read_authorities(self._api_server_ca)
            self._known_fault = ""
        except InvalidCertificate as error:
            self._known_fault = str(error)
            if self._known_fault != before:
                known = (
                    "the last good ones stay"
                    if self._known
                    else "no client counts as an API server"
                )
                self._log.error(
                    f"authorities of API servers cannot be read: {known}", error=str(error)
                )

    def _read(self) -> CertificatePair | None:
        """Returns the directory's pair if it can be used; otherwise keeps and logs the error."""
        assert self._directory is not None
        try:
            pair = pairs.read_pair(self._directory, self._client_ca_name)
            pair = replace(pair, known_authorities=self._known)
            pairs.make_context(pair, self._min_version)
        except InvalidCertificate as error:
            before, self._fault = self._fault, str(error)
            self._registry.count(RELOADS, "certificate", "error")
            self._registry.set(RELOAD_FAULT, 1, "certificate")
            if self._fault != before:
                stays = "" if self._installed is None else "; the last good one stays"
                self._log.error(f"certificate cannot be used{stays}", error=self._fault)
            return None
        self._fault = ""
        self._registry.count(RELOADS, "certificate", "success")
        self._registry.set(RELOAD_FAULT, 0, "certificate")
        self._installed = pair
        return pair

    def load(self) -> bool:
        """Reads the directory again and installs a new pair; returns whether it can be used."""
        self._read_known()
        if self._directory is None:
            if self._known != self._served.known_authorities:
                self._install(replace(self._served, known_authorities=self._known))
            return not self._known_fault
        before = self._installed
        pair = self._read()
        if pair is None:
            return False
        if pair != before:
            self._install(pair)
            self._log.info("certificate installed", directory=str(self._directory))
        return True

    def _note(self, pair: CertificatePair) -> None:
        ends = pairs.not_after(pair.certificate)
        if ends is not None:
            self._ends = ends.timestamp()
            self._registry.set(CERT_NOT_AFTER, self._ends)


def _self_signed(options: CertificateOptions) -> CertificatePair:
    names = list(options.names)
    if options.host and options.host not in names:
        names.append(options.host)
    pair = pairs.self_signed([*names, "127.0.0.1", "::1"], dt.datetime.now(tz=dt.UTC))
    if not options.client_ca_name:
        return pair
    # Until the directory has the client authorities, every client is refused.
    return CertificatePair(pair.certificate, pair.key, pair.certificate)
