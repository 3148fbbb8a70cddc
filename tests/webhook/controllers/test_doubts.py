"""Nobody takes back at once what it had agreed to: it may be the one who has not heard."""

from webhook.controllers.doubts import RENEWAL_SECONDS, Doubts
from webhook.controllers.status_kinds import LabelledSubject
from webhook.controllers.turns import TURN_SECONDS

SUBJECT = LabelledSubject("ConstraintTemplatePodStatus", "", "alpha")


class Renewals(list[str]):
    """The kinds whose watches were begun anew."""

    def __call__(self, kind: str) -> None:
        self.append(kind)


def test_what_nobody_agreed_to_and_what_is_new_to_us_is_written_at_once() -> None:
    renewals = Renewals()
    doubts = Doubts(renewals)
    assert doubts.until(SUBJECT, ["one"], 100.0) == 0.0
    doubts.agree(SUBJECT, ["one"])
    assert doubts.until(SUBJECT, ["two"], 101.0) == 0.0
    assert renewals == []


def test_who_sees_what_it_agreed_to_changed_waits_then_renews_its_watches_then_writes() -> None:
    renewals = Renewals()
    doubts = Doubts(renewals)
    doubts.agree(SUBJECT, ["one"])
    assert doubts.until(SUBJECT, ["one"], 100.0) == 100.0 + TURN_SECONDS
    assert doubts.until(SUBJECT, ["one"], 101.0) == 100.0 + TURN_SECONDS
    assert renewals == []
    now = 100.0 + TURN_SECONDS
    assert doubts.until(SUBJECT, ["one"], now) == now + TURN_SECONDS
    assert doubts.until(SUBJECT, ["one"], now + 1.0) == now + TURN_SECONDS
    assert renewals == [SUBJECT.kind]
    assert doubts.until(SUBJECT, ["one"], now + TURN_SECONDS) <= now + TURN_SECONDS


def test_a_reason_that_is_heard_ends_the_doubt() -> None:
    renewals = Renewals()
    doubts = Doubts(renewals)
    doubts.agree(SUBJECT, ["one"])
    assert doubts.until(SUBJECT, ["one"], 100.0) > 100.0
    assert doubts.until(SUBJECT, ["two"], 101.0) == 0.0
    doubts.agree(SUBJECT, ["two"])
    assert doubts.until(SUBJECT, ["two"], 200.0) == 200.0 + TURN_SECONDS


def test_who_undoes_each_write_costs_a_new_watch_now_and_then_at_most() -> None:
    renewals = Renewals()
    doubts = Doubts(renewals)
    now = 100.0
    while now < 100.0 + RENEWAL_SECONDS:
        doubts.agree(SUBJECT, ["one"])
        while (until := doubts.until(SUBJECT, ["one"], now)) > now:
            now = until
    assert renewals == [SUBJECT.kind]
    doubts.forget(SUBJECT)
    assert doubts.until(SUBJECT, ["one"], now) == 0.0
