"""The world of what changes and expands objects: mutators and ExpansionTemplates among policies.

What holds is what holds of templates and constraints (:mod:`tests.simulation.cluster_world`). More
than these they depend on each other: whose schemas conflict are all kept out, and are back when the
conflict is over; so is a circle of expansions. In whatever order a replica heard of all of it, it
ends where one does that is told all at once.
"""

from tests.simulation.api_server import Refusal
from tests.simulation.cluster_users import Users
from tests.simulation.cluster_world import ClusterWorld
from tests.simulation.extension_enforcement import ExtensionEnforcement
from tests.simulation.extension_policies import PLURALS, extension, random_extension
from tests.simulation.loop import Loop


class ExtensionUsers(Users):
    """Users who mostly write mutators and ExpansionTemplates."""

    def begin(self) -> None:
        """Creates the objects that exist before the replicas."""
        for _ in range(self.chance.choice([0, 2, 5])):
            self._write_extension()
        if self.chance.random() < 0.2:
            super().begin()

    def write(self) -> None:
        """A change of one of them; sometimes of others."""
        if self.chance.random() < 0.1:
            super().write()
            return
        for _ in range(self.chance.choice([1, 1, 3])):
            self._write_extension()

    def _write_extension(self) -> None:
        chance, storage = self.chance, self.storage
        kind, name, variant = random_extension(chance)
        served = storage.kinds[PLURALS[kind]]
        try:
            if chance.random() < 0.2:
                storage.delete(served, "", name)
            else:
                self._apply(served, "", extension(kind, name, variant))
        except Refusal:
            return


class ExtensionWorld(ClusterWorld):
    """A world of mutators and ExpansionTemplates."""

    MUTATION_SHARE = 1.0
    enforcement: ExtensionEnforcement

    def __init__(self, loop: Loop) -> None:
        super().__init__(loop)
        self.users = ExtensionUsers(loop.random, self.storage)

    def _watched(self) -> ExtensionEnforcement:
        return ExtensionEnforcement(self.loop, self.storage)

    def _unsettled(self) -> str:
        if why := super()._unsettled():
            return why
        for replica in self.replicas:
            if why := self.enforcement.differs(replica):
                return why
        writing = self.replicas if "status" in self.operations else []
        failed = {name for name, fate in self.dead.items() if fate == "failed"}
        return self.enforcement.lies(writing, self.dead.keys() - failed) if writing else ""
