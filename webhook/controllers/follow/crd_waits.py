"""Constraint CRDs that the API server has not established, with the reason.

A new CRD is established within a moment. So a CRD is reported as awaited only after it has been
desired for a while. Other code writes the CRD again and restarts the watch of its kind, each with a
jittered back-off of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Final

from webhook.api.shapes import Json, conditions_of, is_deleted, status_of

WAIT_SECONDS: Final = 5.0
"""An API server establishes a CRD in 0.1 s; one under load or starting up needs some seconds."""


class CrdWaits:
    """Since when each CRD is desired and not established."""

    def __init__(self, clock: Callable[[], float]) -> None:
        """``clock`` gives seconds that never go back."""
        self._clock = clock
        self._since: dict[str, float] = {}

    @property
    def is_waiting(self) -> bool:
        """Whether any was not established at the last look: only then does time change anything."""
        return bool(self._since)

    def look(self, desired: Collection[str], crds: Iterable[Json]) -> Mapping[str, str]:
        """Returns why CRDs that have been desired for a while are not established, by name."""
        existing = {crd["metadata"]["name"]: crd for crd in crds}
        reasons = {name: why_not_established(existing.get(name)) for name in desired}
        now = self._clock()
        self._since = {
            name: self._since.get(name, now) for name, reason in reasons.items() if reason
        }
        return {
            name: reasons[name]
            for name, since in self._since.items()
            if now - since >= WAIT_SECONDS
        }


def why_not_established(crd: Json | None) -> str:
    """Returns why a CRD is not established; empty if it is."""
    if crd is None:
        return "there is no such CRD: no replica with --operation=generate has made it"
    if is_deleted(crd):
        return "the CRD is being deleted, and every constraint of its kind with it"
    conditions = {item["type"]: item for item in conditions_of(status_of(crd))}
    if conditions.get("Established", {}).get("status") == "True":
        return ""
    for name in ("NamesAccepted", "Established"):
        condition = conditions.get(name, {})
        if condition.get("status") == "False":
            return str(condition.get("message") or condition.get("reason") or "not established")
    return "the API server has not established it yet"
