"""Totals that follow changes are those that a sweep would have found."""

import asyncio
import random
from typing import Any

from tests.webhook.constraint.policies import client, constraint, template
from webhook.api.gvk import GroupVersionKind
from webhook.audit.ledger import AuditLedger
from webhook.audit.sink import Audited, SweepEnd, SweepStart, identity_of
from webhook.audit.tally import Count, Tally
from webhook.constraint.result import Responses, Result
from webhook.constraint.review import AugmentedObject
from webhook.constraint.snapshot import Snapshot

REGO = """package p
violation[{"msg": msg}] { some w; input.review.object.data[w] == "bad"; msg := w }"""
LIMIT = 4
CONFIG_MAP = GroupVersionKind("", "v1", "ConfigMap")


def config_map(number: int, *words: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": f"c{number:02}", "namespace": "shop", "uid": f"uid-{number}"},
        "data": dict.fromkeys(words, "bad"),
    }


def policies() -> Snapshot:
    found = client()
    found.add_template(template(rego=REGO))
    found.add_constraint(constraint(name="one"))
    found.add_constraint(constraint(name="two"))
    return found.snapshot


def results(snapshot: Snapshot, obj: dict[str, Any]) -> list[Result]:
    return list(snapshot.review(AugmentedObject(obj)).results)


def swept(
    snapshot: Snapshot, objects: list[dict[str, Any]], ledger: AuditLedger
) -> dict[Any, Count]:
    """Returns the counts of a sweep over these objects with a ledger."""

    async def sweep() -> dict[Any, Count]:
        kinds = frozenset({CONFIG_MAP})
        tally = Tally(LIMIT)
        await ledger.start(SweepStart("t", snapshot, kinds))
        for obj in objects:
            found = results(snapshot, obj)
            identity = identity_of(obj)
            for result in found:
                tally.add(identity, result)
            responses = Responses(results=tuple(found))
            await ledger.audited(Audited("t", identity, obj, responses, snapshot))
        end = SweepEnd("t", snapshot, kinds)
        await ledger.end(end)
        totals = {item.key: tally.get(item.key) for item in snapshot.constraints}
        await ledger.publish(end, totals)
        return totals

    return asyncio.run(sweep())


def test_totals_after_any_changes_are_those_of_a_sweep() -> None:
    """Objects that come, go, get worse, get better and come back."""
    snapshot, chance = policies(), random.Random(7)
    objects = {number: config_map(number, "a") for number in range(6)}
    ledger = AuditLedger()
    swept(snapshot, list(objects.values()), ledger)
    known: dict[Any, Count] = {}
    for _ in range(200):
        number = chance.randrange(12)
        if chance.random() < 0.3:
            gone = objects.pop(number, None)
            if gone is not None:
                ledger.change(identity_of(gone), ())
        else:
            words = chance.sample(["a", "b", "c"], chance.randrange(4))
            objects[number] = config_map(number, *words)
            found = results(snapshot, objects[number])
            identity = identity_of(objects[number])
            ledger.change(identity, found)
        known |= ledger.take_changed()
    fresh = swept(snapshot, list(objects.values()), AuditLedger())
    for key, count in fresh.items():
        assert (known[key].total, known[key].actions) == (count.total, count.actions)
    assert ledger.objects == sum(bool(item["data"]) for item in objects.values())


def test_the_first_violations_are_the_new_ones_too_and_none_of_what_is_gone() -> None:
    """In their order, within the limit; short of it only until the next sweep."""
    snapshot, ledger = policies(), AuditLedger()
    swept(snapshot, [config_map(number, "a") for number in range(3, 9)], ledger)
    early = config_map(1, "a", "b")
    ledger.change(identity_of(early), results(snapshot, early))
    (one, _) = ledger.take_changed().values()
    assert [(item.name, item.message) for item in one.first] == [
        ("c01", "a"),
        ("c01", "b"),
        ("c03", "a"),
        ("c04", "a"),
    ]
    ledger.change(identity_of(early), ())
    (one, _) = ledger.take_changed().values()
    assert [item.name for item in one.first] == ["c03", "c04"]
    assert one.total == 6


def test_the_same_results_are_no_news() -> None:
    """A Pod's status changes all the time; that reports nothing."""
    snapshot, ledger = policies(), AuditLedger()
    obj = config_map(1, "a")
    swept(snapshot, [obj], ledger)
    assert not ledger.differs(identity_of(obj), results(snapshot, obj))
    assert ledger.differs(identity_of(obj), results(snapshot, config_map(1, "b")))
    assert ledger.differs(identity_of(obj), [])
    assert not ledger.differs(identity_of(config_map(2)), [])
    assert ledger.take_changed() == {}


def test_a_constraint_that_no_sweep_reported_a_total_of_has_none_by_a_change() -> None:
    """A part of the truth would be worse than the old total."""
    snapshot, ledger = policies(), AuditLedger()
    obj = config_map(1, "a")
    ledger.change(identity_of(obj), results(snapshot, obj))
    assert ledger.take_changed() == {}
