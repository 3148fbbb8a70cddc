"""An object as it is now: which one, and why it cannot be had."""

from __future__ import annotations

from typing import TYPE_CHECKING

from webhook.values import dataclass

if TYPE_CHECKING:
    from webhook.api.gvk import GroupVersionKind


class NotReadable(Exception):
    """An object cannot be had; the text says why."""


@dataclass(frozen=True, slots=True)
class NamedObject:
    """Which object of which kind."""

    gvk: GroupVersionKind
    namespace: str
    name: str
