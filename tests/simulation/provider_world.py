"""The world of providers: whom policies ask, as somebody writes, breaks and deletes it.

What holds is what holds of any cluster. More than that, a replica asks a Provider as it is or was,
never one that cannot be used, and none that is gone; one that is broken is asked as it was last.
"""

import base64
from collections.abc import Iterator
from functools import cache
from typing import Final

from tests.provider_process import make_authority
from tests.simulation.api_server import Happened, Json, Refusal
from tests.simulation.cluster_enforcement import Enforcement, Key, Replica
from tests.simulation.cluster_users import Users
from tests.simulation.cluster_world import ClusterWorld
from tests.simulation.loop import Loop
from webhook.external_data.provider import GROUP, KIND, DataProvider

PLACE: Final = GROUP, "providers"
NAMES: Final = ("p0", "p1", "p2")
BROKEN: Final = 3
"""The variant that cannot be used; those before it are so many seconds of patience."""


@cache
def _authority() -> str:
    return base64.b64encode(make_authority().certificate).decode()


def provider(name: str, variant: int) -> Json:
    """A Provider; variants are generations of it."""
    scheme = "http" if variant == BROKEN else "https"
    return {
        "metadata": {"name": name},
        "spec": {
            "url": f"{scheme}://{name}.example/",
            "timeout": variant + 1,
            "caBundle": _authority(),
        },
    }


def is_broken(item: Json) -> bool:
    """Whether nobody can be asked by it."""
    return item["spec"]["timeout"] == BROKEN + 1


class ProviderUsers(Users):
    """Users who mostly write Providers."""

    def begin(self) -> None:
        """Creates the objects that exist before the replicas."""
        for _ in range(self.chance.choice([0, 2, 4])):
            self._write_provider()
        super().begin()

    def write(self) -> None:
        """A change of one of them; sometimes of others."""
        if self.chance.random() < 0.2:
            super().write()
        else:
            self._write_provider()

    def _write_provider(self) -> None:
        served, name = self.storage.kinds[PLACE], self.chance.choice(NAMES)
        try:
            if self.chance.random() < 0.25:
                self.storage.delete(served, "", name)
            else:
                variant = BROKEN if self.chance.random() < 0.25 else self.chance.randrange(BROKEN)
                self._apply(served, "", provider(name, variant))
        except Refusal:
            return


class ProviderEnforcement(Enforcement):
    """Looks at whom replicas would ask, too."""

    def _happened(self, change: Happened) -> None:
        super()._happened(change)
        item = change.after or change.before
        assert item is not None
        if change.served.group == GROUP and (
            change.before is None
            or change.after is None
            or change.before["spec"] != change.after["spec"]
        ):
            self.changed[KIND, item["metadata"]["name"]] = self.loop.now()

    def providers(self) -> Iterator[tuple[Key, Json]]:
        """Providers as the API server holds them."""
        for (_, name), item in self.storage.items(self.storage.kinds[PLACE]).items():
            yield (KIND, name), item

    def look(self, replica: Replica) -> None:
        """Checks that the providers in force existed and were valid."""
        super().look(replica)
        revision = replica.serving.revision
        if revision is None or replica.seen.get("providers") is revision.policies.providers:
            return
        replica.seen["providers"] = revision.policies.providers
        for name, one in revision.policies.providers.items():
            states = self.storage.ever.get((KIND, "", name), ())
            if not any(_is(one, item) for item in states if not is_broken(item)):
                self.loop.fail(f"{replica.name} asks {name} as it never was: {one.timeout_seconds}")

    def gaps(self, replica: Replica, unchanged_since: float, gone_since: float) -> str:
        """Returns an error if a sound provider is not in force in time, or a deleted one is."""
        if why := super().gaps(replica, unchanged_since, gone_since):
            return why
        revision = replica.serving.revision
        assert revision is not None
        in_force, held = revision.policies.providers, dict(self.providers())
        for name in in_force:
            if (KIND, name) not in held and self.changed[KIND, name] <= gone_since:
                return f"{replica.name} asks {name}, which is gone"
        for key, item in held.items():
            if is_broken(item) or self.changed[key] > unchanged_since:
                continue
            one = in_force.get(key[1])
            if one is None or not _is(one, item):
                return f"{replica.name} does not ask {key[1]} as it is"
        return ""

    def lies(self, replicas: list[Replica], dead: set[str]) -> str:
        """Returns a wrong byPod entry of a Provider."""
        names = sorted(replica.name for replica in replicas)
        for (_, name), item in self.providers():
            entries = (item.get("status") or {}).get("byPod") or []
            entries = [entry for entry in entries if entry["id"] not in dead]
            if sorted(entry["id"] for entry in entries) != names:
                return f"byPod of {name} names {[entry['id'] for entry in entries]}, not {names}"
            for entry in entries:
                if entry.get("observedGeneration") != item["metadata"]["generation"]:
                    return f"byPod of {name} has not seen what it is: {entry}"
                if entry.get("active") is is_broken(item):
                    return f"byPod of {name} says what is not so: {entry}"
        return ""


def _is(one: DataProvider, item: Json) -> bool:
    return one.timeout_seconds == item["spec"]["timeout"] and one.url == item["spec"]["url"]


class ProviderWorld(ClusterWorld):
    """A world of Providers."""

    enforcement: ProviderEnforcement

    def __init__(self, loop: Loop) -> None:
        super().__init__(loop)
        self.users = ProviderUsers(loop.random, self.storage)

    def _watched(self) -> ProviderEnforcement:
        return ProviderEnforcement(self.loop, self.storage)

    def _unsettled(self) -> str:
        if why := super()._unsettled():
            return why
        writing = self.replicas if "status" in self.operations else []
        failed = {name for name, fate in self.dead.items() if fate == "failed"}
        return self.enforcement.lies(writing, self.dead.keys() - failed) if writing else ""
