"""A provider that fails again and again is not asked for a while; nobody takes it from others."""

from webhook.external_data.suspension import (
    BACKOFF_SECONDS_MAX,
    FAULTS_MAX,
    NEWS_SECONDS,
    Suspension,
)


class Clock:
    """Seconds that a test lets go by."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def suspension(clock):
    return Suspension(clock=clock, chance=lambda: 0.5)


def test_faults_of_the_connection_suspend_it_for_everybody_until_a_trial_succeeds():
    clock = Clock()
    held = suspension(clock)
    for _ in range(FAULTS_MAX - 1):
        held.failed("alice", "refused: 1", connected=False)
    assert held.refusal("bob") == ""
    held.failed("alice", "refused: 1", connected=False)
    assert held.is_open
    assert held.refusal("bob") == "refused: 1 (not asked again for 1 s, after 5 faults in a row)"
    clock.now += 1
    assert held.refusal("bob") == ""  # a trial
    assert held.refusal("carol") != ""
    held.answered("bob")
    assert not held.is_open
    assert held.refusal("carol") == ""


def test_the_back_off_doubles_up_to_its_bound():
    clock = Clock()
    held = suspension(clock)
    for _ in range(FAULTS_MAX):
        held.failed("", "down", connected=False)
    waited = []
    for _ in range(8):
        before = clock.now
        while held.refusal(""):  # until a trial is let through
            clock.now += 0.5
        waited.append(clock.now - before)
        held.failed("", "down", connected=False)
    assert waited[:4] == [1, 2, 4, 8]
    assert waited[-1] == BACKOFF_SECONDS_MAX


def test_faults_of_what_was_under_way_do_not_make_the_back_off_longer():
    clock = Clock()
    held = suspension(clock)
    for number in range(50):
        held.failed(f"user-{number}", "deadline", connected=True)
    assert "not asked again for 1 s" in held.refusal("alice")


def test_who_alone_has_it_hang_takes_it_from_nobody_else():
    """The keys may be to blame: whoever may name an image could suspend a provider else."""
    clock = Clock()
    held = suspension(clock)
    for _ in range(3 * FAULTS_MAX):
        held.failed("mallory", "deadline", connected=True)
    assert "for this user" in held.refusal("mallory")
    assert held.refusal("alice") == ""
    held.answered("alice")
    assert "for this user" in held.refusal("mallory")


def test_an_audit_that_has_it_hang_takes_it_from_nobody_else():
    """The keys are of objects that a user has written."""
    held = suspension(Clock())
    for _ in range(3 * FAULTS_MAX):
        held.failed("", "deadline", connected=True)
    assert held.refusal("") == "deadline (not asked again for 1 s, after 15 faults in a row)"
    assert held.refusal("alice") == ""
    assert not held.is_open


def test_a_provider_that_hangs_for_several_users_is_suspended_for_all():
    held = suspension(Clock())
    for number in range(FAULTS_MAX):
        held.failed(f"user-{number}", "deadline", connected=True)
    assert held.refusal("alice") != ""


def test_one_answer_ends_a_row():
    held = suspension(Clock())
    for _ in range(3):
        for _ in range(FAULTS_MAX - 1):
            held.failed("", "down", connected=False)
        held.answered("")
    assert held.refusal("") == ""


def test_who_alone_has_it_hang_is_counted_until_that_is_no_news():
    """A reader sees why all of a user's requests are refused."""
    clock = Clock()
    held = suspension(clock)
    for _ in range(FAULTS_MAX):
        assert not held.is_open_for("mallory")
        assert held.users == (0, "")
        held.failed("mallory", "deadline", connected=True)
    assert held.is_open_for("mallory")
    assert held.users == (1, "deadline")
    assert not held.is_open_for("alice")
    clock.now += NEWS_SECONDS + BACKOFF_SECONDS_MAX
    assert held.users == (0, "")
    assert held.refusal("mallory") == ""  # a trial
    assert held.users == (1, "deadline")
    held.answered("mallory")
    assert held.users == (0, "")


def test_nobody_is_counted_beside_a_provider_that_is_suspended_for_all():
    held = suspension(Clock())
    for number in range(FAULTS_MAX):
        for _ in range(FAULTS_MAX):
            held.failed(f"user-{number}", "deadline", connected=True)
    assert held.is_open
    assert held.users == (0, "")
    assert not held.is_open_for("user-0")
