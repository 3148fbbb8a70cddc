"""The client that the command line decides with: the same parts as the server's."""

from __future__ import annotations

from typing import TYPE_CHECKING

from webhook.constraint.client import Client
from webhook.constraint.drivers.rego import RegoDriver
from webhook.constraint.targets.admission import AdmissionTarget
from webhook.constraint.targets.json import JsonTarget

if TYPE_CHECKING:
    from collections.abc import Collection


def new_client(*, disabled_builtins: Collection[str] = ()) -> Client:
    """A client of every target and driver, with nothing in it."""
    return Client(
        targets=(AdmissionTarget(), JsonTarget()),
        drivers=(RegoDriver(disabled_builtins=disabled_builtins),),
    )
