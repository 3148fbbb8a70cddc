"""The forger's world: that of trials, where somebody may write all that replicas keep.

PolicyRevisions with outcomes and claims, records of roll-outs, and the statuses of replicas with
what audits found; but no policies, and not the Secret of keys. What holds is what holds of trials,
but that something may be tried again: no replica ever enforces what the forger has written, is kept
from what the API server holds, or loses what was in force; and no statuses say so in the end. Every
constraint is rolled out, and stays at its first stage. At the end one reaches its last stage, every
replica ends, and the forger writes an earlier record of it, once genuine, back into both places.
"""

import asyncio
import contextlib
import math
import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from tests.simulation.api_server import Json, Refusal, Served, Storage
from tests.simulation.cluster_enforcement import CONSTRAINTS, Enforcement, Key, Replica
from tests.simulation.cluster_users import NAMESPACE
from tests.simulation.cluster_world import KEY_SECRET
from tests.simulation.control_plane import PODS, SECRETS, STATUS_GROUP, TEMPLATES
from tests.simulation.ends import killed
from tests.simulation.loop import Loop
from tests.simulation.policies import BROKEN, constraint, is_broken, template
from tests.simulation.trial_world import REVISIONS, TrialEnforcement, TrialUsers, TrialWorld
from webhook import __version__
from webhook.api.pod_status import POD_LABEL
from webhook.api.revision import digest_of, revision_object
from webhook.api.revision_outcome import VERDICTS, TrialOutcome
from webhook.constraint.rollout import ANNOTATION, staged
from webhook.controllers.revisions.keys import COPIES
from webhook.controllers.revisions.rollout_copies import read_copies

FORGED_VARIANT = 77
"""Of policies that nobody has ever written but the forger."""

SIGNATURE = "0" * 64
"""The end of each forged record's signature."""

FORGED_NAME = "forged-"
"""With this the names of statuses begin that no replica gives its own."""

FORGED_SHARE = 0.75
"""Three forgeries beside each change of policy."""

FORGED_MAX = 2
"""The number of forgeries of a replica's status: its contents go back each time."""

REACHED_SECONDS = 120.0
"""In which a roll-out has come to its last stage that nothing holds up, and replicas are ready."""

COPY = "-copy"
"""With this the name of a copy ends, which has a signature that would hold for the first."""


class ForgedEnforcement(TrialEnforcement):
    """Constraints are enforced at the first stage of their roll-outs, whatever their records say."""

    moves: Key | None = None
    """But for this one, which goes on to its last stage, and stays there."""

    def held(self) -> Iterator[tuple[Key, Json]]:
        """Yields the objects as they must be enforced."""
        for key, item in super().held():
            is_first = key[0] != TEMPLATES.kind and key != self.moves
            yield key, dict(staged(item, None)) if is_first else item

    def _look_at(self, replica: Replica, kind: str, name: str, document: Mapping[str, Any]) -> None:
        spec = document["spec"]
        if kind != TEMPLATES.kind:
            if spec["enforcementAction"] != "dryrun" and (kind, name) != self.moves:
                self.loop.fail(f"{replica.name} enforces {kind} {name} at a stage of the forger's")
            spec = {**spec, "enforcementAction": "deny"}
        super()._look_at(replica, kind, name, {**document, "spec": spec})


