"""The world of projected data: templates that read one field each of synced objects, which have all.

What holds is what holds of any cluster. More than that, whatever a template in force reads is there in
the very snapshot that it is in force in, of each object and as the API server has had it.
"""

import contextlib
import functools
from collections.abc import Iterator, Mapping
from typing import Any

from tests.simulation.api_server import Json
from tests.simulation.cluster_enforcement import CALM_SECONDS, Enforcement, Key, Replica
from tests.simulation.cluster_users import BRIEF, CONFIG, NAMESPACE, Users
from tests.simulation.cluster_world import ClusterWorld
from tests.simulation.control_plane import CONFIG_MAPS
from tests.simulation.loop import Loop
from tests.simulation.policies import BROKEN, KINDS, new_client, template
from webhook.constraint.drivers.reads import inventory_reads
from webhook.constraint.snapshot import Snapshot
from webhook.constraint.template import Template
from webhook.controllers.apply import projection
from webhook.reads.read_set import ReadSet

FIELDS = tuple(f"{kind.lower()}{variant}" for kind in KINDS for variant in range(BROKEN))
LIST_SECONDS = 20.0
"""In which a kind is listed anew page by page, each page half a second late, perhaps twice."""


def field_of(document: Mapping[str, Any]) -> str:
    """The field that a template in force reads."""
    rego: str = document["spec"]["targets"][0]["rego"]
    return rego.rpartition("spec.")[2].partition(" ")[0]


def reading_template(kind: str, variant: int) -> Json:
    """A template that reads a field of ConfigMaps."""
    made = template(kind, variant)
    if variant != BROKEN:
        (target,) = made["spec"]["targets"]
        target["rego"] += (
            '\nviolation[{"msg": "data"}] { '
            f"data.inventory.namespace[_].v1.ConfigMap[_].spec.{kind.lower()}{variant} < 0 }}"
        )
    return made


@functools.cache
def _read(text: str) -> ReadSet | None:
    return inventory_reads(_templates[text])


_templates: dict[str, Template] = {}


def read_once(of: Template) -> ReadSet | None:
    """Returns the read set of a template, computed once for all worlds."""
    text = repr(of.code[0].source)
    _templates[text] = of
    return _read(text)


@functools.cache
def _prepare() -> None:
    """Compile all templates, before there is a world whose chance it would take."""
    projection.inventory_reads = read_once
    client = new_client()
    for kind in KINDS:
        for variant in range(BROKEN):
            client.add_template(reading_template(kind, variant))
    for of in client.usable_templates:
        if of.code:
            read_once(of)


class ReadUsers(Users):
    """Users who change data as often as policies."""

    def begin(self) -> None:
        """Data is synced from the beginning, in most worlds."""
        super().begin()
        with contextlib.suppress(Exception):  # it may be there already
            served = self.storage.kinds["config.gatekeeper.sh", "configs"]
            self.storage.create(served, NAMESPACE, CONFIG)
        for _ in range(self.chance.randrange(4)):
            self._write_data()

    def template(self, kind: str, variant: int) -> Json:
        """Returns a template that reads data."""
        return reading_template(kind, variant)

    def write(self) -> None:
        """Data, too."""
        if self.chance.random() < 0.4:
            self._write_data()
        super().write()

    def _write_data(self) -> None:
        name, place = f"d{self.chance.randrange(3)}", self.chance.choice([NAMESPACE, BRIEF])
        spec = {name: self.chance.randrange(100) for name in FIELDS}
        with contextlib.suppress(Exception):  # its Namespace may be gone
            self._apply(CONFIG_MAPS, place, {"metadata": {"name": name}, "spec": spec})


class ReadEnforcement(Enforcement):
    """Looks at what templates read in each snapshot, too."""

    def look(self, replica: Replica) -> None:
        """Checks that the data that a template reads are present."""
        revision = replica.serving.revision
        is_new = revision is not None and revision.snapshot is not replica.looked_at
        super().look(replica)
        if is_new and revision is not None:
            for where, name, kept in _data(revision.snapshot):
                self._look_at_data(replica, revision.snapshot, where, name, kept)

    def _look_at_data(
        self, replica: Replica, snapshot: Snapshot, where: str, name: str, kept: Json
    ) -> None:
        held = [one["spec"] for one in self.storage.ever.get((CONFIG_MAPS.kind, where, name), ())]
        for entry in snapshot.entries:
            if not entry.template.code:
                continue
            field = field_of(entry.template.document)
            if not any(one.get(field) == kept.get(field) for one in held):
                self.loop.fail(
                    f"{replica.name} enforces what reads {field}, which {where}/{name} lacks: {kept}"
                )

    def late(self, replica: Replica) -> str:
        """A template that reads more may have to wait for a list."""
        since = self.loop.now() - CALM_SECONDS - LIST_SECONDS
        if not replica.was_ready or self.loop.now() < replica.excused_until + LIST_SECONDS:
            return ""
        return self.gaps(replica, since, since)

    def as_kept(self, held: Mapping[Key, Any], known: Mapping[Key, Any]) -> dict[Key, Any]:
        """No more than is kept."""
        return {
            key: {name: one for name, one in of.items() if name in known[key]}
            if key[0] == CONFIG_MAPS.kind and key in known
            else of
            for key, of in held.items()
        }


def _data(snapshot: Snapshot) -> Iterator[tuple[str, str, Json]]:
    """The ConfigMaps in a snapshot: namespace, name, and what is kept of the spec."""
    for where, kinds in snapshot.inventory.get("namespace", {}).items():
        for name, item in kinds.get("v1", {}).get(CONFIG_MAPS.kind, {}).items():
            yield where, name, item.get("spec", {})


class ProjectedWorld(ClusterWorld):
    """A world with projected data."""

    projects = True

    def __init__(self, loop: Loop) -> None:
        _prepare()
        super().__init__(loop)
        self.users: ReadUsers = ReadUsers(loop.random, self.storage)

    def _watched(self) -> Enforcement:
        return ReadEnforcement(self.loop, self.storage)
