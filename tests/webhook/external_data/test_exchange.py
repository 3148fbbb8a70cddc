"""A question to a provider is known again by what it asks."""

import pytest

from webhook.external_data.exchange import (
    ROUNDS_MAX,
    TOO_MANY_ROUNDS,
    ProviderRequest,
    ProviderResponse,
    noting,
)


def test_the_same_keys_in_another_order_are_another_question() -> None:
    answers = {ProviderRequest("p", ("a", "b")): ProviderResponse((("a", 1),), (), 200)}
    assert ProviderRequest("p", ("a", "b")) in answers
    assert ProviderRequest("p", ("b", "a")) not in answers


@pytest.mark.parametrize("rounds", [ROUNDS_MAX - 1, ROUNDS_MAX])
def test_a_question_after_the_last_round_stands_in_the_record_as_a_failure(rounds: int) -> None:
    early, late = ProviderRequest("p", ("a",)), ProviderRequest("p", ("b",))
    answer = ProviderResponse((("a", 1),), (), 200)
    answers = {early: answer}
    known = noting(answers, rounds)
    assert known(early) == answer
    failed = TOO_MANY_ROUNDS if rounds == ROUNDS_MAX else None
    assert known(late) == answers.get(late) == failed
