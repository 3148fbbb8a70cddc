"""A replica does not revert an agreed entry at once: it may be behind itself."""

from webhook.controllers.keeper import TURN_SECONDS
from webhook.controllers.status.overwrites import RENEWAL_SECONDS, Overwrites
from webhook.controllers.status_kinds import LabelledSubject

SUBJECT = LabelledSubject("ConstraintTemplatePodStatus", "", "alpha")


def entries(**generations: int) -> list[dict[str, object]]:
    """Returns byPod entries of Pods, by their names."""
    return [{"id": pod, "observedGeneration": at} for pod, at in generations.items()]


ONE, TWO, CHANGED = entries(a=1), entries(a=2), entries(a=3)


class Renewals(list[str]):
    """The kinds whose watches were begun anew, which the API server answers or not."""

    is_answered = True

    def answered(self, kind: str) -> bool:
        return self.is_answered

    def __call__(self, kind: str) -> None:
        self.append(kind)


def test_what_nobody_agreed_to_and_what_is_new_to_us_is_written_at_once() -> None:
    renewals = Renewals()
    overwrites = Overwrites(renewals, renewals.answered)
    assert overwrites.until(SUBJECT, ONE, CHANGED, 100.0) == 0.0
    overwrites.agree(SUBJECT, ONE)
    assert overwrites.until(SUBJECT, TWO, ONE, 101.0) == 0.0
    assert renewals == []


def test_what_we_heard_may_be_older_than_what_another_has_written_of_the_same_pod() -> None:
    """An older event about its own write must not revert another replica's write about a third."""
    renewals = Renewals()
    overwrites = Overwrites(renewals, renewals.answered)
    overwrites.agree(SUBJECT, entries(a=1, b=1))
    held, expected = entries(a=1, b=3), entries(a=2, b=2)
    turn = 100.0 + TURN_SECONDS
    assert overwrites.until(SUBJECT, expected, held, 100.0) == turn
    assert overwrites.until(SUBJECT, expected, held, turn) == 0.0, (
        "nothing newer was heard: it is right"
    )
    assert renewals == [], "the watch is not silent"
    overwrites.agree(SUBJECT, expected)
    assert overwrites.until(SUBJECT, entries(a=2, b=4), expected, turn) == 0.0


def test_who_sees_what_it_agreed_to_changed_waits_then_renews_its_watches_then_writes() -> None:
    renewals = Renewals()
    overwrites = Overwrites(renewals, renewals.answered)
    overwrites.agree(SUBJECT, ONE)
    assert overwrites.until(SUBJECT, ONE, CHANGED, 100.0) == 100.0 + TURN_SECONDS
    assert overwrites.until(SUBJECT, ONE, CHANGED, 101.0) == 100.0 + TURN_SECONDS
    assert renewals == []
    now = 100.0 + TURN_SECONDS
    assert overwrites.until(SUBJECT, ONE, CHANGED, now) == now + TURN_SECONDS
    assert overwrites.until(SUBJECT, ONE, CHANGED, now + 1.0) == now + TURN_SECONDS
    assert renewals == [SUBJECT.kind]
    assert overwrites.until(SUBJECT, ONE, CHANGED, now + TURN_SECONDS) <= now + TURN_SECONDS


def test_a_reason_that_is_heard_ends_the_doubt() -> None:
    renewals = Renewals()
    overwrites = Overwrites(renewals, renewals.answered)
    overwrites.agree(SUBJECT, ONE)
    assert overwrites.until(SUBJECT, ONE, CHANGED, 100.0) > 100.0
    assert overwrites.until(SUBJECT, TWO, ONE, 101.0) == 0.0
    overwrites.agree(SUBJECT, TWO)
    assert overwrites.until(SUBJECT, TWO, CHANGED, 200.0) == 200.0 + TURN_SECONDS


def test_who_undoes_each_write_costs_a_new_watch_now_and_then_at_most() -> None:
    renewals = Renewals()
    overwrites = Overwrites(renewals, renewals.answered)
    now = 100.0
    while now < 100.0 + RENEWAL_SECONDS:
        overwrites.agree(SUBJECT, ONE)
        while (until := overwrites.until(SUBJECT, ONE, CHANGED, now)) > now:
            now = until
    assert renewals == [SUBJECT.kind]
    overwrites.forget(SUBJECT)
    assert overwrites.until(SUBJECT, ONE, CHANGED, now) == 0.0


def test_news_of_one_does_not_take_back_what_another_wrote_of_its_own() -> None:
    """An entry of an unknown Pod is not reverted either; a Pod that has gone is news of it."""
    renewals = Renewals()
    overwrites = Overwrites(renewals, renewals.answered)
    overwrites.agree(SUBJECT, entries(a=1, b=1))
    assert overwrites.until(SUBJECT, entries(a=2, b=1), entries(a=1, b=1), 100.0) == 0.0
    turn = 100.0 + TURN_SECONDS
    assert overwrites.until(SUBJECT, entries(a=2, b=1), entries(a=1, b=2), 100.0) == turn
    assert overwrites.until(SUBJECT, entries(a=2, b=1), entries(a=1, b=1, c=1), 101.0) == turn
    assert overwrites.until(SUBJECT, entries(a=2, b=2), entries(a=1, b=2), 102.0) == 0.0
    assert overwrites.until(SUBJECT, entries(b=1), entries(a=1, b=1), 103.0) == 0.0


def test_what_is_no_entry_is_taken_back_as_late_as_any_other() -> None:
    """The same entries in another order are reverted as late."""
    renewals = Renewals()
    overwrites = Overwrites(renewals, renewals.answered)
    overwrites.agree(SUBJECT, entries(a=1, b=1))
    for held in (None, "none", [1], [{}], entries(b=1, a=1)):
        assert overwrites.until(SUBJECT, entries(a=1, b=1), held, 100.0) == 100.0 + TURN_SECONDS


def test_who_renews_its_watches_writes_nothing_until_the_api_server_answers_them() -> None:
    renewals = Renewals()
    renewals.is_answered = False
    overwrites = Overwrites(renewals, renewals.answered)
    overwrites.agree(SUBJECT, ONE)
    for turn in range(1, 9):
        now = 100.0 + turn * TURN_SECONDS
        assert overwrites.until(SUBJECT, ONE, CHANGED, now) == now + TURN_SECONDS
    assert renewals == [SUBJECT.kind]
    renewals.is_answered = True
    assert overwrites.until(SUBJECT, ONE, CHANGED, now) <= now
