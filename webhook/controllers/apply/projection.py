"""Selects the fields of synced objects to keep: the fields that policies in force read.

If a template reads more fields than are kept, the objects of the kind are listed anew. Until the
list is complete, the template is withheld and its previous version stays in force. Fields that no
policy reads any more are dropped after a while, without a list (docs/adr/0057).
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final

from webhook.constraint.drivers.reads import inventory_reads
from webhook.constraint.errors import InvalidTemplate
from webhook.constraint.template import Template, read_template
from webhook.reads.read_set import WHOLE, ReadSet
from webhook.reads.storage import NOTHING, SharedValues, covers, keeping, of_kind, reads_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from webhook.api.gvk import GroupVersionKind
    from webhook.constraint.client import Client
    from webhook.reads.projection import Projection
    from webhook.watch.registrar import Registrar

NARROW_SECONDS: Final = 60.0
"""How long unused fields are kept, since a deleted template may be created again."""

LOOK_SECONDS: Final = 10.0
"""Between two looks whether less is read."""

IDENTITY: Final = reads_of(
    [
        ("apiVersion",),
        ("kind",),
        *(
            ("metadata", name)
            for name in ("name", "namespace", "uid", "resourceVersion", "deletionTimestamp")
        ),
    ]
)
"""The fields needed to follow an object, which are always kept."""


class _Kind:
    """The fields of one kind's objects that are kept."""

    def __init__(self, reads: ReadSet) -> None:
        self.held = reads
        """The fields that every object held has, so policies can see them."""
        self.coming = reads
        """The fields that each object will have after the current list; at least the held ones."""
        self.keep: Projection = keeping(reads)
        self.shared = SharedValues()
        self.narrower_since: float | None = None

    @property
    def is_settled(self) -> bool:
        """Whether no list is awaited."""
        return self.held is self.coming


