"""The service account of a Pod: the API server's address, its authorities and the token.

By the rules of client-go's ``rest.InClusterConfig``. The ``kubernetes`` package reads the same, but
its import costs each replica 16 MiB (docs/adr/0060).
"""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from webhook.printable import reason_of

FOLDER: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount")
"""The kubelet keeps the account's files here."""

_HOST: Final = "KUBERNETES_SERVICE_HOST"
_PORT: Final = "KUBERNETES_SERVICE_PORT"


class InvalidServiceAccount(Exception):
    """A variable or a file of the Pod is missing or cannot be used; the message names it."""


def is_in_pod(environment: Mapping[str, str]) -> bool:
    """Returns whether this process runs in a Pod."""
    return bool(environment.get(_HOST))


class ServiceAccount:
    """A Pod's account, with fields of the ``kubernetes`` package's ``Configuration``."""

    tls_server_name = proxy = None

    def __init__(self, environment: Mapping[str, str]) -> None:
        """Reads variables and files; raises :class:`InvalidServiceAccount`."""
        host, port = environment.get(_HOST), environment.get(_PORT)
        if not host or not port:
            raise InvalidServiceAccount(f"{_HOST} and {_PORT} must both be set")
        if ":" in host or "%" in host:
            host = f"[{host}]"
        self.host = f"https://{host}:{port}"
        self.warning = ""
        """Why the system's authorities are trusted instead of the Pod's file; else empty.

        In some clusters the API server has a certificate of theirs.
        """
        authorities = FOLDER / "ca.crt"
        try:
            self.tls = ssl.create_default_context(cafile=authorities)
        except (OSError, ssl.SSLError) as error:
            self.warning = f"{authorities}: {reason_of(error)}"
            self.tls = ssl.create_default_context()
        _read_token()

    def get_api_key_with_prefix(self, _name: str) -> str:
        """Returns the header's value, with the token as it is now.

        Raises :class:`InvalidServiceAccount`.
        """
        return f"Bearer {_read_token()}"


def _read_token() -> str:
    file = FOLDER / "token"
    try:
        token = file.read_text("utf-8").strip()
    except (OSError, ValueError) as error:
        raise InvalidServiceAccount(f"{file}: {reason_of(error)}") from error
    if not token:
        raise InvalidServiceAccount(f"{file} is empty")
    return token
