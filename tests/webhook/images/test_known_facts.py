"""Facts about images: their lifetime in the cache, and answers while a registry fails."""

import asyncio
import datetime as dt

import pytest

from tests.webhook.images.signing import (
    NOW,
    Authority,
    bundle,
    envelope,
    new_key,
    pem,
    simply_signed,
    statement,
)
from tests.webhook.images.verifying import IMAGE, PROVENANCE, World, by_key, policy
from webhook import log
from webhook.images import facts_file, kept, known_facts
from webhook.images.facts_file import FactsFile, UnusableFactsFile
from webhook.images.known_facts import KnownFacts, UnansweredImage
from webhook.images.layout import ImageLayout
from webhook.metrics.registry import Registry


class Counted(ImageLayout):
    """A folder that counts what it is asked."""

    request_count = 0

    async def fetch(self, reference):
        self.request_count += 1
        return await super().fetch(reference)


class Time:
    """A clock that is set."""

    def __init__(self):
        self.now = NOW.timestamp()

    def __call__(self):
        return self.now


def asking(world, policies, questions, file=None):
    """Run questions of one provider: each is called with it, its registry and its clock."""

    async def run():
        clock, registry = Time(), Counted(world.directory)
        async with asyncio.TaskGroup() as tasks:
            logger = log.open_log().logger("test")
            known = KnownFacts(
                registry, policies, tasks, 60, logger, metrics=Registry(), file=file, clock=clock
            )
            await questions(known, registry, clock)

    asyncio.run(run())


@pytest.fixture
def world(tmp_path):
    return World(tmp_path / "images")


def test_facts_are_kept_by_digest_and_trust_and_tags_are_resolved_anew(world):
    key = new_key()
    world.layout.sign_simply(world.image, [simply_signed(key, world.image)])

    async def questions(known, registry, clock):
        assert (await known.value(IMAGE))["verified"]
        first = registry.request_count
        assert (await known.value(IMAGE))["verified"]
        assert registry.request_count == first
        clock.now += known_facts.TAG_SECONDS + 1
        assert (await known.value(IMAGE))["verified"]
        assert registry.request_count == first + 1  # the tag alone
        clock.now += known_facts.FACTS_SECONDS
        assert (await known.value(f"registry.example/app@{world.image}"))["verified"]
        assert registry.request_count > first + 1
        known.policies = (policy([by_key(new_key())]),)  # another root of trust
        assert not (await known.value(IMAGE))["verified"]

    asking(world, [policy([by_key(key)])], questions)


def test_an_image_that_is_signed_later_is_seen(world):
    key = new_key()

    async def questions(known, registry, clock):
        assert not (await known.value(IMAGE))["verified"]
        world.layout.sign_simply(world.image, [simply_signed(key, world.image)])
        assert not (await known.value(IMAGE))["verified"]
        clock.now += known_facts.MISSING_SECONDS + 1
        assert (await known.value(IMAGE))["verified"]

    asking(world, [policy([by_key(key)])], questions)


def test_conditions_are_judged_anew_of_facts_that_are_kept(world):
    key = new_key()
    made = {"on": "2027-05-01T11:00:00Z"}
    sealed, _, _ = envelope(key, statement(world.image, PROVENANCE, made))
    world.layout.attach(world.image, bundle(sealed))
    fresh = {"cel": "timestamp(now) - timestamp(predicate.on) < duration('2h')"}
    verification = policy(
        [by_key(key)],
        signatures="Ignored",
        attestations=[{"predicateType": PROVENANCE, "conditions": [fresh]}],
    )

    async def questions(known, registry, clock):
        at = f"registry.example/app@{world.image}"
        assert (await known.value(at))["verified"]
        first = registry.request_count
        clock.now += 3600
        assert not (await known.value(at))["verified"]
        assert registry.request_count == first

    asking(world, [verification], questions)


def test_an_own_authority_s_certificate_ends_though_its_facts_are_kept(world):
    authority, signer = Authority("ours"), new_key()
    certificate = authority.issue(signer)
    sealed, _, _ = envelope(signer, statement(world.image))
    world.layout.attach(world.image, bundle(sealed, certificate=certificate))
    held = {"authorities": {"data": pem(authority.certificate).decode()}}
    own = {"name": "own", "certificate": held, "transparencyLog": "Ignored"}

    async def questions(known, registry, clock):
        assert (await known.value(IMAGE))["verified"]
        clock.now = (NOW + dt.timedelta(minutes=15)).timestamp()
        assert not (await known.value(IMAGE))["verified"]

    asking(world, [policy([own])], questions)


def test_a_registry_that_fails_leaves_the_last_facts_marked(world):
    key = new_key()
    world.layout.sign_simply(world.image, [simply_signed(key, world.image)])
    index = world.directory / "index.json"

    async def questions(known, registry, clock):
        assert "stale" not in await known.value(IMAGE)
        text = index.read_text()
        index.unlink()
        index.mkdir()
        clock.now += known_facts.TAG_SECONDS + 1
        value = await known.value(IMAGE)
        assert (value["verified"], value["stale"]) == (True, True)
        with pytest.raises(UnansweredImage):
            await known.value("registry.example/other:1")
        clock.now += kept.STALE_SECONDS
        with pytest.raises(UnansweredImage):
            await known.value(IMAGE)
        index.rmdir()
        index.write_text(text)
        assert "stale" not in await known.value(IMAGE)

    asking(world, [policy([by_key(key)])], questions)