class SyncProjection:
    """Tracks the kept fields of each synced kind, and the templates that wait for more.

    Used by one task.
    """

    def __init__(self, client: Client, watches: Registrar) -> None:
        self._client = client
        self._watches = watches
        self.has_objects: Callable[[GroupVersionKind], bool] = lambda _: True
        """Whether policies can see objects of a kind."""
        self._kinds: dict[GroupVersionKind, _Kind] = {}
        self._waiting: dict[str, ReadSet] = {}
        """The fields that withheld templates read, by template: each waits until they are held."""
        self._read: dict[str, list[tuple[Template, ReadSet | None]]] = {}
        """The fields that the last two revisions of each template read, by template; None for code
        that cannot be analysed."""
        self._looked_at = time.monotonic()

    # --- kinds ---------------------------------------------------------------------------------

    def follow(self, gvk: GroupVersionKind) -> None:
        """Begins to keep objects of a kind; does nothing if the kind is kept already."""
        if gvk not in self._kinds:
            self._kinds[gvk] = kind = _Kind(self._needed(gvk))
            self._project(gvk, kind)

    def forget(self, gvk: GroupVersionKind) -> None:
        """Stops keeping objects of a kind."""
        self._kinds.pop(gvk, None)

    def listed(self, gvk: GroupVersionKind) -> None:
        """Notes that all objects of a kind have been listed with the latest projection."""
        if (kind := self._kinds.get(gvk)) is not None:
            kind.held = kind.coming

    def kept(self, gvk: GroupVersionKind, document: Mapping[str, Any]) -> tuple[Any, int]:
        """Returns the kept fields of an object, and their length as JSON, in bytes."""
        kind = self._kinds[gvk]
        return kind.shared.shared(kind.keep(document))

    @property
    def paths(self) -> dict[GroupVersionKind, ReadSet]:
        """Returns the kept fields of each kind, without those that identify an object."""
        return {gvk: kind.coming for gvk, kind in sorted(self._kinds.items())}

    def _needed(self, gvk: GroupVersionKind) -> ReadSet:
        """Returns the fields of a kind that usable and waiting templates read."""
        needed = NOTHING
        for template in self._client.usable_templates:
            needed = needed | of_kind(
                self._reads(template, is_usable=True), gvk.group_version, gvk.kind
            )
        for reads in self._waiting.values():
            needed = needed | of_kind(reads, gvk.group_version, gvk.kind)
        return needed

    def _project(self, gvk: GroupVersionKind, kind: _Kind, *, is_narrower: bool = False) -> None:
        kind.keep = keeping(kind.coming)
        projection = None if kind.coming.whole else keeping(kind.coming | IDENTITY)
        self._watches.project(gvk, projection, is_narrower=is_narrower)

    # --- templates -----------------------------------------------------------------------------

    def awaited(
        self, document: Mapping[str, Any], *, is_usable: bool = False, is_withheld: bool = False
    ) -> tuple[frozenset[GroupVersionKind], ...]:
        """Returns the kinds with too few kept fields for a template; they are listed anew.

        Each kind is a requirement of its own. A usable template (``is_usable``) that cannot be
        analysed counts as reading everything. A withheld template (``is_withheld``) waits for kinds
        that are not followed yet: once they are, its fields are kept from the first list on.
        """
        if not self._kinds and not is_withheld:
            return ()
        try:
            template = read_template(document)
        except InvalidTemplate:
            return ()
        reads = self._reads(template, is_usable=is_usable)
        self._waiting.pop(template.name, None)
        self._waiting[template.name] = reads
        missing = [gvk for gvk in sorted(self._kinds) if not self._has(gvk, reads)]
        if not missing and not is_withheld:
            del self._waiting[template.name]
        return tuple(frozenset({gvk}) for gvk in missing)

    def drop(self, name: str) -> None:
        """Forgets a deleted template."""
        self._waiting.pop(name, None)
        self._read.pop(name, None)

    @property
    def waiting(self) -> tuple[str, ...]:
        """The templates that wait for more of some kind."""
        return tuple(self._waiting)

    def _reads(self, template: Template, *, is_usable: bool) -> ReadSet:
        known = self._read.setdefault(template.name, [])
        parts = template.parts
        pair = next((entry for entry in known if entry[0].parts == parts), None)
        if pair is None:
            pair = template, inventory_reads(template)
            known[:] = [*known[-1:], pair]
        _, reads = pair
        if reads is None:
            return WHOLE if is_usable else NOTHING
        return reads

    def _has(self, gvk: GroupVersionKind, reads: ReadSet) -> bool:
        """Whether the fields that a template reads of a kind are held; if not, they will be."""
        kind = self._kinds[gvk]
        needed = of_kind(reads, gvk.group_version, gvk.kind)
        if not covers(kind.coming, needed):
            kind.coming = kind.coming | self._needed(gvk)
            self._project(gvk, kind)
        if not kind.is_settled and not self.has_objects(gvk):
            kind.held = kind.coming
        return covers(kind.held, needed)

    # --- changes over time ---------------------------------------------------------------------

    def settle(self) -> bool:
        """Returns whether an awaited kind has no objects left, so that it is no longer awaited."""
        settled = False
        for gvk, kind in self._kinds.items():
            if not kind.is_settled and not self.has_objects(gvk):
                kind.held, settled = kind.coming, True
        return settled

    def narrow(self) -> Iterator[GroupVersionKind]:
        """Yields the kinds with fewer fields from now on, whose kept objects must be rebuilt."""
        now = time.monotonic()
        if now - self._looked_at < LOOK_SECONDS:
            return
        self._looked_at = now
        for gvk, kind in self._kinds.items():
            needed = self._needed(gvk)
            if not kind.is_settled or covers(needed, kind.held):
                kind.narrower_since = None
            elif kind.narrower_since is None:
                kind.narrower_since = now
            elif now - kind.narrower_since >= NARROW_SECONDS:
                kind.narrower_since = None
                kind.held = kind.coming = needed
                self._project(gvk, kind, is_narrower=True)
                yield gvk
