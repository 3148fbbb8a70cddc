"""A party that wants kinds, and what it hears about them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeAlias

from webhook.watch.queue import Event, EventQueue

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from webhook.api.gvk import GroupVersionKind
    from webhook.cluster.store import Object

Transform: TypeAlias = "Callable[[Object], Object]"
"""Takes an object and returns what of it is kept."""


class Watches(Protocol):
    """Watches kinds for registrars: the manager."""

    def joined(self, registrar: Registrar, gvk: GroupVersionKind) -> None:
        """A registrar wants a kind."""

    def left(self, registrar: Registrar, gvk: GroupVersionKind) -> None:
        """A registrar wants a kind no more."""

    def projected(self, registrar: Registrar, gvk: GroupVersionKind, *, is_narrower: bool) -> None:
        """A registrar keeps other parts of a kind's objects."""


class Registrar:
    """One consumer's intents; made by :meth:`~webhook.watch.manager.Manager.registrar`.

    :meth:`next` gives its events one by one. Intents take effect at once: what is
    known of a kind that others watch already is replayed from the store.
    """

    def __init__(self, name: str, manager: Watches) -> None:
        self.name = name
        self.queue = EventQueue()
        self._manager = manager
        self._requested: set[GroupVersionKind] = set()
        self.projections: dict[GroupVersionKind, Transform] = {}
        """What this registrar keeps of objects of a kind; all of those that are not named."""

    @property
    def requested(self) -> frozenset[GroupVersionKind]:
        """The kinds that this registrar wants."""
        return frozenset(self._requested)

    async def next(self) -> Event:
        """The next event."""
        return await self.queue.get()

    def add_watch(self, gvk: GroupVersionKind) -> None:
        """Want a kind, too. Wanting it again changes nothing."""
        if gvk not in self._requested:
            self._requested.add(gvk)
            self._manager.joined(self, gvk)

    def remove_watch(self, gvk: GroupVersionKind) -> None:
        """Want a kind no more. Nothing is told of it any more, not that its objects are gone."""
        if gvk in self._requested:
            self._requested.remove(gvk)
            self.queue.forget(gvk)
            self.projections.pop(gvk, None)
            self._manager.left(self, gvk)

    def project(
        self, gvk: GroupVersionKind, projection: Transform | None, *, is_narrower: bool = False
    ) -> None:
        """Hear no more of a kind's objects than a projection keeps; None for all of them.

        The projection keeps what identifies an object. Unless it ``is_narrower`` than the one before,
        all objects are listed and told anew, and "synced" comes after them: no state that comes after
        this call was made by another projection. Where others want the kind, objects stay whole.
        """
        if projection is None:
            self.projections.pop(gvk, None)
        else:
            self.projections[gvk] = projection
        if gvk in self._requested:
            self._manager.projected(self, gvk, is_narrower=is_narrower)

    def replace_watch(self, gvks: Iterable[GroupVersionKind]) -> None:
        """Want exactly these kinds."""
        kinds = set(gvks)
        for gvk in self._requested - kinds:
            self.remove_watch(gvk)
        for gvk in sorted(kinds - self._requested):
            self.add_watch(gvk)
