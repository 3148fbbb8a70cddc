"""Keys that replicas share: made, rotated with overlap, read again; and what counts by them."""

import asyncio
import base64
import json
from dataclasses import replace

import pytest

from tests.patience import PATIENCE_SECONDS
from tests.webhook.cluster.fault_server import scripted, status
from tests.webhook.controllers.bench import template
from tests.webhook.controllers.signing import (
    FOREIGN,
    KEY,
    SECRET,
    entry,
    signed_revision,
)
from webhook.api.revision import read_revision
from webhook.api.revision_outcome import TrialOutcome
from webhook.cluster.client import ClusterClient
from webhook.controllers.revisions import keys as revision_keys
from webhook.controllers.revisions.keys import (
    KEY_BYTES,
    NEWEST_SECONDS,
    SHARED_SECONDS,
    KeyRing,
    RevisionKey,
    RevisionKeys,
    read_keys,
    renewed,
)
from webhook.log import Log

DOCUMENT = template()
DOCUMENT["metadata"] |= {"uid": "u", "generation": 1}
OUTCOME = TrialOutcome("passed", "waddle-1", "uid-1", "1", "2026-01-01T00:00:00Z")
NOW = 1_800_000_000.0
LATER = RevisionKey("key-1800000000", 1_800_000_000, b"l" * KEY_BYTES)


def revision(**fields):
    """Returns a revision that a replica has signed, altered since."""
    return replace(read_revision(signed_revision(DOCUMENT, OUTCOME)), **fields)


def test_what_a_replica_has_signed_counts():
    ring = KeyRing((KEY,))
    assert ring.distrust(revision()) is None
    assert ring.distrust(read_revision(signed_revision(DOCUMENT))) is None


@pytest.mark.parametrize(
    "field",
    [
        {"name": "another"},
        {"uid": "another"},
        {"generation": 2},
        {"digest": "0" * 16},
        {"encoding": "gzip"},
        {"content": "{}"},
        {"outcome": None},
        {"outcome": replace(OUTCOME, verdict="ended")},
        {"outcome": replace(OUTCOME, message="a")},
        {"outcome": replace(OUTCOME, uid="uid-2")},
        {"outcome": replace(OUTCOME, version="2")},
        {"subject": ("templates.gatekeeper.sh/v1", "ConstraintTemplate", "another")},
        {"signature": FOREIGN.signature(revision().signed_bytes)},
        {"signature": f"{KEY.name}:"},
        {"signature": f"{KEY.name}:é"},
    ],
    ids=str,
)
def test_what_was_altered_since_does_not_count(field):
    assert KeyRing((KEY,)).distrust(revision(**field)) == "wrong_signature"


@pytest.mark.parametrize(
    ("field", "why"),
    [
        ({"signature": ""}, "unsigned"),
        ({"is_owned": False}, "no_owner"),
        ({"signature": LATER.signature(revision().signed_bytes)}, "unknown_key"),
        ({"signature": "a"}, "unknown_key"),
    ],
)
def test_what_does_not_count_has_its_reason(field, why):
    assert KeyRing((KEY,)).distrust(revision(**field)) == why


def test_a_key_signs_once_every_replica_has_read_it_and_the_first_at_once():
    both = KeyRing((LATER, KEY))
    assert both.signer(NOW + SHARED_SECONDS - 1) == KEY
    assert both.signer(NOW + SHARED_SECONDS) == LATER
    assert KeyRing((LATER,)).signer(NOW) == LATER
    assert KeyRing().signer(NOW) is None


def with_another_key(data, now):
    """The Secret's data with another key."""
    made = renewed(data, now)
    assert made is not None
    return made


def test_keys_are_made_anew_after_half_a_year_and_two_are_kept():
    first = with_another_key({"other": "x"}, NOW)
    assert [key.created for key in read_keys(first).keys] == [NOW]
    assert first["other"] == "x"
    assert renewed(first, NOW + NEWEST_SECONDS - 1) is None
    second = with_another_key(first, NOW + NEWEST_SECONDS)
    third = with_another_key(second, NOW + 2 * NEWEST_SECONDS)
    made = [key.created for key in read_keys(third).keys]
    assert made == [NOW + 2 * NEWEST_SECONDS, NOW + NEWEST_SECONDS]
    assert len({key.secret for key in (*read_keys(second).keys, *read_keys(third).keys)}) == 3


