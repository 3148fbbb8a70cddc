"""The webhook as the manifests ship it: its Deployment's flags and memory limit, its timeout.

What names a cluster, a port or a certificate is left out: the policies come from files.
"""

from pathlib import Path
from typing import Any

import yaml

BASE = Path(__file__).parents[2] / "manifests" / "base"

ELSEWHERE = (
    *("--kubernetes", "--operation=status", "--operation=generate"),
    *("--port=", "--health-addr=", "--prometheus-port=", "--cert-service-name="),
    *("--shutdown-", "--default-", "--sync-vap-", "--vap-generation-mode="),
)
"""Beginnings of flags that are about a cluster, about ports, and about an end in good order."""


def _manifest(name: str) -> dict[str, Any]:
    document: dict[str, Any] = yaml.safe_load((BASE / name).read_text())
    return document


def _container() -> dict[str, Any]:
    (container,) = _manifest("deployment.yaml")["spec"]["template"]["spec"]["containers"]
    found: dict[str, Any] = container
    return found


def flags() -> tuple[str, ...]:
    """The flags of the webhook's Deployment."""
    command, *given = _container()["args"]
    assert command == "serve", command
    return tuple(flag for flag in given if not flag.startswith(ELSEWHERE))


def memory_mib() -> int:
    """Returns the memory limit."""
    limit: str = _container()["resources"]["limits"]["memory"]
    assert limit.endswith("Mi"), limit
    return int(limit.removesuffix("Mi"))


def timeout_seconds() -> int:
    """Returns the API server's timeout of a review."""
    webhooks = _manifest("webhook-configuration.yaml")["webhooks"]
    seconds: int = webhooks[0]["timeoutSeconds"]
    return seconds
