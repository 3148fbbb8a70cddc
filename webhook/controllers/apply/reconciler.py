"""Events of the watches, handed to the controllers; and which kinds are to be watched.

Two parties want kinds: one for policy (templates, their constraints, Config,
SyncSets, Namespaces), one for referential data, since a kind may be both. Each
event is taken to its end before the next is looked at: a template that goes
takes its kind's watch with it at once, and with that every event of it that
still waits, so that nothing stale is ever applied. As in Gatekeeper, an object
with a ``deletionTimestamp`` is gone, whatever finalizer still keeps it.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final, Protocol

from webhook.api.config import CONFIG, CONFIG_NAME, SYNC_SET
from webhook.api.shapes import is_deleted
from webhook.cluster.kinds import NAMESPACE
from webhook.constraint import constraint
from webhook.controllers import kinds
from webhook.controllers.apply import sync
from webhook.controllers.apply.sync import data_kind
from webhook.controllers.kinds import TEMPLATE, constraint_gvk
from webhook.controllers.object_faults import ObjectFaults
from webhook.controllers.policy_keys import TEMPLATES, constraint_kind

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from webhook.api.gvk import GroupVersionKind
    from webhook.api.shapes import Json
    from webhook.cluster.store import Key
    from webhook.constraint.client import Client
    from webhook.controllers.apply.extensions import ExtensionController
    from webhook.controllers.apply.policies import PolicyController
    from webhook.controllers.apply.sync import SyncController
    from webhook.controllers.object_faults import Follower
    from webhook.readiness import Tracker
    from webhook.watch.queue import Event

NAMESPACES: Final = "Namespace"
"""The Namespaces' name in readiness."""


_FOLLOWERS: Final[dict[GroupVersionKind, Follower]] = {
    TEMPLATE: "template",
    NAMESPACE: "namespace",
    CONFIG: "config",
    SYNC_SET: "syncset",
    **dict.fromkeys(kinds.EXTENSIONS, "extension"),
}


class Intents(Protocol):
    """Where the wish for a kind is put down (a registrar of :mod:`webhook.watch`)."""

    def add_watch(self, gvk: GroupVersionKind) -> None:
        """Want a kind, too."""

    def remove_watch(self, gvk: GroupVersionKind) -> None:
        """Want a kind no more."""

    def replace_watch(self, gvks: Iterable[GroupVersionKind]) -> None:
        """Want exactly these kinds."""


