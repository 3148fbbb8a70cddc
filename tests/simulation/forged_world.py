"""The forger's world: that of trials, where somebody may write PolicyRevisions and nothing else.

What holds is what holds of trials, but that something may be tried again: no replica ever enforces
what the forger has written, is kept from what the API server holds, or loses what was in force.
"""

import random
from collections.abc import Callable, Iterable

from tests.simulation.api_server import Json, Refusal, Storage
from tests.simulation.control_plane import TEMPLATES
from tests.simulation.loop import Loop
from tests.simulation.policies import BROKEN, constraint, template
from tests.simulation.trial_world import REVISIONS, TrialUsers, TrialWorld
from webhook import __version__
from webhook.api.revision import digest_of, revision_object
from webhook.api.revision_outcome import VERDICTS, TrialOutcome

FORGED_VARIANT = 77
"""Of policies that nobody has ever written but the forger."""

SIGNATURE = "0" * 64
"""What nobody has signed ends with this."""

COPY = "-copy"
"""With this the name of a copy ends, which has a signature that would hold for the first."""


class ForgedWorld(TrialWorld):
    """One world."""

    def __init__(self, loop: Loop) -> None:
        super().__init__(loop)
        self.users = Forger(loop.random, self.storage, self._objects)

    def _objects(self) -> list[Json]:
        return [item for _, item in self.enforcement.held()]

    def _revisions(self) -> Iterable[Json]:
        """Those that a replica has written: what the forger says goes on for ever is not tried."""
        return [item for item in super()._revisions() if not is_forged(item)]

    def _unsettled(self) -> str:
        self.ended.clear()  # an outcome that the forger has replaced is found again
        return super()._unsettled()


def is_forged(item: Json) -> bool:
    """Whether the forger has written a revision as it is."""
    is_copy = item["metadata"]["name"].endswith(COPY)
    return is_copy or str(item["status"].get("signature", "")).endswith(SIGNATURE)


class Forger(TrialUsers):
    """Users, one of whom forges revisions of what there is, was or may come."""

    def __init__(
        self, chance: random.Random, storage: Storage, objects: Callable[[], list[Json]]
    ) -> None:
        super().__init__(chance, storage)
        self._objects = objects

    def write(self) -> None:
        """A change of policy, or a forgery or two beside it."""
        while self.chance.random() < 0.5:
            try:
                self._forge(self.storage)
            except Refusal:
                continue
        super().write()

    def _forge(self, storage: Storage) -> None:
        chance, served = self.chance, storage.kinds[REVISIONS]
        kept = sorted(storage.items(served))
        if kept and chance.random() < 0.4:
            genuine = storage.get(served, *chance.choice(kept))
            if chance.random() < 0.3:
                metadata = {
                    key: genuine["metadata"][key] for key in ("name", "ownerReferences", "labels")
                }
                metadata["name"] += COPY
                storage.create(served, "", {**genuine, "metadata": metadata})
                return
            status = self._status()
            storage.replace(
                served, "", genuine["metadata"]["name"], {**genuine, "status": status}, ""
            )
            return
        if not (objects := self._objects()):
            return
        of = chance.choice(objects)
        made = self._revision(of)
        storage.create(served, "", made | {"status": self._status()})

    def _revision(self, of: Json) -> Json:
        """A revision of an object, of one generation or another, with one content or another."""
        chance, metadata = self.chance, of["metadata"]
        generation = metadata["generation"] + chance.choice([-1, 0, 0, 1, 1, 2, 10**15])
        variant = chance.choice([0, 1, BROKEN, FORGED_VARIANT, FORGED_VARIANT])
        kind = of["kind"]
        other = (
            template(of["spec"]["crd"]["spec"]["names"]["kind"], variant)
            if kind == TEMPLATES.kind
            else constraint(kind, metadata["name"], variant)
        )
        document = {**of, "metadata": {**metadata, "generation": generation}, "spec": other["spec"]}
        made = revision_object(document, digest_of(document))
        if chance.random() < 0.2:
            del made["metadata"]["ownerReferences"]
        if chance.random() < 0.2:
            made["metadata"]["name"] += "-other"
        return made

    def _status(self) -> Json:
        """What no replica has said of a revision, in the name of one, by the name of a key."""
        chance = self.chance
        verdict = chance.choice(sorted(VERDICTS))
        said = TrialOutcome(verdict, "replica-1", "", __version__, "2026-01-01T00:00:00Z", "forged")  # type: ignore[arg-type]
        named = {
            (one.get("status") or {}).get("signature", "").partition(":")[0]
            for one in self.storage.items(self.storage.kinds[REVISIONS]).values()
        }
        key = chance.choice(sorted(named - {""}) or ["key-1"])
        return {"outcome": said.document(), "signature": f"{key}:{SIGNATURE}"}
