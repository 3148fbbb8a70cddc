"""The greeting of ``waddle serve`` at a terminal: its policies, its addresses and an example."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from webhook import __version__

EXAMPLE: Final = "docs/examples/bad-pod.json"
"""A review whose denial the README shows; exists only in a checkout."""

_REVIEW: Final = (
    '{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"1",'
    '"operation":"CREATE","kind":{"group":"","version":"v1","kind":"Pod"},"name":"web",'
    '"namespace":"default","userInfo":{},"object":{"apiVersion":"v1","kind":"Pod",'
    '"metadata":{"name":"web","namespace":"default"},'
    '"spec":{"containers":[{"name":"web","image":"nginx"}]}}}}'
)
"""A review of a minimal Pod, as an example."""


def source(paths: Sequence[str]) -> str:
    """Returns the source of policies, in words."""
    shown = [path.rstrip("/") + "/" if Path(path).is_dir() else path for path in paths]
    return ", ".join(shown) if shown else "the cluster"


def opening(policies: str, where: Mapping[str, str]) -> str:
    """Returns the lines about the policies and addresses.

    ``where`` has host and port by name, such as ``admission``.
    """
    lines = [f"Waddle {__version__} serves the policies of {policies}. Control-C stops it.", ""]
    lines.append(f"  admission  https://{_at(where['admission'])}/v1/admit")
    lines.append(f"  health     {_readyz(where)}")
    lines.append(f"  metrics    http://{_at(where['metrics'])}/metrics")
    return "\n".join([*lines, "", "Policies are being read; until then it answers 503."])


def waiting(where: Mapping[str, str]) -> str:
    """Returns the lines for policies with logged faults, before any policy is served."""
    return (
        "Not ready: what is broken is above, and at any time at\n"
        f"  {_readyz(where)}\n"
        "Files are read again when they change."
    )


def ready(constraints: int, where: Mapping[str, str], folder: Path, *, faulty: bool = False) -> str:
    """Returns the lines for readiness, with a command to run in ``folder``.

    ``faulty`` is whether a logged fault leaves a policy out.
    """
    body = f"@{EXAMPLE}" if (folder / EXAMPLE).is_file() else f"'{_REVIEW}'"
    number = "1 constraint is" if constraints == 1 else f"{constraints} constraints are"
    without = (
        f"\nWhat cannot be used is left out: it is above, and at any time at\n  {_readyz(where)}\n"
        if faulty
        else " "
    )
    return (
        f"Ready: {number} in force.{without}Ask it from another terminal, as an API server would:\n\n"
        f"  curl -sk https://{_at(where['admission'])}/v1/admit"
        f" -H 'Content-Type: application/json' -d {body}\n"
    )


def _readyz(where: Mapping[str, str]) -> str:
    return f"http://{_at(where['health'])}/readyz?verbose"


def _at(address: str) -> str:
    """Returns an address that a client can connect to, in place of "all addresses"."""
    for every in ("0.0.0.0:", "[::]:"):
        if address.startswith(every):
            return "127.0.0.1:" + address.removeprefix(every)
    return address