class Reconciler:
    """Takes events one by one, on one task's behalf; awaits nothing."""

    def __init__(  # noqa: PLR0913  # the parts it joins
        self,
        client: Client,
        tracker: Tracker,
        policy: PolicyController,
        data: SyncController,
        extension: ExtensionController,
        *,
        namespace: str,
        policy_watches: Intents,
        data_watches: Intents,
        object_faults: ObjectFaults | None = None,
    ) -> None:
        """``namespace`` is the one whose Config counts.

        ``object_faults`` takes what an object raises that nobody foresaw.
        """
        self._object_faults = object_faults or ObjectFaults()
        self._client = client
        self._tracker = tracker
        self._policy = policy
        self._data = data
        self._extension = extension
        self._namespace = namespace
        self._policy_watches = policy_watches
        self._data_watches = data_watches
        self._config_changed = False

    def begin(self) -> None:
        """Say what is awaited, and want the kinds that are always wanted."""
        for kind in (TEMPLATES, sync.CONFIG, sync.SYNC_SETS, NAMESPACES):
            self._tracker.track(kind)
        for gvk in (NAMESPACE, CONFIG, SYNC_SET, TEMPLATE):
            self._policy_watches.add_watch(gvk)
        self._extension.begin()
        for gvk in kinds.EXTENSIONS:
            self._policy_watches.add_watch(gvk)

    # --- policy --------------------------------------------------------------------------------

    def take_policy(self, event: Event) -> None:
        """Apply an event of the policy's watches."""
        if event.kind == "synced":
            self._listed(event.gvk)
            return
        assert event.key is not None
        follower = _FOLLOWERS.get(event.gvk, "constraint")
        spoil = partial(self._spoil, event, event.key.name)
        with self._object_faults.object(follower, event.gvk.kind, *event.key, otherwise=spoil):
            self._take_object(event, event.key)

    def _spoil(self, event: Event, name: str, error: Exception) -> None:
        """Taking an object raised what nobody foresaw: its status says so, if its kind has one."""
        gvk, document = event.gvk, event.object
        if event.kind != "set" or document is None or gvk in (NAMESPACE, SYNC_SET):
            return
        with self._object_faults.object("status", gvk.kind, name):
            if gvk == CONFIG:
                if event.key == (self._namespace, CONFIG_NAME):
                    self._data.spoil_config(document, error)
            elif gvk in kinds.EXTENSIONS:
                self._extension.spoil(gvk.kind, name, document, error)
            else:
                group = TEMPLATES if gvk == TEMPLATE else gvk.kind
                self._policy.spoil(group, name, document, error)

    def _take_object(self, event: Event, key: Key) -> None:
        name = key.name
        document = event.object if event.kind == "set" else None
        if event.gvk != NAMESPACE and is_deleted(document):
            document = None
        if event.gvk == TEMPLATE:
            self._template(name, document)
        elif event.gvk == NAMESPACE:
            self._client.set_namespace(name, document)
        elif event.gvk == CONFIG:
            if key == (self._namespace, CONFIG_NAME):
                self._config_changed = True
                self._data.config(document)
                self._follow_data()
        elif event.gvk == SYNC_SET:
            self._data.sync_set(name, document)
            self._follow_data()
        elif event.gvk in kinds.EXTENSIONS:
            self._extension.take(event.gvk.kind, name, document)
        else:
            self._policy.constraint(event.gvk.kind, name, document)

    def absent(self, gvk: GroupVersionKind) -> None:
        """A wanted kind is not served, and for certain there is no object of it."""
        if gvk == TEMPLATE:
            return  # Without templates there is no policy: this is an error to be waited out.
        self._listed(gvk)
        if gvk in self._data.kinds:
            # Its absence is no data, but not data in sync: templates that need it stay withheld.
            self._tracker.expect(data_kind(gvk), ())

    def trouble(self, gvk: GroupVersionKind, error: str) -> None:
        """A kind's list or watch failed: whoever asks what is awaited is told so."""
        names = {TEMPLATE: TEMPLATES, CONFIG: sync.CONFIG, SYNC_SET: sync.SYNC_SETS}
        names[NAMESPACE] = NAMESPACES
        names |= {item: item.kind for item in kinds.EXTENSIONS}
        if gvk.group == constraint.GROUP:
            names[gvk] = constraint_kind(gvk.kind)
        if gvk in names:
            self._tracker.fail(names[gvk], "", error)
        self._tracker.fail(data_kind(gvk), "", error)

    def _listed(self, gvk: GroupVersionKind) -> None:
        if gvk == TEMPLATE:
            self._policy.listed(TEMPLATES)
        elif gvk == CONFIG:
            self._tracker.expect(sync.CONFIG, ())
        elif gvk == SYNC_SET:
            self._tracker.expect(sync.SYNC_SETS, ())
        elif gvk == NAMESPACE:
            self._tracker.expect(NAMESPACES, ())
        elif gvk in kinds.EXTENSIONS:
            self._extension.listed(gvk)
        elif gvk.group == constraint.GROUP:
            self._policy.listed(gvk.kind)

    def _template(self, name: str, document: Mapping[str, object] | None) -> None:
        before = self._policy.kind(name)
        self._policy.template(name, document)
        after = self._policy.kind(name)
        if before is not None and before != after:
            self._policy_watches.remove_watch(constraint_gvk(before))
        if after is not None:
            self._policy_watches.add_watch(constraint_gvk(after))

    # --- data ----------------------------------------------------------------------------------

    def take_data(self, event: Event) -> None:
        """Apply an event of the referential data's watches."""
        if event.kind == "synced":
            self._data.listed(event.gvk)
            self._policy.synced(self._data.synced)
            return
        assert event.key is not None
        document = event.object if event.kind == "set" else None
        if is_deleted(document):
            document = None
        with self._object_faults.object("data", str(event.gvk), *event.key):
            self._data.data(event.gvk, event.key, document)

    def _follow_data(self) -> None:
        self._data_watches.replace_watch(self._data.kinds)
        self._policy.synced(self._data.synced)

    # --- what follows --------------------------------------------------------------------------

    def published(self) -> bool:
        """The snapshot with everything taken so far answers admissions now.

        Whether statuses may have changed.
        """
        changed, self._config_changed = self._config_changed, False
        extended = self._extension.published()
        return self._policy.published() or extended or changed

    def statuses(self) -> Mapping[str, Json]:
        """The status objects that this replica should have, by name."""
        return {**self._policy.statuses, **self._data.statuses(), **self._extension.statuses}

    @property
    def awaited_kinds(self) -> frozenset[GroupVersionKind]:
        """The constraint kinds whose lists readiness waits for."""
        return frozenset(
            constraint_gvk(kind)
            for kind in self._policy.kinds
            if self._tracker.awaits_list(constraint_kind(kind))
        )
