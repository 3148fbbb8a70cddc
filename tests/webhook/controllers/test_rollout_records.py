"""Valid records of roll-outs: signed ones of their object, the latest of each generation."""

import dataclasses

import pytest

from tests.webhook.controllers.signing import FOREIGN, KEY, keys_of, rollouts_of
from webhook.constraint.rollout import ANNOTATION, RolloutRecord, RolloutStep
from webhook.controllers.revisions import rollout_copies
from webhook.controllers.revisions.keys import KeyRing, RevisionKey
from webhook.controllers.revisions.rollout_copies import merged, read_copies
from webhook.controllers.revisions.rollout_records import ENDED, FIELD

NEXT = RevisionKey("key-1710000000", 1_710_000_000, b"n" * 32)
UID = "uid-1"


def record(action="dryrun", sequence=1, generation=1):
    """A record at a stage."""
    steps = (RolloutStep(action, 1_700_000_000.0),)
    return RolloutRecord(generation, steps, "Holding", sequence=sequence)


def staged(written=None, generation=1, uid=UID, annotations=None):
    """A constraint with this in its status."""
    metadata = {"name": "words", "uid": uid, "generation": generation}
    metadata["annotations"] = {ANNOTATION: "dryrun"} if annotations is None else annotations
    status = {"byPod": []} | ({} if written is None else {FIELD: written})
    return {"kind": "Alpha", "metadata": metadata, "spec": {}, "status": status}


def copies_of(records, before=""):
    """The entry of the Secret with these records."""
    return merged(before, records.current(), records.gone)


@pytest.fixture
def keys():
    return keys_of(None)


@pytest.fixture
def records(keys):
    return rollouts_of(keys)


def verified_record(records, document):
    """The record that counts."""
    return records.verified(document)["status"].get(FIELD)


def test_what_a_replica_has_signed_counts_and_nothing_else(records):
    signed = records.signed(UID, record())
    assert verified_record(records, staged(signed)) == signed
    others = rollouts_of(keys_of(None))
    for written in (
        record().document(),
        {**signed, "action": "deny"},
        {**signed, "sequence": 9},
        {**signed, "more": 1},
        {**signed, "signature": FOREIGN.signature(b"")},
        {**signed, "signature": NEXT.signature(b"")},
        {**signed, "signature": 5},
        {**signed, "sequence": True},
        {**signed, "observedGeneration": "1"},
        "text",
        [],
    ):
        assert verified_record(others, staged(written)) is None, written
    assert verified_record(rollouts_of(keys_of(None)), staged(signed, uid="uid-2")) is None


def test_an_earlier_record_and_none_leave_the_latest_as_it_is(records):
    earlier, latest = (
        records.signed(UID, record()),
        records.signed(UID, record("deny", sequence=2)),
    )
    for written in (latest, earlier, None, "x"):
        assert verified_record(records, staged(written)) == latest
    assert records.following(UID, 1) == 3


def test_a_generation_has_its_own_record_and_before_it_that_of_the_one_before(records):
    first = records.signed(UID, record("deny", sequence=7))
    assert verified_record(records, staged(first)) == first
    assert verified_record(records, staged(first, generation=2)) == first
    second = records.signed(UID, record(generation=2))
    assert verified_record(records, staged(second, generation=2)) == second
    # A restore of etcd brings back the first, with what was its record.
    assert verified_record(records, staged(first)) == first


def test_the_copy_beside_the_generation_counts_as_the_status_does(records):
    latest = records.signed(UID, record("deny", sequence=2))
    records.take(UID, latest)
    assert verified_record(records, staged(None)) == latest
    assert verified_record(records, staged(records.signed(UID, record()))) == latest


def test_a_roll_out_that_was_taken_away_has_no_record_ever_after(records):
    latest = records.signed(UID, record("deny", sequence=2))
    notified = []
    records.listeners.append(notified.append)
    assert verified_record(records, staged(latest)) == latest
    assert verified_record(records, staged(latest, annotations={})) is None
    assert len(notified) == 2
    assert records.of_generation(UID, 1)["state"] == ENDED
    assert verified_record(records, staged(latest)) is None
    assert records.following(UID, 1) == 4


