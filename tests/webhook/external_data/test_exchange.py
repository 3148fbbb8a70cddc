"""A question to a provider is known again by what it asks."""

from webhook.external_data.exchange import ProviderRequest, ProviderResponse


def test_the_same_keys_in_another_order_are_another_question() -> None:
    answers = {ProviderRequest("p", ("a", "b")): ProviderResponse((("a", 1),), (), 200)}
    assert ProviderRequest("p", ("a", "b")) in answers
    assert ProviderRequest("p", ("b", "a")) not in answers
