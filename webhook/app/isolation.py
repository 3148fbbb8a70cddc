"""What the operator chose about faults of policies, as the framework takes it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, cast

from webhook.constraint.isolation import Isolation

if TYPE_CHECKING:
    from webhook.constraint.causes import OnError, OnUndecidable
    from webhook.settings.serve import ServeSettings

OWN_NAMESPACES: Final = ("waddle-system", "gatekeeper-system")
"""Without a cluster nobody says which namespace is ours: both products' own."""

SYSTEM: Final = "kube-system"
"""What a cluster cannot do without."""


def isolation(settings: ServeSettings) -> Isolation:
    """The choices as set."""
    own = (settings.pod.namespace,) if settings.pod.namespace else OWN_NAMESPACES
    return Isolation(
        on_error=cast("OnError", settings.deciding.on_error),
        on_undecidable=cast("OnUndecidable", settings.deciding.on_undecidable),
        error_is_violation=settings.deciding.evaluation_errors == "violation",
        spared_namespaces=frozenset((*own, SYSTEM)),
    )
