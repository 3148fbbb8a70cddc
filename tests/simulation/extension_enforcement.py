"""Replicas' mutators and ExpansionTemplates in force, against all stored states."""

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from tests.simulation.api_server import Happened, Json
from tests.simulation.cluster_enforcement import Enforcement, Replica
from tests.simulation.extension_policies import (
    EXPANSION,
    EXPANSIONS,
    MUTATIONS,
    PREVIEWED,
    Extensions,
    Key,
    extensions_of,
    is_broken,
    loaded_at_once,
    version_of,
)
from webhook.mutation.snapshot import MutationSnapshot

GROUPS = (MUTATIONS, EXPANSIONS)


class ExtensionEnforcement(Enforcement):
    """Looks at what changes objects, too."""

    def _happened(self, change: Happened) -> None:
        super()._happened(change)
        item = change.after or change.before
        assert item is not None
        if change.served.group in GROUPS and (
            change.before is None
            or change.after is None
            or change.before["spec"] != change.after["spec"]
        ):
            self.changed[change.served.kind, item["metadata"]["name"]] = self.loop.now()

    # --- each revision -------------------------------------------------------------------------

    def look(self, replica: Replica) -> None:
        """Checks the extensions in force: only the API server's states, none older, none lost."""
        super().look(replica)
        revision = replica.serving.revision
        if revision is None:
            return
        seen = replica.seen.get("mutations"), replica.seen.get("expansion")
        if seen == (revision.mutations, revision.expansion):
            return
        replica.seen |= {"mutations": revision.mutations, "expansion": revision.expansion}
        extensions = extensions_of(revision.mutations, revision.expansion)
        for key, document in extensions.mutators.items():
            self._look_at_mutator(replica, key, document)
        for key, source in extensions.expansions.items():
            states = self.storage.ever.get((key[0], "", key[1]), ())
            if not any(one["spec"]["templateSource"] == source for one in states):
                self.loop.fail(f"{replica.name} expands by {key} as it never was: {source}")
        self._look_for_lost_mutators(replica, revision.mutations)

    def _look_at_mutator(self, replica: Replica, key: Key, document: Mapping[str, Any]) -> None:
        kind, name = key
        version, spec = version_of(document), document["spec"]
        states = self.storage.ever.get((kind, "", name), ())
        if not any(version_of(one) == version and one["spec"] == spec for one in states):
            self.loop.fail(f"{replica.name} mutates by {key} as it never was: {spec}")
        if is_broken(spec):
            self.loop.fail(f"{replica.name} mutates by {key} though it is broken")
        last = replica.enforced.get(key, version)
        if version < last and self.loop.now() > self.unordered_until:
            self.loop.fail(f"{replica.name} mutates by {key} of {version} after {last}")
        replica.enforced[key] = version

    def _look_for_lost_mutators(self, replica: Replica, mutations: MutationSnapshot) -> None:
        """Checks that mutators in force stay known until they are deleted."""
        in_force = {
            (one.id.kind, one.id.name): one.document["metadata"]["uid"]
            for one in (*mutations.mutators, *mutations.previewed)
        }
        parties = (*mutations.conflicts, *mutations.would_conflict)
        known = in_force.keys() | {(one.kind, one.name) for one in parties}
        before, replica.seen["in_force"] = replica.seen.get("in_force", {}), in_force
        held = {key: item["metadata"]["uid"] for key, item in self.extensions()}
        for key, uid in before.items():
            if key not in known and held.get(key) == uid:
                self.loop.fail(f"{replica.name} knows nothing of {key} any more")

    # --- what is missing -----------------------------------------------------------------------

    def extensions(self) -> Iterator[tuple[Key, Json]]:
        """Mutators and ExpansionTemplates as the API server holds them, by kind and name."""
        for (group, _), served in self.storage.kinds.items():
            if group in GROUPS:
                for (_, name), item in self.storage.items(served).items():
                    yield (served.kind, name), item

    def gaps(self, replica: Replica, unchanged_since: float, gone_since: float) -> str:
        """Returns an error if a sound object is not in force in time, or a deleted one is."""
        if why := super().gaps(replica, unchanged_since, gone_since):
            return why
        revision = replica.serving.revision
        assert revision is not None
        known = extensions_of(revision.mutations, revision.expansion)
        held = dict(self.extensions())
        for key in {*known.mutators, *known.expansions, *known.kept_out} - held.keys():
            if self.changed[key] <= gone_since:
                return f"{replica.name} has {key}, which is gone"
        templates_changed = max(
            [when for (kind, _), when in self.changed.items() if kind == EXPANSION], default=0.0
        )
        for key, item in held.items():
            is_template = key[0] == EXPANSION
            changed = templates_changed if is_template else self.changed[key]
            if is_broken(item["spec"]) or changed > unchanged_since:
                continue
            if is_template:
                continue  # in a circle or not: at rest all are compared
            if key not in known.mutators and key not in known.kept_out:
                return f"{replica.name} does not mutate by {key}"
            if key in known.mutators and known.mutators[key]["spec"] != item["spec"]:
                return f"{replica.name} mutates by an old {key}: {known.mutators[key]['spec']}"
        return ""

    def differs(self, replica: Replica) -> str:
        """Returns how a replica differs from one that loads all objects at once.

        Empty where something is broken: then what there was decides, too.
        """
        revision = replica.serving.revision
        held = dict(self.extensions())
        if revision is None or any(is_broken(item["spec"]) for item in held.values()):
            return ""
        ours = extensions_of(revision.mutations, revision.expansion)
        all_at_once = loaded_at_once(held.values())
        if ours.expansions != all_at_once.expansions:
            return f"{replica.name} expands by {ours.expansions}, not {all_at_once.expansions}"
        mutators = {key: version_of(item) for key, item in ours.mutators.items()}
        expected = {key: version_of(item) for key, item in all_at_once.mutators.items()}
        if mutators != expected:
            return f"{replica.name} mutates by {mutators}, not {expected}"
        circle = {key for key in all_at_once.kept_out if key[0] == EXPANSION}
        if ours.kept_out != all_at_once.kept_out - circle:
            return f"{replica.name} keeps out {ours.kept_out}, not {all_at_once.kept_out}"
        return ""

    def lies(self, replicas: Collection[Replica], dead: Collection[str]) -> str:
        """Returns a wrong byPod entry of mutators and ExpansionTemplates."""
        held = dict(self.extensions())
        known = {
            replica.name: extensions_of(
                replica.serving.revision.mutations, replica.serving.revision.expansion
            )
            for replica in replicas
            if replica.serving.revision is not None
        }
        for key, item in held.items():
            entries = (item.get("status") or {}).get("byPod") or []
            entries = [entry for entry in entries if entry["id"] not in dead]
            writers = sorted(entry["id"] for entry in entries)
            if writers != sorted(known):
                return f"byPod of {key} names {writers}, there are {sorted(known)}"
            for entry in entries:
                if why := _lie(key, item, entry, known[entry["id"]]):
                    return f"byPod of {key} says of {entry['id']} {why}: {entry}"
        return ""


