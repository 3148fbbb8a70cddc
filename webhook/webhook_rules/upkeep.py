"""Plans changes of an entry's rules: widens them at once, narrows them after a delay.

Each replica decides alone, by the policies that it enforces and by the configuration. Replicas see
policies at different times, so none removes a rule that another may need. A replica removes a rule
that it has not needed for a whole delay. If another replica restores the rule, the first waits
longer the next time.
"""

from __future__ import annotations

from dataclasses import field, replace
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from webhook.api.shapes import annotations_of, object_of, objects_of
from webhook.constraint.failure_policy import FAIL
from webhook.duration import duration_seconds
from webhook.values import dataclass
from webhook.webhook_rules.rules import RulePart, parts_of, read_rules, simplified, written

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

    from webhook.webhook_rules.entries import WebhookEntry
    from webhook.webhook_rules.kinds import GroupAndKind, RuleTarget
    from webhook.webhook_rules.needs import Need

DELAY: Final = "waddle.dev/webhook-rules-delay"
"""The annotation of a configuration with the delay before an unneeded rule is removed."""

DELAY_SECONDS: Final = 300.0
"""The default delay, in seconds: replicas lag by seconds, and a replaced policy is absent for one
or two."""

DELAY_SECONDS_MIN: Final = 1.0
FACTOR_MAX: Final = 64
"""The largest factor for a replica whose removals are always undone: it retries every few hours."""

TAKEN_MAX: Final = 10_000
"""The most removed parts that a replica remembers, some 200 bytes each."""


class RuleChange(NamedTuple):
    """The new rules of an entry, None for no change.

    And the seconds until the next check, if any.
    """

    parts: frozenset[RulePart] | None = None
    again_seconds: float | None = None
    is_wider: bool = False


@dataclass(slots=True)
class EntryUpkeep:
    """The memory of a replica on one entry."""

    unneeded: dict[RulePart, float] = field(default_factory=dict)
    """The time since which a part of the entry's rules has not been needed here."""
    taken: dict[RulePart, int] = field(default_factory=dict)
    """The number of removals of a part since it was last needed here."""

    def change(
        self, live: frozenset[RulePart], needed: frozenset[RulePart], now: float, delay: float
    ) -> RuleChange:
        """Decides what to write, from the entry's rules and the needed rules."""
        missing, excess = _beyond(needed, live), _beyond(live, needed)
        self.unneeded = {rule: self.unneeded.get(rule, now) for rule in excess}
        self.taken = {rule: count for rule, count in self.taken.items() if rule not in needed}
        waits = {rule: self.unneeded[rule] + self._wait(rule, delay) - now for rule in excess}
        due = {rule for rule in excess if waits[rule] <= 0}
        again = min((waits[rule] for rule in excess - due), default=None)
        if missing or due:
            return RuleChange(simplified((live - due) | needed), again, bool(missing))
        return RuleChange(None, again)

    def _wait(self, part: RulePart, delay: float) -> float:
        """Returns the delay of an unneeded part in seconds.

        Longer if other replicas restored it.
        """
        return float(delay * min(2 ** self.taken.get(part, 0), FACTOR_MAX))

    def written(self, before: frozenset[RulePart], after: frozenset[RulePart]) -> None:
        """Records removed parts: a restored part gets a new and longer delay."""
        if len(self.taken) > TAKEN_MAX:
            self.taken.clear()
        for rule in before - after:
            self.unneeded.pop(rule, None)
            self.taken[rule] = self.taken.get(rule, 0) + 1


def _beyond(parts: frozenset[RulePart], known: frozenset[RulePart]) -> set[RulePart]:
    """Returns the parts that no known part covers."""
    return {rule for rule in parts - known if not any(other.covers(rule) for other in known)}


def delay_of(configuration: Mapping[str, Any]) -> float:
    """Returns the delay before a configuration's unneeded rule is removed, in seconds."""
    value = annotations_of(configuration).get(DELAY)
    seconds = duration_seconds(value) if type(value) is str else None
    return DELAY_SECONDS if seconds is None else max(seconds, DELAY_SECONDS_MIN)


def is_kept(entry: WebhookEntry) -> bool:
    """Whether an entry's rules follow the policies.

    An entry that fails closed for all constraints keeps its written rules: its constraints are not
    checked for locking the cluster out.
    """
    return not entry.fails_closed or entry.failure_policy == FAIL


def needed_parts(
    entry: WebhookEntry,
    needs: Iterable[Need],
    generators: Mapping[GroupAndKind, frozenset[GroupAndKind]],
    served: Callable[[str, str], tuple[RuleTarget, ...] | None],
    own_groups: Collection[str],
    *,
    validates: bool = True,
) -> frozenset[RulePart]:
    """Returns the rules that an entry needs.

    A validating entry that fails open also gets requests on changed policies: the webhook checks
    them. No policy adds a rule that names our own groups: a broken policy must not stand in the way
    of its repair.
    """
    own_parts = {
        RulePart(group, "*", operation)
        for group in (own_groups if validates and not entry.fails_closed else ())
        for operation in ("CREATE", "UPDATE")
    }
    parts = (
        need
        for need in needs
        if None in (entry.failure_policy, need.failure_policy)
        or need.failure_policy == entry.failure_policy
    )
    of_policies = parts_of(parts, generators, served)
    return simplified(own_parts | {part for part in of_policies if part.group not in own_groups})


def with_rules(entry: WebhookEntry, parts: frozenset[RulePart]) -> WebhookEntry:
    """Returns the entry with other rules."""
    return replace(entry, document={**entry.document, "rules": written(parts)})


def lock_outs(entry: WebhookEntry, parts: frozenset[RulePart]) -> Iterator[str]:
    """Yields reasons why an entry must not have these rules."""
    yield from with_rules(entry, parts).lock_outs()


def replaced(
    configuration: Mapping[str, Any], rules: Mapping[str, frozenset[RulePart]]
) -> dict[str, Any]:
    """Returns a configuration with the rules of some entries replaced, by their names."""
    webhooks = [
        {**webhook, "rules": written(rules[name])}
        if (name := str(webhook.get("name"))) in rules
        else webhook
        for webhook in objects_of(configuration.get("webhooks"))
    ]
    return {**object_of(configuration), "webhooks": webhooks}


def rules_of(entry: WebhookEntry) -> frozenset[RulePart]:
    """Returns the rules of an entry."""
    return read_rules(entry.document.get("rules"))