def test_a_fault_of_ours_costs_its_image_alone(world):
    key = new_key()
    world.layout.sign_simply(world.image, [simply_signed(key, world.image)])

    async def questions(known, registry, clock):
        broken = registry.referrers
        registry.referrers = None  # any request to it is a TypeError then
        with pytest.raises(UnansweredImage, match="a fault within the provider"):
            await known.value(IMAGE)
        registry.referrers = broken
        assert (await known.value(IMAGE))["verified"]

    asking(world, [policy([by_key(key)])], questions)


def test_what_is_kept_is_bounded_by_number_and_size(monkeypatch):
    monkeypatch.setattr(kept, "ENTRIES_MAX", 3)
    monkeypatch.setattr(kept, "KEPT_BYTES_MAX", 100)
    store = kept.KeptValues("digest", Time())
    for number in range(5):
        store.put(str(number), number, 10, 1)
    assert len(store) == 3
    store.put("large", 1, 10, 99)
    assert store.get("3") is None
    assert store.get("large") == (1, True)
    store.put("too large", 1, 10, 101)
    assert store.get("too large") is None
    store.put("large", 2, 10, 1)
    assert store.get("large") == (2, True)


def test_what_is_known_outlives_a_restart(world, tmp_path):
    key = new_key()
    world.layout.sign_simply(world.image, [simply_signed(key, world.image)])
    sealed, _, _ = envelope(key, statement(world.image, PROVENANCE, {"built": "here"}))
    world.layout.attach(world.image, bundle(sealed))
    here = {"cel": "predicate.built == 'here'"}
    verification = policy(
        [by_key(key)], attestations=[{"predicateType": PROVENANCE, "conditions": [here]}]
    )
    path = tmp_path / "known.db"
    values = []

    async def first(known, registry, clock):
        values.append(await known.value(IMAGE))
        file.write(file.take(), clock())

    file = FactsFile(path)
    asking(world, [verification], first, file)
    file.close()
    assert path.stat().st_mode & 0o777 == 0o600

    async def again(known, registry, clock):
        known.restore(file.rows(clock()))
        values.append(await known.value(IMAGE))
        assert registry.request_count == 0
        (clock.now) += known_facts.TAG_SECONDS + 1
        await known.value(IMAGE)
        assert registry.request_count == 1
        known.policies = (policy([by_key(new_key())]),)  # facts of another root of trust
        assert not (await known.value(IMAGE))["verified"]

    file = FactsFile(path)
    asking(world, [verification], again, file)
    assert values[0]["verified"]
    assert values[0] == values[1]


def test_a_file_of_another_release_or_of_anything_else_is_begun_anew(world, tmp_path, monkeypatch):
    path = tmp_path / "known.db"
    path.write_bytes(b"no database of anybody's" * 100)
    file = FactsFile(path)
    now = Time()
    store: kept.KeptValues[str] = kept.KeptValues("digest", now, file)
    store.put("a", "sha256:1", 10, 1)
    file.write(file.take(), now())
    assert [row.key for row in file.rows(now())] == ["a"]
    file.close()
    monkeypatch.setattr(facts_file, "__version__", "99.0")
    file = FactsFile(path)
    assert list(file.rows(now())) == []
    file.close()
    with pytest.raises(UnusableFactsFile, match="a folder of none"):
        FactsFile(tmp_path / "a folder of none" / "known.db")


def test_rows_that_are_old_of_the_future_or_unreadable_are_passed_over(tmp_path):
    file, now = FactsFile(tmp_path / "known.db"), Time()
    for name, after in (("old", -kept.STALE_SECONDS - 1), ("good", -1), ("future", 5)):
        moment = now() + after
        file.put("digest", name, kept.Kept(f"sha256:{name}", moment, moment + 10, 1))
    file.write(file.take(), now() - 10)
    for kind, value in (("digest", b"{"), ("digest", b"1"), ("facts", b"{}"), ("other", b"1")):
        file._connection.execute(
            "INSERT OR REPLACE INTO known VALUES (?, ?, ?, ?, 1, ?)",
            (kind, value.hex(), now(), now(), value),
        )
    assert [row.key for row in file.rows(now())] == ["good"]
    file.write({}, now())
    assert file._connection.execute("SELECT count(*) FROM known WHERE key='old'").fetchone() == (0,)
    file.close()
    with pytest.raises(UnusableFactsFile):
        file.write({("digest", "a"): None}, now())


def test_what_makes_room_in_memory_makes_room_in_the_file(tmp_path, monkeypatch):
    monkeypatch.setattr(kept, "ENTRIES_MAX", 3)
    file, now = FactsFile(tmp_path / "known.db"), Time()
    store = kept.KeptValues("digest", now, file)
    for number in range(5):
        store.put(str(number), f"sha256:{number}", 10, 1)
        file.write(file.take(), now())
    assert sorted(row.key for row in file.rows(now())) == ["2", "3", "4"]
    monkeypatch.setattr(facts_file, "WAITING_MAX", 2)
    for number in range(5):
        file.put("digest", str(number), kept.Kept("sha256:1", now(), now(), 1))
    assert len(file.take()) == 2
    file.close()


def test_a_question_that_nobody_waits_for_any_more_is_asked_to_its_end(world):
    """Each key has one flight, which outlives the request that began it."""
    key = new_key()
    world.layout.sign_simply(world.image, [simply_signed(key, world.image)])

    async def questions(known, registry, clock):
        held, fetch = asyncio.Event(), registry.fetch

        async def slow(reference):
            await held.wait()
            return await fetch(reference)

        registry.fetch = slow
        known._deadline_seconds = 0.01
        for _ in range(3):
            with pytest.raises(UnansweredImage, match="it is still asked"):
                await known.value(IMAGE)
        assert len(known._flights) == 1
        held.set()
        known._deadline_seconds = 60
        assert (await known.value(IMAGE))["verified"]

    asking(world, [policy([by_key(key)])], questions)