class ForgedWorld(TrialWorld):
    """A world with a forger."""

    def __init__(self, loop: Loop) -> None:
        super().__init__(loop)
        self.users = Forger(loop.random, self.storage, self._objects)

    def _watched(self) -> Enforcement:
        self.forged = ForgedEnforcement(self.loop, self.storage)
        return self.forged

    async def main(self) -> None:
        """The whole story, and then what the forger does while nobody is there."""
        await super().main()
        moving = next(self._moving(), None)
        if moving is None or self.dead or self.loop.failures:
            return  # A roll-out waits for a Pod that is lost.
        served, current = moving
        earlier, name = current["status"]["rollout"], current["metadata"]["name"]
        self.forged.moves = served.kind, name
        self._annotate(served, name, "dryrun after=0s")
        await self._until(lambda: self._is_copied(current), "the roll-out goes on")
        self._annotate(served, name, "dryrun")
        for replica in list(self.replicas):
            await killed(self.loop, replica.process)
            self.storage.delete(PODS, NAMESPACE, replica.name)
            self.replicas.remove(replica)
        self._write_back(served, current, earlier)
        self.start_replica()
        fresh = self.replicas[0]
        await self._until(lambda: fresh.was_ready, "a replica is ready")
        await asyncio.sleep(REACHED_SECONDS)
        if why := self.enforcement.gaps(fresh, math.inf, math.inf):
            self.loop.fail(f"after an earlier record was written back {why}")

    def _moving(self) -> Iterator[tuple[Served, Json]]:
        """The constraints that are enforced as they are, at a stage that a replica has recorded."""
        for kind, name in sorted(dict(self.enforcement.held())):
            if (served := self.storage.kinds.get((CONSTRAINTS, kind.lower()))) is None:
                continue
            item = self.storage.get(served, "", name)
            generation = item["metadata"]["generation"]
            record = (item.get("status") or {}).get("rollout") or {}
            enforced = {one.enforced.get((kind, name)) for one in self.replicas}
            if (
                record.get("observedGeneration") == generation
                and enforced == {(item["metadata"]["uid"], generation)}
                and not is_broken(self.storage.get(TEMPLATES, "", kind.lower())["spec"])
                and not is_broken(item["spec"])
            ):
                yield served, item

    def _annotate(self, served: Served, name: str, rollout: str) -> None:
        item = self.storage.get(served, "", name)
        metadata = {**item["metadata"], "annotations": {ANNOTATION: rollout}}
        self.storage.replace(served, "", name, {**item, "metadata": metadata}, "")

    def _is_copied(self, of: Json) -> bool:
        """Whether the Secret has the last stage of a constraint; until then both are right."""
        self.forged.changed[of["kind"], of["metadata"]["name"]] = self.loop.now()
        data = self.storage.get(SECRETS, NAMESPACE, KEY_SECRET).get("data") or {}
        copies = read_copies(data.get(COPIES, "")).get(of["metadata"]["uid"], [])
        return bool(copies) and copies[-1].get("action") == "deny"

    async def _until(self, holds: Callable[[], bool], description: str) -> None:
        until = self.loop.now() + REACHED_SECONDS
        while not holds():
            if self.loop.now() > until:
                self.loop.fail(f"not within {REACHED_SECONDS:.0f} seconds: {description}")
                return
            await asyncio.sleep(0.5)

    def _write_back(self, served: Served, of: Json, record: Json) -> None:
        """Write a record of a constraint wherever who may write statuses can."""
        name, storage = of["metadata"]["name"], self.storage
        item = storage.get(served, "", name)
        status = {**item["status"], "rollout": record}
        storage.replace(served, "", name, {**item, "status": status}, "status")
        revisions = storage.kinds[REVISIONS]
        for (_, kept), revision in sorted(storage.items(revisions).items()):
            if revision["spec"]["subject"]["uid"] == of["metadata"]["uid"]:
                status = {**revision["status"], "rollout": record}
                storage.replace(revisions, "", kept, {**revision, "status": status}, "")
        self.loop.notify("forger", f"writes an earlier record of {served.kind} {name} back")

    def _objects(self) -> list[Json]:
        return [item for _, item in self.enforcement.held()]

    def _revisions(self) -> Iterable[Json]:
        """Returns the revisions that replicas have written: forged endless ones are not tried."""
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
        self._altered: Counter[str] = Counter()

    def write(self) -> None:
        """A change of policy, or a forgery or two beside it."""
        idle = self.storage.idle_writes
        while self.chance.random() < FORGED_SHARE:
            with contextlib.suppress(Refusal):
                self._forge(self.storage)
        self.storage.idle_writes = idle  # It may say the same twice.
        super().write()

    def _apply(self, served: Served, namespace: str, body: Json) -> None:
        if served.group == CONSTRAINTS:
            metadata = {**body["metadata"], "annotations": {ANNOTATION: "dryrun"}}
            body = {**body, "metadata": metadata}
        super()._apply(served, namespace, body)

    def _forge(self, storage: Storage) -> None:
        chance = self.chance
        chance.choice([self._forge_revision, self._forge_status, self._forge_rollout])(storage)

    def _forge_rollout(self, storage: Storage) -> None:
        """Writes roll-outs with the right to ``constraints/status`` and without a replica's key."""
        chance = self.chance
        constraints = [item for item in self._objects() if item["kind"] != TEMPLATES.kind]
        if not constraints:
            return
        item = chance.choice(constraints)
        served = storage.kinds[CONSTRAINTS, item["kind"].lower()]
        current = storage.get(served, "", item["metadata"]["name"])
        status = dict(current.get("status") or {})
        record = dict(status.pop("rollout", {}))
        if chance.random() < 0.8:
            steps = [{"action": "deny", "since": "2026-01-01T00:00:00Z"}]
            generation = current["metadata"]["generation"] + chance.choice([0, 0, 0, 1])
            key = str(record.get("signature", "key-1:")).partition(":")[0]
            signature = chance.choice([record.get("signature", ""), f"{key}:{SIGNATURE}", ""])
            record |= {"observedGeneration": generation, "state": "Complete", "action": "deny"}
            record |= {"steps": steps, "sequence": 10**6, "signature": signature}
            status["rollout"] = record
        status["totalViolations"] = chance.randrange(100)
        name = current["metadata"]["name"]
        storage.replace(served, "", name, {**current, "status": status}, "status")

    def _forge_status(self, storage: Storage) -> None:
        """Writes statuses that no replica wrote, under its own name or another."""
        chance = self.chance
        kinds = [one for (group, _), one in sorted(storage.kinds.items()) if group == STATUS_GROUP]
        served = chance.choice(kinds)
        if not (kept := sorted(storage.items(served).items())):
            return
        (_, name), genuine = chance.choice(kept)
        status = dict(genuine["status"])
        status |= {"enforced": False, "active": False, "activeGeneration": 0}
        status["errors"] = [{"message": "forged"}]
        status["auditResults"] = {"totalViolations": 41, "members": 1}
        if chance.random() < 0.5 and self._altered[name] < FORGED_MAX:
            self._altered[name] += 1
            storage.replace(served, NAMESPACE, name, {**genuine, "status": status}, "")
            return
        fields = ("labels", "ownerReferences")
        metadata = {key: value for key in fields if (value := genuine["metadata"].get(key))}
        if chance.random() < 0.5:  # The Pod that it names does not see it then.
            labels = metadata["labels"].items()
            metadata["labels"] = {key: value for key, value in labels if key != POD_LABEL}
        metadata |= {"name": f"{FORGED_NAME}{chance.randrange(1000)}", "namespace": NAMESPACE}
        storage.create(served, NAMESPACE, {**genuine, "metadata": metadata, "status": status})

    def _forge_revision(self, storage: Storage) -> None:
        chance, served = self.chance, storage.kinds[REVISIONS]
        kept = sorted(storage.items(served))
        if kept and chance.random() < 0.4:
            genuine = storage.get(served, *chance.choice(kept))
            if chance.random() < 0.3:
                fields = ("name", "ownerReferences", "labels")
                metadata = {
                    key: genuine["metadata"][key] for key in fields if key in genuine["metadata"]
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
        """Returns a status of a revision with a forged outcome and signature."""
        chance = self.chance
        verdict = chance.choice(sorted(VERDICTS))
        outcome = TrialOutcome(
            verdict,  # type: ignore[arg-type]
            "replica-1",
            "",
            __version__,
            "2026-01-01T00:00:00Z",
            "forged",
        )
        named = {
            (one.get("status") or {}).get("signature", "").partition(":")[0]
            for one in self.storage.items(self.storage.kinds[REVISIONS]).values()
        }
        key = chance.choice(sorted(named - {""}) or ["key-1"])
        return {"outcome": outcome.document(), "signature": f"{key}:{SIGNATURE}"}
