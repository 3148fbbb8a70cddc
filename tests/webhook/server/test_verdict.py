"""From results to the answer."""

import pytest

from webhook.constraint.constraint import Constraint
from webhook.constraint.result import Responses, Result
from webhook.server.verdict import RESULTS_AT_ONCE, judge


def result(name: str, msg: str, action: str, scoped: tuple[str, ...] = ()) -> Result:
    """A violation of a constraint."""
    return Result("target", Constraint("Kind", name, {}), msg, {}, action, scoped)


def test_nothing_found_allows() -> None:
    found = judge("u", Responses())
    assert (found.uid, found.allowed, found.code, found.message) == ("u", True, 200, "")


def test_messages_are_joined_in_the_order_of_the_results() -> None:
    found = judge("u", Responses((result("b", "two\nlines", "deny"), result("a", "one", "deny"))))
    assert (found.allowed, found.code, found.reason) == (False, 403, "Forbidden")
    assert found.message == "[b] two\nlines\n[a] one"


@pytest.mark.parametrize("action", ["dryrun", "", "no such action"])
def test_other_actions_tell_nothing(action: str) -> None:
    found = judge("u", Responses((result("a", "x", action),)))
    assert (found.allowed, found.code, found.warnings) == (True, 200, ())


def test_a_scoped_constraint_takes_each_of_its_actions() -> None:
    found = judge("u", Responses((result("a", "x", "scoped", ("deny", "warn")),)))
    assert found.message == "[a] x"
    assert found.warnings == ("[a] x",)
    assert judge("u", Responses((result("a", "x", "scoped"),))).allowed is True


def test_a_warning_of_several_lines_becomes_one() -> None:
    found = judge("u", Responses((result("a", "x\ny", "warn"),)))
    assert (found.allowed, found.code, found.warnings) == (True, 299, ("[a] x y",))


def test_a_thread_rests_while_it_judges_many_results() -> None:
    rests: list[float] = []
    many = Responses(tuple(result("a", f"x{number}", "deny") for number in range(5_000)))
    assert judge("u", many, rest=rests.append) == judge("u", many)
    assert rests == [0.0] * (5_000 // RESULTS_AT_ONCE)
