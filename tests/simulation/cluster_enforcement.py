"""Replicas enforce all and only objects that the API server has held, in time."""

import dataclasses
from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

from tests.simulation.api_server import NAMESPACES, Happened, Json, Storage
from tests.simulation.control_plane import CONFIG_MAPS, TEMPLATES
from tests.simulation.loop import Loop
from tests.simulation.policies import is_broken
from tests.simulation.process import Process
from webhook.api.names import OURS
from webhook.constraint.group import TEMPLATE as GROUPS
from webhook.constraint.snapshot import Snapshot
from webhook.metrics.registry import Registry
from webhook.serving.revision import Serving

CALM_SECONDS = 10.0
"""In which a replica that nothing befalls enforces what is new: events and answers half a second
late each, of which a kind that begins needs a few in a row, and the second after which it is looked
for again."""

RETRIES_SECONDS = 30.0 + CALM_SECONDS
"""The same from when all is well again after something failed: the longest back-off, and what
follows."""

SILENCE_SECONDS = 90.0 + RETRIES_SECONDS
"""The same from when a connection went silent: until that is found out, and what follows."""

CONSTRAINTS = "constraints.gatekeeper.sh"
FOLLOWED = (TEMPLATES, NAMESPACES, CONFIG_MAPS)

Key = tuple[str, str]
"""Kind and name."""


@dataclasses.dataclass
class Replica:
    """A replica: its Pod, its process, and the policies that it serves."""

    name: str
    uid: str
    process: Process
    serving: Serving
    registry: Registry
    began: float
    state: str = "begins"
    """The reason why it is not ready."""
    was_ready: bool = False
    excused_until: float = 0.0
    """When at the latest it has made up for what befell it."""
    enforced: dict["Key", tuple[str, int]] = dataclasses.field(default_factory=dict)
    """The last state seen in force of each object, by its UID and generation."""
    owners: dict[tuple[str, ...], str] = dataclasses.field(default_factory=dict)
    """UIDs in force at the last look: a template's, or a constraint's with its template's."""
    looked_at: Snapshot | None = None
    seen: dict[str, Any] = dataclasses.field(default_factory=dict)
    """Other state at the last look."""


