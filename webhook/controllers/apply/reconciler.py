"""Hands events of watches to the controllers, and selects the kinds to watch.

There are two registrars of kinds, since one kind may serve both: policy (templates, constraints,
Config, SyncSets, Namespaces) and referential data. Each event is finished before the next one. A
deleted template ends the watch of its constraint kind at once, and drops the queued events of that
kind, so no stale event is applied. As in Gatekeeper, an object with a ``deletionTimestamp`` counts
as deleted, even if a finalizer still keeps it.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

from webhook.api.config import CONFIG, CONFIG_NAME, SYNC_SET
from webhook.api.shapes import Json, is_deleted
from webhook.cluster.kinds import NAMESPACE
from webhook.controllers.apply import sync
from webhook.controllers.apply.sync import SyncController, data_kind
from webhook.controllers.object_faults import TEMPLATES, Follower, ObjectFaults, constraint_kind
from webhook.policy_kinds.known import TEMPLATE, constraint_gvk
from webhook.policy_kinds.table import CONSTRAINT_GROUPS, CONSTRAINTS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from webhook.api.gvk import GroupVersionKind
    from webhook.cluster.store import Key
    from webhook.constraint.client import Client
    from webhook.controllers.apply.extensions import ExtensionController
    from webhook.controllers.apply.policies import PolicyController
    from webhook.readiness import Tracker
    from webhook.watch.queue import Event
    from webhook.watch.registrar import Registrar

NAMESPACES: Final = "Namespace"
"""The Namespaces' name in readiness."""


class _Taker(NamedTuple):
    """Takes the objects of a kind."""

    follower: Follower
    tracked: str
    """The kind's name in readiness."""
    take: Callable[[Key, Json | None], None]
    listed: Callable[[], None]
    take_fault: Callable[[Key, Json, Exception], None] | None = None
    """Reports an unforeseen error of an object in its status; None if the kind has no status."""


def _present(event: Event) -> Json | None:
    """Returns the current object of an event; None if it was deleted, or is being deleted."""
    document = event.object if event.kind == "set" else None
    # A Namespace that ends still has objects, and labels.
    return None if event.gvk != NAMESPACE and is_deleted(document) else document


