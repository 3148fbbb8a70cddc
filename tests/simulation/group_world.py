"""The world of groups: policies of several policies, whose members come, change, break and go.

What holds is what holds of any cluster. More than that, a group that is enforced asks those very
evaluators, parameters and constraints that the replica enforces itself; one of which a member is
not there is not enforced, and says so; and once a member is there again, the group is, too.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from tests.simulation.api_server import Json, Refusal
from tests.simulation.cluster_enforcement import Enforcement, Key, Replica
from tests.simulation.cluster_users import Users
from tests.simulation.cluster_world import ClusterWorld
from tests.simulation.control_plane import TEMPLATES
from tests.simulation.loop import Loop
from tests.simulation.policies import BROKEN, KINDS, constraint, is_broken
from webhook.api.names import CONSTRAINT_GROUP, OURS
from webhook.constraint.snapshot import Snapshot

PLACE = OURS, "constraintgroups"
NAMES = ("g0", "g1")


def group(name: str, variant: int) -> Json:
    """A group of a template and of a constraint; the last variant cannot be used."""
    made = constraint(CONSTRAINT_GROUP, name, variant)
    spec = made["spec"]
    del spec["parameters"]
    spec["members"] = {
        "own": {"kind": KINDS[0], "parameters": {"word": str(variant)}},
        "other": {"constraint": {"kind": KINDS[variant % 2], "name": f"c{variant % 2}"}},
    }
    spec["expression"] = "own() || other()" if variant else "own() && !other()"
    return made | {"apiVersion": f"{OURS}/v1alpha1"}


class GroupUsers(Users):
    """Users who also write groups, and mostly create their members."""

    def begin(self) -> None:
        """Groups may be there before anything that they name."""
        for name in NAMES:
            if self.chance.random() < 0.7:
                served = self.storage.kinds[PLACE]
                self.storage.create(served, "", group(name, self.chance.randrange(BROKEN)))
        super().begin()

    def _write_policy(self) -> None:
        if self.chance.random() < 0.6:
            super()._write_policy()
            return
        name, served = self.chance.choice(NAMES), self.storage.kinds[PLACE]
        if self.chance.random() < 0.2:
            self.storage.delete(served, "", name)
        else:
            variant = BROKEN if self.chance.random() < 0.15 else self.chance.randrange(BROKEN)
            self._apply(served, "", group(name, variant))

    def give_members(self) -> None:
        """Creates the members that groups name."""
        for kind in KINDS:
            try:
                self._apply(TEMPLATES, "", self.template(kind, 0))
                served = self.storage.kinds.get(("constraints.gatekeeper.sh", kind.lower()))
                if served is not None:
                    for name in ("c0", "c1"):
                        self._apply(served, "", constraint(kind, name, 1))
            except Refusal:
                continue


class GroupEnforcement(Enforcement):
    """Looks at groups' members, too."""

    def held(self) -> Iterator[tuple[Key, Json]]:
        """With groups, which come last: their members are among the others."""
        yield from super().held()
        for (_, name), item in self.storage.items(self.storage.kinds[PLACE]).items():
            yield (CONSTRAINT_GROUP, name), item

    def look(self, replica: Replica) -> None:
        """Checks that a replica enforces the constraints of a group."""
        revision = replica.serving.revision
        is_new = revision is not None and revision.snapshot is not replica.looked_at
        super().look(replica)
        if is_new and revision is not None:
            for one in revision.snapshot.constraints:
                if one.kind == CONSTRAINT_GROUP:
                    self._look_at_members(replica, revision.snapshot, one)

    def _look_at_members(self, replica: Replica, snapshot: Snapshot, one: Any) -> None:
        entries = {entry.template.kind: entry for entry in snapshot.entries}
        for name, member in one.parameters.members.items():
            title = f"{replica.name} asks for member {name} of {one.name}"
            entry = entries.get(member.kind)
            if entry is None:
                self.loop.fail(f"{title} a template that it does not enforce")
            elif member.evaluator is not entry.evaluator:
                self.loop.fail(f"{title} another template than it enforces")
            elif member.name:
                known = [item for item in entry.constraints if item.name == member.name]
                if [item.parameters for item in known] != [member.given]:
                    self.loop.fail(f"{title} another constraint than it enforces: {member.given}")

    def gaps(self, replica: Replica, unchanged_since: float, gone_since: float) -> str:
        """A group whose members were there so long is enforced, and no other is."""
        if why := super().gaps(replica, unchanged_since, gone_since):
            return why
        revision = replica.serving.revision
        assert revision is not None
        enforced = {one.key: one for one in revision.snapshot.constraints}
        held = dict(self.held())
        for key, item in held.items():
            if key[0] != CONSTRAINT_GROUP or is_broken(item["spec"]):
                continue
            members = list(_members(item))
            if max(map(self.changed.__getitem__, [key, *members])) > unchanged_since:
                continue
            are_good = all(one in held and not is_broken(held[one]["spec"]) for one in members)
            known = enforced.get(key)
            if are_good and (known is None or known.document["spec"] != item["spec"]):
                return f"{replica.name} does not enforce {key} as it is, whose members are there"
            are_there = all(one in held for one in members)
            if not are_there and known is not None and known.document["spec"] == item["spec"]:
                return f"{replica.name} enforces {key}, of which a member is not there"
        return ""


def _members(item: Json) -> Iterator[Key]:
    """The templates and constraints that a group names."""
    for member in item["spec"]["members"].values():
        reference = member.get("constraint")
        kind = member["kind"] if reference is None else reference["kind"]
        yield TEMPLATES.kind, kind.lower()
        if reference is not None:
            yield kind, reference["name"]


class GroupWorld(ClusterWorld):
    """A world of constraint groups."""

    def __init__(self, loop: Loop) -> None:
        super().__init__(loop)
        self.users: GroupUsers = GroupUsers(loop.random, self.storage)

    def _watched(self) -> Enforcement:
        return GroupEnforcement(self.loop, self.storage)

    def _has_broken(self, held: Mapping[Key, Json]) -> bool:
        groups = [item for (kind, _), item in held.items() if kind == CONSTRAINT_GROUP]
        lacks = any(one not in held for item in groups for one in _members(item))
        return super()._has_broken(held) or lacks

    async def _heal(self) -> None:
        await super()._heal()
        if self.loop.random.random() < 0.6:
            self.users.give_members()
