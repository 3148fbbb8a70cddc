"""A consumer of kinds, and the events that it receives."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from webhook.watch.queue import Event, EventQueue

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from webhook.api.gvk import GroupVersionKind
    from webhook.cluster.store import Object
    from webhook.watch.manager import Manager

Transform: TypeAlias = "Callable[[Object], Object]"
"""Takes an object and returns the fields to keep."""


class Registrar:
    """One consumer's intents; made by :meth:`~webhook.watch.manager.Manager.registrar`.

    :meth:`next` returns its events one by one. Intents take effect at once: the known objects of an
    already watched kind are replayed from the store.
    """

    def __init__(self, name: str, manager: Manager) -> None:
        self.name = name
        self.queue = EventQueue()
        self._manager = manager
        self._requested: set[GroupVersionKind] = set()
        self.projections: dict[GroupVersionKind, Transform] = {}
        """The fields of each kind's objects that this registrar keeps; whole objects for other
        kinds."""

    async def next(self) -> Event:
        """Returns the next event."""
        return await self.queue.get()

    def add_watch(self, gvk: GroupVersionKind) -> None:
        """Requests a kind. A repeated request changes nothing."""
        if gvk not in self._requested:
            self._requested.add(gvk)
            self._manager.joined(self, gvk)

    def remove_watch(self, gvk: GroupVersionKind) -> None:
        """Ends the interest in a kind. No more events follow, not even deletions."""
        if gvk in self._requested:
            self._requested.remove(gvk)
            self.queue.forget(gvk)
            self.projections.pop(gvk, None)
            self._manager.left(self, gvk)

    def project(
        self, gvk: GroupVersionKind, projection: Transform | None, *, is_narrower: bool = False
    ) -> None:
        """Limits a kind's objects to the fields that a projection keeps; None for all.

        The projection keeps the fields that identify an object. Unless it ``is_narrower`` than the
        one before, all objects are listed and delivered anew, followed by "synced". No state after
        this call is made by another projection. If other registrars have the kind, objects stay
        whole.
        """
        if projection is None:
            self.projections.pop(gvk, None)
        else:
            self.projections[gvk] = projection
        if gvk in self._requested:
            self._manager.projected(self, gvk, is_narrower=is_narrower)

    def replace_watch(self, gvks: Iterable[GroupVersionKind]) -> None:
        """Requests exactly these kinds."""
        kinds = set(gvks)
        for gvk in self._requested - kinds:
            self.remove_watch(gvk)
        for gvk in sorted(kinds - self._requested):
            self.add_watch(gvk)
