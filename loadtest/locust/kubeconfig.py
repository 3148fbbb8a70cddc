"""A kubeconfig's current user, as far as a load test needs it."""

import base64
import json
import os
import ssl
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from loadtest.locust.tls import client_context

PLUGIN_SECONDS_MAX = 60


@dataclass(frozen=True, slots=True)
class Credentials:
    """The address of an API server, and the client's credentials."""

    server: str
    token: str
    authority: str
    """The PEM bundle that the server is verified by; empty for the system's."""
    pair: bytes
    """The client's certificate and key, PEM; empty for none."""
    verified: bool

    def context(self) -> ssl.SSLContext:
        """A TLS context for connections to the server."""
        return client_context(self.authority, self.pair, verified=self.verified)

    def headers(self) -> dict[str, str]:
        """Returns the headers of each request."""
        return {"Authorization": f"Bearer {self.token}"} if self.token else {}


def read(path: Path, context_name: str = "") -> Credentials:
    """The credentials of a context, by default the current one.

    Raises ValueError for a kubeconfig that does not say, with what it lacks.
    """
    config = yaml.safe_load(path.read_text())
    if not isinstance(config, dict):
        raise ValueError(f"{path}: not a kubeconfig")  # noqa: TRY004  # a fault of the text, not of a type
    chosen = context_name or config.get("current-context") or ""
    context = _entry(path, config, "contexts", chosen)["context"]
    cluster = _entry(path, config, "clusters", context.get("cluster", ""))["cluster"]
    user = _entry(path, config, "users", context.get("user", "")).get("user") or {}
    folder = path.parent
    authority = _data(cluster, "certificate-authority", folder).decode()
    pair = _data(user, "client-certificate", folder) + b"\n" + _data(user, "client-key", folder)
    token = user.get("token", "")
    if not token and "tokenFile" in user:
        token = (folder / user["tokenFile"]).read_text().strip()
    if not token and not pair.strip() and "exec" in user:
        token = _from_plugin(user["exec"])
    return Credentials(
        str(cluster["server"]).rstrip("/"),
        token,
        authority,
        pair.strip(),
        not cluster.get("insecure-skip-tls-verify", False),
    )


def _entry(path: Path, config: Mapping[str, Any], kind: str, name: str) -> Mapping[str, Any]:
    for entry in config.get(kind) or []:
        if entry.get("name") == name:
            found: Mapping[str, Any] = entry
            return found
    raise ValueError(f"{path}: no {name!r} in {kind}")


def _data(entry: Mapping[str, Any], key: str, folder: Path) -> bytes:
    """Inline data, which wins, or a file's."""
    if entry.get(f"{key}-data"):
        return base64.b64decode(entry[f"{key}-data"])
    return (folder / entry[key]).read_bytes() if entry.get(key) else b""


def _from_plugin(plugin: Mapping[str, Any]) -> str:
    """The token of a credential plugin, asked once. Raises ValueError where it gives none."""
    variables = {one["name"]: one["value"] for one in plugin.get("env") or []}
    finished = subprocess.run(
        [plugin["command"], *(plugin.get("args") or [])],
        env={**os.environ, **variables},
        capture_output=True,
        timeout=PLUGIN_SECONDS_MAX,
        check=True,
    )
    token = json.loads(finished.stdout).get("status", {}).get("token", "")
    if not token:
        raise ValueError(f"{plugin['command']} gives no token: use `kubectl proxy` and --host")
    return str(token)