def _lie(key: Key, item: Json, entry: Json, known: Extensions) -> str:
    """Returns the wrong statement of a byPod entry."""
    kind, name = key
    generation = item["metadata"]["generation"]
    if entry.get("observedGeneration") != generation:
        return f"that it has not seen generation {generation}"
    broken, is_preview = is_broken(item["spec"]), name in PREVIEWED
    if kind == EXPANSION:
        active, in_force = entry.get("activeGeneration"), key in known.expansions
        if (active != 0) is not in_force or (in_force and not broken and active != generation):
            return f"generation {active} of {generation}, in force: {in_force}"
        is_wrong = broken or not in_force
    else:
        applied = known.mutators.get(key)
        in_force = applied is not None and not is_preview
        active = 0 if applied is None or is_preview else applied["metadata"]["generation"]
        if entry.get("activeGeneration") != active:
            return f"another generation than {active}, which is in force"
        is_wrong = broken or key in known.kept_out
        if entry.get("enforced") is not (not is_wrong and not is_preview):
            return f"what is not so, whether it is enforced: {in_force}"
        if bool(entry.get("preview")) is not is_preview and not (broken and applied is None):
            return f"what is not so, whether it is previewed: {is_preview}"
    if bool(entry.get("errors")) is not is_wrong:
        return f"what is not so, whether something is wrong: {is_wrong}"
    return ""