def test_without_keys_records_count_as_they_are_written(keys, records):
    keys.ring = KeyRing()
    unsigned = record("deny", sequence=2).document()
    assert verified_record(records, staged(unsigned)) == unsigned
    # Once there is a key what was known is signed by it, and what is not signed counts no more.
    keys.ring = KeyRing((KEY,))
    assert verified_record(records, staged({**unsigned, "sequence": 5})) == unsigned


def test_until_it_is_known_which_keys_there_are_nothing_is_decided(keys, records):
    keys.is_settled = False
    document = staged(record("deny", sequence=2).document())
    assert records.verified(document) is document
    keys.is_settled = True
    assert verified_record(records, document) is None


def test_what_an_earlier_key_has_signed_counts_and_is_signed_anew(keys, records):
    by_first = records.signed(UID, record())
    keys.ring = KeyRing((NEXT, KEY))
    assert verified_record(records, staged(by_first)) == by_first
    by_next = records.signed(UID, dataclasses.replace(record()))
    assert by_next != by_first
    assert verified_record(records, staged(by_next)) == by_next


def test_a_copy_in_the_secret_outlives_both_others(keys, records):
    earlier = records.signed(UID, record())
    latest = records.signed(UID, record("deny", sequence=2))
    verified_record(records, staged(latest))
    keys.copies = copies_of(records)
    assert copies_of(records, keys.copies) is None
    fresh = rollouts_of(keys)
    fresh.take(UID, earlier)
    assert verified_record(fresh, staged(earlier)) == latest
    # By another key it is signed anew.
    keys.ring = KeyRing((NEXT,))
    signed = verified_record(rollouts_of(keys), staged(earlier))
    assert {**signed, "signature": ""} == {**latest, "signature": ""}
    assert signed["signature"].startswith(NEXT.name)


def test_the_latest_of_two_generations_is_kept_whoever_writes_later(records):
    verified_record(records, staged(records.signed(UID, record(sequence=5))))
    first = copies_of(records)
    behind = rollouts_of(keys_of(None))
    verified_record(behind, staged(behind.signed(UID, record(sequence=4))))
    assert copies_of(behind, first) is None
    for generation in (2, 3):
        signed = records.signed(UID, record(generation=generation))
        verified_record(records, staged(signed, generation=generation))
    (kept,) = read_copies(copies_of(records, first)).values()
    assert [one["observedGeneration"] for one in kept] == [2, 3]
    assert not any("signature" in one for one in kept)


def test_copies_of_what_is_gone_go_and_beyond_the_bound_what_is_not_there(records, monkeypatch):
    for number in range(3):
        uid = f"uid-{number}"
        document = staged(records.signed(uid, record()), uid=uid)
        document["metadata"]["name"] = f"words-{number}"
        verified_record(records, document)
    all_three = copies_of(records)
    records.forget("Alpha", "words-1")
    two = copies_of(records, all_three)
    assert list(read_copies(two)) == ["uid-0", "uid-2"]
    another = rollouts_of(keys_of(None))
    verified_record(another, staged(another.signed("uid-9", record()), uid="uid-9"))
    monkeypatch.setattr(rollout_copies, "COPIES_BYTES_MAX", 350)
    assert list(read_copies(copies_of(another, two))) == ["uid-2", "uid-9"]
    # Where all are there what is new is left out, and nothing is written for ever.
    document = staged(records.signed("uid-3", record()), uid="uid-3")
    document["metadata"]["name"] = "words-3"
    verified_record(records, document)
    assert copies_of(records, two) is None


@pytest.mark.parametrize("copies", ["", "x", "bm90IEpTT04=", "W10=", "eyJ1IjogNX0="])
def test_what_is_no_copy_is_as_if_it_were_not_there(copies):
    assert not any(read_copies(copies).values())
