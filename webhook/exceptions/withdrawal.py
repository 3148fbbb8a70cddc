"""Withdraws bindings of generated API server policies while exceptions are in force.

Such a policy has no exceptions, and its expressions have no clock. While an exception from a
constraint is in force, or begins within the hour, only the webhook decides by it.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from webhook.exceptions.exception import SOON_SECONDS
from webhook.exceptions.permission import allows

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from webhook.exceptions.exception import PolicyException


def withdrawn_for(
    exceptions: Iterable[PolicyException], document: Mapping[str, Any], now: float
) -> str:
    """Returns why a constraint's binding is withdrawn; empty if it is not."""
    kind, name = document["kind"], document["metadata"]["name"]
    for item in exceptions:
        if (
            item.is_soon(now)
            and item.names(kind, name)
            and allows(document, of_cluster=not item.namespace)
        ):
            return (
                f"withdrawn for {item.excuse.title}, and others maybe: a policy of the API server "
                "knows no exceptions, so that the webhook alone decides"
            )
    return ""


def seconds_to_change(exceptions: Iterable[PolicyException], now: float) -> float:
    """Returns the time until the set of withdrawn bindings changes; infinite for never."""
    moments = [
        moment - now
        for item in exceptions
        for moment in (item.begins - SOON_SECONDS, item.ends)
        if moment > now
    ]
    return min(moments, default=math.inf)