@pytest.mark.parametrize(
    "data",
    [
        {"key-1": base64.b64encode(b"short").decode()},
        {"key-1": "not base64"},
        {"key-1": None},
        {"key-01": base64.b64encode(b"k" * KEY_BYTES).decode()},
        {"another": base64.b64encode(b"k" * KEY_BYTES).decode()},
        {},
    ],
    ids=str,
)
def test_what_is_no_key_is_as_if_it_were_not_there(data):
    assert read_keys(data) == KeyRing()
    assert len(read_keys(with_another_key(data, NOW)).keys) == 1


def secret(*keys):
    """The Secret as the API server gives it."""
    data = {name: value for key in keys for name, value in entry(key).items()}
    metadata = {"name": SECRET, "namespace": "waddle-system", "resourceVersion": "1"}
    document = {"metadata": metadata, "data": data}
    return 200, [json.dumps(document).encode()], "end"


def loaded(folder, answers, *, writes=True, again=None):
    """The keys that a replica knows after its start, what it said, and what it logged."""
    failed, lines = [], []

    async def run():
        async with (
            scripted(folder, *answers) as (server, credentials),
            ClusterClient(credentials) as client,
            asyncio.timeout(PATIENCE_SECONDS),
        ):
            log = Log(lines.append).logger("keys")
            keys = RevisionKeys(client, "waddle-system", SECRET, log, writes=writes)
            await keys.load(failed.append)
            if again is not None:
                await again(keys)
            return keys.ring, [method for method, *_ in server.requests]

    ring, requests = asyncio.run(run())
    return ring, requests, failed, [json.loads(line) for line in lines]


def test_a_replica_makes_the_first_key_and_one_that_only_reads_waits_for_it(tmp_path, monkeypatch):
    monkeypatch.setattr("time.time", lambda: float(KEY.created))
    ring, _, failed, lines = loaded(tmp_path, [secret(), secret(), secret(KEY)])
    assert len(ring.keys) == 1
    assert failed == []
    assert [line["msg"] for line in lines] == ["the key that signs revisions was created"]
    ring, _, failed, lines = loaded(tmp_path, [secret()], writes=False)
    assert ring == KeyRing()
    assert failed == []
    assert lines[0]["error"] == "Secret waddle-system/waddle-revision-keys holds no key yet"


@pytest.mark.parametrize("code", [403, 404])
def test_without_the_secret_a_replica_begins_and_says_so(tmp_path, code):
    ring, _, failed, lines = loaded(tmp_path, [status(code)])
    assert ring == KeyRing()
    assert failed == []
    assert [line["msg"] for line in lines] == ["the key that signs revisions cannot be used"]
    assert "waddle-revision-keys" in lines[0]["error"]


def test_an_outage_is_waited_for_and_reported(tmp_path, monkeypatch):
    monkeypatch.setattr("time.time", lambda: float(KEY.created))
    ring, _, failed, _ = loaded(tmp_path, [status(500), secret(KEY)])
    assert ring == KeyRing((KEY,))
    assert len(failed) == 1


def test_a_key_that_is_not_known_has_the_secret_read_again(tmp_path, monkeypatch):
    monkeypatch.setattr("time.time", lambda: float(LATER.created))
    monkeypatch.setattr(revision_keys, "READ_SECONDS", PATIENCE_SECONDS * 4)

    async def again(keys):
        reported = asyncio.Event()
        keys.listeners.append(reported.set)
        by_later = revision(signature=LATER.signature(revision().signed_bytes))
        async with asyncio.TaskGroup() as tasks:
            running = tasks.create_task(keys.run())
            assert keys.distrust(by_later) == "unknown_key"
            await reported.wait()
            assert keys.distrust(by_later) is None
            running.cancel()

    monkeypatch.setattr(revision_keys, "NEWEST_SECONDS", 1e12)
    ring, *_ = loaded(tmp_path, [secret(KEY), secret(LATER, KEY)], again=again)
    assert ring == KeyRing((LATER, KEY))
