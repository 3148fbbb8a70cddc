"""Rules that follow policies, kept by replicas that learn of policies at different times.

A world of a few replicas around one entry: each sees policies, and what others wrote, late. Faults are
planted in how they decide, and each is found.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pytest

from webhook.webhook_rules import upkeep
from webhook.webhook_rules.rules import RulePart
from webhook.webhook_rules.upkeep import EntryUpkeep, RuleChange, delay_of

if TYPE_CHECKING:
    from collections.abc import Callable

Parts = frozenset[RulePart]

DELAY = 300.0
FLIPS_MAX = 2 * 8
"""Writes about one part by one replica that another never agrees with: a few in hours, each longer
after the last, and as many that bring it back."""

LAG_SECONDS_MAX = 20
"""The longest lag of a healthy replica, in seconds."""


def part(name: str) -> RulePart:
    return RulePart("", name, "CREATE")


PODS, SERVICES = part("pods"), part("services")
EVERY = RulePart("*", "*", "*")


def test_what_is_missing_is_written_at_once_and_what_is_too_much_after_the_delay() -> None:
    one = EntryUpkeep()
    assert one.change(frozenset({PODS}), frozenset({SERVICES}), 0.0, DELAY) == RuleChange(
        frozenset({PODS, SERVICES}), DELAY, is_wider=True
    )
    both = frozenset({PODS, SERVICES})
    assert one.change(both, frozenset({SERVICES}), DELAY - 1, DELAY) == RuleChange(None, 1.0)
    assert one.change(both, frozenset({SERVICES}), DELAY, DELAY) == RuleChange(
        frozenset({SERVICES}), None
    )
    assert one.change(frozenset({SERVICES}), frozenset({SERVICES}), DELAY, DELAY) == RuleChange()


def test_what_is_needed_again_begins_its_delay_anew() -> None:
    one, both = EntryUpkeep(), frozenset({PODS, SERVICES})
    one.change(both, frozenset({SERVICES}), 0.0, DELAY)
    assert one.change(both, both, 200.0, DELAY) == RuleChange()
    assert one.change(both, frozenset({SERVICES}), 300.0, DELAY) == RuleChange(None, DELAY)


def test_rules_of_everything_cover_what_is_needed_until_they_are_narrowed() -> None:
    one = EntryUpkeep()
    assert one.change(frozenset({EVERY}), frozenset({PODS}), 0.0, DELAY).parts is None
    assert one.change(frozenset({EVERY}), frozenset({PODS}), DELAY, DELAY).parts == frozenset(
        {PODS}
    )


def test_who_took_away_what_another_brings_back_waits_longer() -> None:
    one, live = EntryUpkeep(), frozenset({PODS, SERVICES})
    needed, now, waits = frozenset({SERVICES}), 0.0, []
    for _ in range(4):
        began = now
        while (change := one.change(live, needed, now, DELAY)).parts is None:
            now += 50.0
        waits.append(now - began)
        one.written(live, change.parts)
    assert waits == [DELAY, 2 * DELAY, 4 * DELAY, 8 * DELAY]
    assert one.change(live, live, now, DELAY) == RuleChange()
    assert one.change(live, needed, now, DELAY) == RuleChange(None, DELAY), "it was needed again"


@pytest.mark.parametrize(
    ("annotation", "seconds"),
    [("10m", 600.0), ("0s", 1.0), ("soon", DELAY), (5, DELAY), (None, DELAY), ("1500ms", 1.5)],
)
def test_the_delay_is_annotated(annotation: object, seconds: float) -> None:
    annotations = {} if annotation is None else {"waddle.dev/webhook-rules-delay": annotation}
    assert delay_of({"metadata": {"annotations": annotations}}) == seconds


# --- a world --------------------------------------------------------------------------------------


@dataclass
class World:
    """An entry, the needs of policies over time, and replicas that see both late."""

    seed: int
    replicas: int = 3
    stuck: bool = False
    """Whether one replica sees no policy that comes after the beginning."""
    live: Parts = frozenset()
    writes: int = 0
    faults: list[str] = field(default_factory=list)
    configurations: list[tuple[float, Parts]] = field(default_factory=list)

    def run(self, hours: int = 6) -> World:
        """Three busy hours, and then quiet ones."""
        chance = random.Random(self.seed)
        names = [part(name) for name in "abcdef"]
        needed: Parts = frozenset(names[:2])
        history = [(-1000.0, needed)]
        self.configurations = [(-1000.0, self.live)]
        keepers = [EntryUpkeep() for _ in range(self.replicas)]
        enforced: set[RulePart] = set()
        left: dict[RulePart, float] = {}
        for second in range(0, hours * 3600, 5):
            now = float(second)
            if second < 3 * 3600 and chance.random() < 0.01:
                one = chance.choice(names)
                needed = needed ^ {one}
                history.append((now, needed))
                if one not in needed:
                    enforced.discard(one)
                    left[one] = now
            for number, keeper in enumerate(keepers):
                is_stuck = self.stuck and number == 0
                lag = chance.uniform(0, LAG_SECONDS_MAX)
                seen = history[0][1] if is_stuck else _at(history, now - lag)
                if _at(self.configurations, now - chance.choice([0, 0, 5])) != self.live:
                    continue  # the swap is refused: another was faster
                gone = self._swap(keeper, seen, now)
                if not is_stuck:
                    self._look(gone - needed, left, now)
            enforced |= needed & self.live
            if not self.stuck and (unsent := enforced - self.live):
                self.faults.append(f"{unsent} count as enforced and are not sent")
        last = history[-1][1]
        if not self.stuck and self.live != last:
            self.faults.append(f"at the end {sorted(self.live ^ last)} differs")
        if self.stuck and not self.live >= last:
            self.faults.append("what is needed is not sent")
        if self.writes > 2 * len(history) + self.replicas * len(names) * FLIPS_MAX:
            self.faults.append(f"{self.writes} writes for {len(history)} changes")
        return self

    def _swap(self, keeper: EntryUpkeep, seen: Parts, now: float) -> Parts:
        """Let a replica look and write; what it takes away."""
        change = keeper.change(self.live, seen, now, DELAY)
        if change.parts is None:
            return frozenset()
        keeper.written(self.live, change.parts)
        gone = self.live - change.parts
        self.live = change.parts
        self.configurations.append((now, self.live))
        self.writes += 1
        return gone

    def _look(self, gone: Parts, left: dict[RulePart, float], now: float) -> None:
        """Whether what went was not needed for the delay, but for how far a replica is behind."""
        for one in gone:
            age = now - left.get(one, -1000.0)
            if age < DELAY - LAG_SECONDS_MAX:
                self.faults.append(f"{one.resource} is narrowed {age:g} s after")


def _at(history: list[tuple[float, Parts]], moment: float) -> Parts:
    return next(parts for at, parts in reversed(history) if at <= moment or at < 0)


@pytest.mark.parametrize("stuck", [False, True])
def test_replicas_that_are_behind_one_another_agree_and_take_away_nothing_that_is_needed(
    stuck: bool,
) -> None:
    for seed in range(6):
        assert World(seed, stuck=stuck).run().faults == [], seed


def _narrow_at_once(change: Callable[..., RuleChange]) -> Callable[..., RuleChange]:
    return lambda self, live, needed, now, _: change(self, live, needed, now, 0.0)


def _never_narrow(change: Callable[..., RuleChange]) -> Callable[..., RuleChange]:
    return lambda self, live, needed, now, _: change(self, live, needed, now, 1e9)


def _write_only_what_is_needed_here(change: Callable[..., RuleChange]) -> Callable[..., RuleChange]:
    def planted(
        self: EntryUpkeep, live: Parts, needed: Parts, now: float, delay: float
    ) -> RuleChange:
        changed = change(self, live, needed, now, delay)
        return changed if changed.parts is None else changed._replace(parts=needed)

    return planted


def _widen_late(change: Callable[..., RuleChange]) -> Callable[..., RuleChange]:
    def planted(
        self: EntryUpkeep, live: Parts, needed: Parts, now: float, delay: float
    ) -> RuleChange:
        changed = change(self, live, needed, now, delay)
        return RuleChange() if changed.is_wider else changed

    return planted


@pytest.mark.parametrize(
    "plant", [_narrow_at_once, _never_narrow, _write_only_what_is_needed_here, _widen_late]
)
def test_planted_faults_are_found(
    plant: Callable[[Callable[..., RuleChange]], Callable[..., RuleChange]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(EntryUpkeep, "change", plant(EntryUpkeep.change))
    assert any(World(seed).run().faults for seed in range(6))


def test_a_replica_that_is_never_informed_does_not_flip_rules_for_ever(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The planted fault: it does not wait longer. The bound of writes finds it."""
    assert all(World(seed, stuck=True).run(12).faults == [] for seed in range(3))
    monkeypatch.setattr(upkeep, "FACTOR_MAX", 1)
    faults = [fault for seed in range(3) for fault in World(seed, stuck=True).run(12).faults]
    assert any("writes for" in fault for fault in faults)
