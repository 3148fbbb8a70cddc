"""The client that the command line decides with: the same parts as the server's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from webhook.constraint.client import Client
from webhook.constraint.drivers.rego import RegoDriver
from webhook.constraint.targets.admission import AdmissionTarget
from webhook.constraint.targets.json import JsonTarget

if TYPE_CHECKING:
    from collections.abc import Collection


def new_client(
    *, disabled_builtins: Collection[str] = (), http_hosts: Collection[str] = ()
) -> Client:
    """A client of every target and driver, with nothing in it.

    ``http_hosts`` are those that policies may reach with ``http.send``.
    """
    return Client(
        targets=(AdmissionTarget(), JsonTarget()),
        drivers=(RegoDriver(disabled_builtins=disabled_builtins, services=_services(http_hosts)),),
    )


def _services(http_hosts: Collection[str]) -> dict[str, Any] | None:
    if not http_hosts:
        return None
    from webhook.rego.builtins.http.client import HttpClient  # noqa: PLC0415  # brings TLS

    return {"http": HttpClient(frozenset(http_hosts))}
