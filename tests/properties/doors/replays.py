"""Replays of a server's records: by its own policies, and by those of a world with more."""

from __future__ import annotations

import json
import random
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tests import policies
from tests.webhook.cli.in_process import waddle

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from tests.properties.doors.worlds import World

Json = dict[str, Any]


REQUESTED = """package requested
violation[{"msg": msg, "details": {"operation": input.review.operation}}] {
  old := object.get(input.review, ["oldObject", "metadata", "labels"], {})
  msg := sprintf("%v by %v: %v", [input.review.operation, input.review.userInfo.username, old])
}
"""
SUBJECTS: tuple[Json, ...] = (
    {"kind": "User", "name": "jan*"},
    {"kind": "User", "name": "bob"},
    {"kind": "Group", "name": "staff"},
)


def world_now(world: World) -> World:
    """Returns a world with policies and exceptions that depend on the request."""
    chance = random.Random(f"requests of {world.seed}")
    constraint = policies.constraint("Requested", "requested")
    constraint["spec"]["enforcementAction"] = chance.choice(["deny", "warn"])
    constraint["metadata"]["annotations"] = {
        "waddle.dev/exceptions": "all",
        **({"waddle.dev/existing": "allow"} if chance.random() < 0.5 else {}),
    }
    template = policies.template("Requested", REQUESTED, target={"operations": ["*"]})
    excused = [item for item in world.policies if item["apiVersion"].startswith("constraints")]
    exceptions = [
        policies.exception(
            f"request-{number}",
            f"{item['kind']}/{item['metadata']['name']}",
            subjects=chance.sample(SUBJECTS, chance.randint(1, 2)),
            effect=chance.choice(["skip", "warn", "dryrun"]),
            violations=chance.choice([None, [{"details": {"operation": "UPDATE"}}]]),
        )
        for number, item in enumerate((constraint, *excused))
        if chance.random() < 0.4
    ]
    return replace(world, policies=(*world.policies, template, constraint, *exceptions))


def world_before(world: World) -> World:
    """Returns a world before its exceptions, its ratchets and some of its groups."""
    kept = []
    for item in world.policies:
        if item["kind"].endswith("PolicyException") or (
            item["kind"] in ("ConstraintGroup", "Requested") and world.seed % 2
        ):
            continue
        annotations = dict(item["metadata"].get("annotations", {}))
        annotations.pop("waddle.dev/existing", None)
        kept.append(item | {"metadata": item["metadata"] | {"annotations": annotations}})
    return replace(world, policies=tuple(kept))


def recorded(world: World, admit: Callable[[Json | None, Json | None, str], Json]) -> list[Json]:
    """Returns the records of creations, updates and deletions of a world's objects."""
    changes = zip(world.objects, world.olds or world.objects, strict=True)
    records = [
        admit(new, before, operation)
        for obj, old in changes
        for new, before, operation in (
            (obj, None, "CREATE"),
            (obj, old, "UPDATE"),
            (None, obj, "DELETE"),
        )
    ]
    return [record | {"id": str(number)} for number, record in enumerate(records)]


def replay_faults(
    before: Sequence[Json], now: Sequence[Json], policies: Path, options: Sequence[str]
) -> list[str]:
    """Returns the differences between replays of records by policies, and their own records."""
    folder = policies.parent
    lines = []
    for title, records, expected in (("same", now, now), ("changed", before, now)):
        file = folder / f"{title}.jsonl"
        file.write_text("".join(json.dumps(one) + "\n" for one in records))
        run = waddle("decisions", "replay", file, "--policies", policies, "-o", "json", *options)
        replayed = json.loads(run.stdout)
        wanted_changes, others, totals = _compared(records, expected)
        changes = {one["id"]: (one["before"], one["after"]) for one in replayed["changed"]}
        if changes != wanted_changes:
            lines.append(f"{title}: {changes}, not {wanted_changes}")
        if replayed["otherViolations"] != others:
            lines.append(f"{title}: {replayed['otherViolations']} others, not {others}")
        counted = {
            f"{one['kind']}/{one['name']}": (one["added"], one["removed"])
            for one in replayed["constraints"]
        }
        if counted != totals:
            lines.append(f"{title}: {counted}, not {totals}")
        if title == "same" and replayed.get("excused"):
            lines.append(f"{title}: excuses {replayed['excused']} more")
        run = waddle("check", "-f", policies, "--decisions", file, "-o", "json", *options)
        checked = json.loads(run.stdout)["decisions"]
        changes = {one["id"]: (one["before"], one["after"]) for one in checked["changes"]}
        if changes != wanted_changes:
            lines.append(f"{title}, by check: {changes}, not {wanted_changes}")
    return lines


def _compared(
    before: Sequence[Json], now: Sequence[Json]
) -> tuple[dict[str, tuple[str, str]], int, dict[str, tuple[int, int]]]:
    changes, others = {}, 0
    added: Counter[str] = Counter()
    removed: Counter[str] = Counter()
    for old, new in zip(before, now, strict=True):
        if "constraintsEvaluated" not in old or old["verdict"] == "error":
            continue
        was, is_ = _violations(old), _violations(new)
        added.update(key for key, _ in is_ - was)
        removed.update(key for key, _ in was - is_)
        if old["verdict"] != new["verdict"]:
            changes[old["id"]] = (old["verdict"], new["verdict"])
        elif was != is_:
            others += 1
    keys = added.keys() | removed.keys()
    return changes, others, {key: (added[key], removed[key]) for key in keys}


def _violations(record: Json) -> set[tuple[str, Any]]:
    return {
        (f"{one['constraint']['kind']}/{one['constraint']['name']}", one["message"])
        for one in record.get("results", ())
    }
