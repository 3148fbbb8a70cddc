"""The address of the API server and our identity: kubeconfig or service account.

The ``kubernetes`` package reads kubeconfigs with every authentication scheme (exec plugins, OIDC,
client certificates). It is imported only here, and not in a Pod. Tokens rotate: they are read again
each minute, and everything is read again after a 401.
"""

from __future__ import annotations

import os
import ssl
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from webhook.cluster.kubeconfig import VARIABLE, faults_of
from webhook.cluster.service_account import InvalidServiceAccount, ServiceAccount, is_in_pod
from webhook.proxies import InvalidProxy, Proxy, proxy_for, read_proxy

if TYPE_CHECKING:
    from pathlib import Path

    from webhook.log import Logger

TOKEN_SECONDS_MAX: Final = 60.0
"""A token is read again after so long; the kubelet renews it long before it expires."""


class CredentialsError(Exception):
    """There is no usable configuration; the message lists the places that were tried."""


class Credentials:
    """An API server, how to connect to it, and an identity."""

    def __init__(
        self, load: Callable[[], Any], environment: Mapping[str, str] = MappingProxyType({})
    ) -> None:
        """``load`` returns a ``Configuration``; ``environment`` names proxies if that does not."""
        self._load = load
        self._configuration = load()
        self._read_at = 0.0
        self._headers: dict[str, str] | None = None
        self.server = str(self._configuration.host).rstrip("/")
        self.tls = _tls(self._configuration) if self.server.startswith("https:") else None
        self.server_name: str | None = self._configuration.tls_server_name or None
        """The name in its certificate if that differs from the URL's."""
        self.proxy = _proxy(self._configuration.proxy, self.server, environment)
        """The kubeconfig's (``proxy-url``), regardless of NO_PROXY, or the environment's."""
        self.rereads = 0
        self.rotations = 0

    def headers(self) -> dict[str, str]:
        """Returns the authentication headers; empty with a client certificate.

        If the token cannot be read again, the last one is used until it is refused, as in client-go.
        """
        if self._headers is None:
            return self._read_token()
        if time.monotonic() - self._read_at > TOKEN_SECONDS_MAX:
            with suppress(CredentialsError):
                return self._read_token()
        return self._headers

    def reread(self) -> None:
        """Reads the whole configuration again, after the API server refused our credentials."""
        self.rereads += 1
        before, self._configuration = self._configuration, self._load()
        try:
            self._read_token()
        except CredentialsError:
            self._configuration = before
            raise

    def _read_token(self) -> dict[str, str]:
        self._read_at = time.monotonic()
        try:
            # The package's hook renews expiring tokens.
            value = self._configuration.get_api_key_with_prefix("BearerToken")
        except Exception as error:  # most of all a file that is being written
            raise CredentialsError(f"cannot read the token: {error}") from error
        if not value and self._headers:
            # Without a token we would be anonymous, and 403 is no reason to read it again.
            raise CredentialsError("the token is gone: its file is empty, or being written")
        headers = {"Authorization": value.strip()} if value else {}
        self.rotations += bool(self._headers) and headers != self._headers
        self._headers = headers
        return headers


def load_credentials(
    kubeconfig: str | Path | None = None, *, context: str | None = None, log: Logger | None = None
) -> Credentials:
    """Returns the credentials of a kubeconfig, else of the Pod, else of the user's own kubeconfig.

    $KUBECONFIG and a context name a kubeconfig, in a Pod too. Raises :class:`CredentialsError`.
    """
    if not (kubeconfig or context or os.environ.get(VARIABLE)) and is_in_pod(os.environ):
        return Credentials(lambda: _of_pod(log), os.environ)
    # Of some faults the package only logs; a pipe is left to it, which it reads once.
    if why := next(faults_of(kubeconfig, context), None):
        raise CredentialsError(why)

    source = kubeconfig or "the kubeconfig"

    def load() -> Any:
        from kubernetes import config  # noqa: PLC0415  # takes 16 MiB, so only on demand
        from kubernetes.client import Configuration  # noqa: PLC0415

        configuration = Configuration()
        configuration.proxy = None  # the package's own way with the environment knows no networks
        try:
            config.load_kube_config(
                None if kubeconfig is None else str(kubeconfig),
                context=context,
                client_configuration=configuration,
                persist_config=False,
            )
        except Exception as error:  # the package raises any type for a malformed file
            raise CredentialsError(f"cannot read credentials from {source}: {error}") from error
        return configuration

    return Credentials(load, os.environ)


def _of_pod(log: Logger | None) -> ServiceAccount:
    try:
        account = ServiceAccount(os.environ)
    except InvalidServiceAccount as error:
        raise CredentialsError(f"cannot use the Pod's service account: {error}") from error
    if log and account.warning:
        log.warning("the API server is verified by the system's authorities", error=account.warning)
    return account


def _proxy(proxy_url: str | None, server: str, environment: Mapping[str, str]) -> Proxy | None:
    try:
        return read_proxy(proxy_url) if proxy_url else proxy_for(server, environment)
    except InvalidProxy as error:
        raise CredentialsError(f"the proxy to the API server: {error}") from None


def _tls(configuration: Any) -> ssl.SSLContext:
    if isinstance(configuration, ServiceAccount):
        return configuration.tls
    if not configuration.verify_ssl:
        raise CredentialsError(
            "the kubeconfig turns verification off (insecure-skip-tls-verify): anyone "
            "could pose as this API server and send policies"
        )
    try:
        context = ssl.create_default_context(cafile=configuration.ssl_ca_cert)
        if configuration.cert_file:
            context.load_cert_chain(configuration.cert_file, configuration.key_file)
    except (OSError, ssl.SSLError) as error:
        raise CredentialsError(f"cannot load the credentials' certificates: {error}") from error
    return context