class Reconciler:
    """Applies events one by one; used by one task, never awaits."""

    def __init__(  # noqa: PLR0913  # the parts it joins
        self,
        client: Client,
        tracker: Tracker,
        policy: PolicyController,
        data: SyncController,
        extension: ExtensionController,
        *,
        namespace: str,
        policy_watches: Registrar,
        data_watches: Registrar,
        object_faults: ObjectFaults | None = None,
    ) -> None:
        """``namespace`` is the namespace of the Config that counts.

        ``object_faults`` takes unforeseen errors of objects.
        """
        self._object_faults = object_faults or ObjectFaults()
        self._tracker = tracker
        self._policy = policy
        self._data = data
        self._extension = extension
        self._namespace = namespace
        self._policy_watches = policy_watches
        self._data_watches = data_watches
        self._config_changed = False
        self._are_templates_known = data.projection is None
        """Whether all templates of the first list are known, which select the kept fields of synced
        objects."""
        expect = tracker.expect
        self._takers: dict[GroupVersionKind, _Taker] = {
            NAMESPACE: _Taker(
                "namespace",
                NAMESPACES,
                lambda key, document: client.set_namespace(key.name, document),
                lambda: expect(NAMESPACES, ()),
            ),
            CONFIG: _Taker(
                "config",
                sync.CONFIG,
                self._take_config,
                lambda: expect(sync.CONFIG, ()),
                self._take_config_fault,
            ),
            SYNC_SET: _Taker(
                "syncset", sync.SYNC_SETS, self._take_sync_set, lambda: expect(sync.SYNC_SETS, ())
            ),
            TEMPLATE: _Taker(
                "template",
                TEMPLATES,
                self._take_template,
                self._take_templates_listed,
                lambda key, *raised: policy.take_fault(TEMPLATES, key.name, *raised),
            ),
            CONSTRAINT_GROUPS.gvk: self._taker_of_constraints(CONSTRAINT_GROUPS.kind),
            **{row.gvk: self._taker_of_extensions(row.name) for row in extension.rows},
        }

    def _taker_of_extensions(self, kind: str) -> _Taker:
        extension = self._extension

        def named(key: Key) -> str:
            return f"{key.namespace}/{key.name}" if key.namespace else key.name

        return _Taker(
            "extension",
            kind,
            lambda key, document: extension.take(kind, named(key), document),
            partial(extension.listed, kind),
            lambda key, *raised: extension.take_fault(kind, named(key), *raised),
        )

    def _taker(self, gvk: GroupVersionKind) -> _Taker | None:
        """Returns the taker of a kind's objects.

        None for a kind that is followed for its data alone.
        """
        if gvk.group != CONSTRAINTS.group:
            return self._takers.get(gvk)
        return self._taker_of_constraints(gvk.kind)

    def _taker_of_constraints(self, kind: str) -> _Taker:
        policy = self._policy
        return _Taker(
            "constraint",
            constraint_kind(kind),
            lambda key, document: policy.constraint(kind, key.name, document),
            partial(policy.listed, kind),
            lambda key, *raised: policy.take_fault(kind, key.name, *raised),
        )

    def begin(self) -> None:
        """Registers the objects that readiness waits for, and the watches of the fixed kinds."""
        for gvk, taker in self._takers.items():
            self._tracker.track(taker.tracked)
            self._policy_watches.add_watch(gvk)

    # --- policy --------------------------------------------------------------------------------

    def take_policy(self, event: Event) -> None:
        """Applies an event of the policy's watches."""
        if event.kind == "synced":
            self._listed(event.gvk)
            return
        key, taker = event.key, self._taker(event.gvk)
        assert key is not None
        assert taker is not None, f"nobody takes {event.gvk}"
        take_fault = partial(self._take_fault, taker, event, key)
        with self._object_faults.object(taker.follower, event.gvk.kind, *key, otherwise=take_fault):
            taker.take(key, _present(event))

    def _take_fault(self, taker: _Taker, event: Event, key: Key, error: Exception) -> None:
        if event.kind != "set" or event.object is None or taker.take_fault is None:
            return
        with self._object_faults.object("status", event.gvk.kind, key.name):
            taker.take_fault(key, event.object, error)

    def _counts(self, key: Key) -> bool:
        """Whether this key is that of the Config that counts."""
        return key == (self._namespace, CONFIG_NAME)

    def _take_config(self, key: Key, document: Json | None) -> None:
        if self._counts(key):
            self._config_changed = True
            self._data.config(document)
            self._follow_data()

    def _take_config_fault(self, key: Key, document: Json, error: Exception) -> None:
        if self._counts(key):
            self._data.take_config_fault(document, error)

    def _take_sync_set(self, key: Key, document: Json | None) -> None:
        self._data.sync_set(key.name, document)
        self._follow_data()

    def _take_template(self, key: Key, document: Json | None) -> None:
        before = self._policy.kind(key.name)
        self._policy.template(key.name, document)
        after = self._policy.kind(key.name)
        if before is not None and before != after:
            self._policy_watches.remove_watch(constraint_gvk(before))
        if after is not None:
            self._policy_watches.add_watch(constraint_gvk(after))

    def _take_templates_listed(self) -> None:
        self._policy.listed(TEMPLATES)
        self._are_templates_known = True
        self._follow_data()

    def absent(self, gvk: GroupVersionKind) -> None:
        """Notes that a watched kind is not served, so that it has no objects."""
        if gvk == TEMPLATE:
            return  # Without templates there is no policy: this is an error, and readiness waits.
        self._listed(gvk)
        if gvk in self._data.kinds:
            # Its absence is no data, but not data in sync: templates that need it stay withheld.
            self._tracker.expect(data_kind(gvk), ())

    def trouble(self, gvk: GroupVersionKind, error: str) -> None:
        """Records the failure of a kind's list or watch; readiness shows it."""
        if (taker := self._taker(gvk)) is not None:
            self._tracker.fail(taker.tracked, "", error)
        self._tracker.fail(data_kind(gvk), "", error)

    def _listed(self, gvk: GroupVersionKind) -> None:
        if (taker := self._taker(gvk)) is not None:
            taker.listed()

    # --- data ----------------------------------------------------------------------------------

    def take_data(self, event: Event) -> None:
        """Applies an event of the referential data's watches."""
        if event.kind == "synced":
            self._data.listed(event.gvk)
            self._policy.synced(self._data.synced)
            self._policy.take_listed()
            return
        assert event.key is not None
        with self._object_faults.object("data", str(event.gvk), *event.key):
            self._data.data(event.gvk, event.key, _present(event))

    def _follow_data(self) -> None:
        if not self._are_templates_known:
            return  # Each template would have a kind listed anew that reads more fields.
        self._data_watches.replace_watch(self._data.kinds)
        self._policy.synced(self._data.synced)
        self._policy.take_listed()

    def look_at_data(self) -> None:
        """See whether more is kept of synced objects than is read, or nothing has to be awaited."""
        if (projection := self._data.projection) is not None:
            if projection.settle():
                self._policy.take_listed()
            self._data.narrow()

    # --- after the changes ---------------------------------------------------------------------

    def published(self) -> bool:
        """Notes that all taken changes are in force; returns whether statuses may have changed."""
        changed, self._config_changed = self._config_changed, False
        extended = self._extension.published()
        return self._policy.published() or extended or changed

    def statuses(self) -> Mapping[str, Json]:
        """Returns the status objects that this replica should have, by name."""
        return {**self._policy.statuses, **self._data.statuses(), **self._extension.statuses}

    @property
    def awaited_kinds(self) -> frozenset[GroupVersionKind]:
        """Returns the constraint kinds whose lists readiness waits for."""
        return frozenset(
            constraint_gvk(kind)
            for kind in self._policy.kinds
            if self._tracker.awaits_list(constraint_kind(kind))
        )