class Enforcement:
    """Looks at each snapshot that replicas put into force, and at what is missing there."""

    def __init__(self, loop: Loop, storage: Storage) -> None:
        self.loop = loop
        self.storage = storage
        self.changed: dict[Key, float] = defaultdict(float)
        """When what replicas follow last changed, came or went, by kind and name."""
        self.unordered_until = 0.0
        """Until then an older state may follow a newer one: etcd was restored."""
        storage.listeners.append(self._happened)

    def restored(self, until: float) -> None:
        """The storage holds what it held earlier; replicas know that by so late."""
        self.unordered_until = until
        for key in [*self.changed, *dict(self.held())]:
            self.changed[key] = self.loop.now()

    def _happened(self, change: Happened) -> None:
        served, before, after = change.served, change.before, change.after
        if served not in FOLLOWED and served.group not in (CONSTRAINTS, OURS):
            return
        if before is None or after is None or before.get("spec") != after.get("spec"):
            item = after or before
            assert item is not None
            metadata = item["metadata"]
            place = (
                (metadata["namespace"], metadata["name"])
                if served.namespaced
                else (metadata["name"],)
            )
            self.changed[served.kind, "/".join(place)] = self.loop.now()

    # --- each snapshot -------------------------------------------------------------------------

    def set_state(self, replica: Replica, state: str) -> None:
        """A replica says whether it is ready."""
        replica.state = state
        self.look(replica)
        if not state and not replica.was_ready:
            replica.was_ready = True
            if why := self.gaps(replica, replica.began, replica.began):
                self.loop.fail(f"ready at its first word, and yet {why}")

    def look(self, replica: Replica) -> None:
        """Checks the policies in force: only the API server's states, none older, none lost."""
        revision = replica.serving.revision
        if revision is None or revision.snapshot is replica.looked_at:
            return
        snapshot = replica.looked_at = revision.snapshot
        for item in snapshot.constraints:
            self._look_at(replica, item.kind, item.name, item.document)
        for entry in snapshot.entries:
            template = entry.template
            if template is GROUPS:
                continue
            self._look_at(replica, TEMPLATES.kind, template.name, template.document)
        self._look_for_losses(replica, snapshot)

    def _look_at(self, replica: Replica, kind: str, name: str, document: Mapping[str, Any]) -> None:
        """An object in force is one that there was, and was good, and none before the last one."""
        metadata, spec = document["metadata"], document["spec"]
        version = metadata["uid"], metadata["generation"]  # UIDs are counted
        title = f"{kind} {name}"
        held = self.storage.ever.get((kind, "", name), ())
        if not any(_version(one) == version and one["spec"] == spec for one in held):
            self.loop.fail(f"{replica.name} enforces {title} as it never was: {spec}")
        if is_broken(spec):
            self.loop.fail(f"{replica.name} enforces {title} though it is broken")
        last = replica.enforced.get((kind, name), version)
        if version < last and self.loop.now() > self.unordered_until:
            self.loop.fail(f"{replica.name} enforces {title} of {version} after {last}")
        replica.enforced[kind, name] = version

    def _look_for_losses(self, replica: Replica, snapshot: Snapshot) -> None:
        """Checks that objects in force stay in force until they or their template are deleted."""
        before, owners = replica.owners, {}
        for entry in snapshot.entries:
            if entry.template is GROUPS:
                continue  # what is lost of them is what their members lost
            uid = entry.template.document["metadata"]["uid"]
            owners[uid,] = entry.template.name
            for item in entry.constraints:
                owners[uid, item.document["metadata"]["uid"]] = f"{item.kind} {item.name}"
        replica.owners = owners
        lost = before.keys() - owners.keys()
        if lost:
            there = {item["metadata"]["uid"] for _, item in self.held()}
            for uids in sorted(lost):
                if there.issuperset(uids):
                    self.loop.fail(f"{replica.name} enforces {before[uids]} no more")

    # --- what is missing -----------------------------------------------------------------------

    def held(self) -> Iterator[tuple[Key, Json]]:
        """Templates and constraints as the API server holds them, by kind and name."""
        for (_, name), item in self.storage.items(TEMPLATES).items():
            yield (TEMPLATES.kind, name), item
        for (group, _), served in self.storage.kinds.items():
            if group == CONSTRAINTS:
                for (_, name), item in self.storage.items(served).items():
                    yield (served.kind, name), item

    def late(self, replica: Replica) -> str:
        """Returns the changes that a ready replica should have enforced by now."""
        now = self.loop.now()
        if not replica.was_ready or now < replica.excused_until:
            return ""
        since = now - CALM_SECONDS
        return (
            f"for {CALM_SECONDS:.0f} seconds {why}"
            if (why := self.gaps(replica, since, since))
            else ""
        )

    def gaps(self, replica: Replica, unchanged_since: float, gone_since: float) -> str:
        """Returns an error if a sound object is not in force in time, or a deleted one is."""
        revision = replica.serving.revision
        if revision is None:
            return f"{replica.name} serves nothing"
        snapshot = revision.snapshot
        serves: dict[Key, Json] = {
            (item.kind, item.name): item.document for item in snapshot.constraints
        }
        for entry in snapshot.entries:
            if entry.template is not GROUPS:
                serves[TEMPLATES.kind, entry.template.name] = dict(entry.template.document)
        held = dict(self.held())
        for key, item in held.items():
            template = (TEMPLATES.kind, key[0].lower()) if key[0] != TEMPLATES.kind else key
            if template not in held or is_broken(held[template]["spec"]):
                continue
            changed = max(self.changed[key], self.changed[template])
            if is_broken(item["spec"]) or changed > unchanged_since:
                continue
            if key not in serves:
                return f"{replica.name} does not enforce {key}"
            if serves[key]["spec"] != item["spec"]:
                return f"{replica.name} enforces an old {key}: {serves[key]['spec']}"
        for key in serves.keys() - held.keys():
            if self.changed[key] <= gone_since:
                return f"{replica.name} enforces {key}, which is gone"
        return self._unknown(replica, snapshot, unchanged_since, gone_since)

    def _unknown(
        self, replica: Replica, snapshot: Snapshot, unchanged_since: float, gone_since: float
    ) -> str:
        """Returns the Namespaces and data in which a snapshot differs from the API server."""
        held: dict[Key, Any] = {
            (NAMESPACES.kind, name): item["metadata"]["uid"]
            for (_, name), item in self.storage.items(NAMESPACES).items()
        }
        known: dict[Key, Any] = {
            (NAMESPACES.kind, name): item["metadata"]["uid"]
            for name, item in snapshot.namespaces.items()
        }
        if self.storage.items(self.storage.kinds["config.gatekeeper.sh", "configs"]):
            for place, item in self.storage.items(CONFIG_MAPS).items():
                held[CONFIG_MAPS.kind, "/".join(place)] = item["spec"]
        for namespace, kinds in snapshot.inventory.get("namespace", {}).items():
            for name, item in kinds.get("v1", {}).get(CONFIG_MAPS.kind, {}).items():
                known[CONFIG_MAPS.kind, f"{namespace}/{name}"] = item.get("spec", {})
        held = self.as_kept(held, known)
        for key in held.keys() | known.keys():
            limit = unchanged_since if key in held else gone_since
            if held.get(key) != known.get(key) and self.changed[key] <= limit:
                return f"{replica.name} is wrong about {key}: {known.get(key)}"
        return ""

    def as_kept(self, held: Mapping[Key, Any], known: Mapping[Key, Any]) -> dict[Key, Any]:
        """Returns the API server's objects as replicas keep them; ``known`` are a replica's."""
        del known
        return dict(held)


def _version(item: Mapping[str, Any]) -> tuple[str, int]:
    """An object's state, by its UID and generation."""
    return item["metadata"]["uid"], item["metadata"]["generation"]
