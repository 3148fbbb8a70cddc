"""Answers of providers are kept for a while, by key, within a bound."""

from webhook.external_data.cache import (
    FRESH_SECONDS,
    LARGEST_PART,
    ResponseCache,
    answered_items,
    corrected_keys,
)
from webhook.external_data.response import AnsweredKey, ProviderAnswer


class Clock:
    """Seconds that a test lets go by."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def cache(clock=None, **options):
    return ResponseCache(
        **{"value_seconds": 180.0, "error_seconds": 10.0, "clock": clock or Clock(), **options}
    )


def answer(*items, idempotent=True):
    made = tuple(AnsweredKey(*item, *("",) * (3 - len(item))) for item in items)
    return ProviderAnswer(made, "", idempotent)


def keys(lookup):
    return [item.key for item in lookup.items], list(lookup.missing)


def test_values_are_known_longer_than_errors():
    clock = Clock()
    kept = cache(clock)
    kept.keep("p", answer(("a", 1), ("b", None, "bad")))
    assert keys(kept.look("p", ["b", "c", "a", "a"])) == (["b", "a", "a"], ["c"])
    assert keys(kept.look("q", ["a"])) == ([], ["a"])
    clock.now += 10
    assert keys(kept.look("p", ["a", "b"])) == (["a"], ["b"])
    clock.now += 170
    assert keys(kept.look("p", ["a"])) == ([], ["a"])
    assert kept.bytes == len(kept) == 0


def test_nothing_is_kept_where_it_is_turned_off():
    kept = cache(value_seconds=0.0)
    kept.keep("p", answer(("a", 1), ("b", None, "bad")))
    assert len(kept) == 0
    kept = cache(error_seconds=0.0)
    kept.keep("p", answer(("a", 1), ("b", None, "bad")))
    assert len(kept) == 1


def test_what_was_used_longest_ago_makes_room():
    kept = cache(bytes_max=20_000)
    for number in range(30):
        kept.keep("p", answer((f"k{number}", "v")))
        kept.look("p", ["k0"])
    assert kept.bytes <= 20_000
    for number in range(30, 60):
        kept.keep("p", answer((f"k{number}", "v")))
        kept.look("p", ["k0"])
    assert keys(kept.look("p", ["k0", "k1", "k59"])) == (["k0", "k59"], ["k1"])
    assert kept.evicted == 60 - len(kept)


def test_an_answer_that_would_drive_out_all_others_is_not_kept():
    kept = cache(bytes_max=100_000)
    kept.keep("p", answer(("large", "x" * (100_000 // LARGEST_PART)), ("small", "x")))
    assert keys(kept.look("p", ["large", "small"])) == (["small"], ["large"])


def test_a_value_that_is_used_is_to_be_asked_for_again_once_at_half_its_time():
    clock = Clock()
    kept = cache(clock)
    kept.keep("p", answer(("a", 1)))
    kept.keep("p", answer(("b", 1), idempotent=False))
    assert kept.look("p", ["a", "b"]).aging == ()
    clock.now += 90
    assert kept.look("p", ["a", "b"]).aging == ("a",)
    assert kept.look("p", ["a"]).aging == ()
    kept.keep("p", answer(("a", None, "gone")), refreshes=True)
    assert kept.look("p", ["a"]).items == (AnsweredKey("a", 1, ""),)
    kept.keep("p", answer(("a", 2)), refreshes=True)
    clock.now += 120
    lookup = kept.look("p", ["a"])
    assert (lookup.items, lookup.aging) == ((AnsweredKey("a", 2, ""),), ("a",))


def test_whoever_wants_what_is_so_now_gets_only_what_was_just_said():
    clock = Clock()
    kept = cache(clock)
    kept.keep("p", answer(("a", 1), ("b", None, "bad")))
    kept.keep("p", answer(("c", 1), idempotent=False))
    assert keys(kept.look("p", ["a", "b", "c"], fresh=True)) == (["a"], ["b", "c"])
    clock.now += FRESH_SECONDS
    assert keys(kept.look("p", ["a"], fresh=True)) == ([], ["a"])


def test_what_one_provider_said_is_forgotten_alone_and_what_is_old_with_a_sweep():
    clock = Clock()
    kept = cache(clock)
    kept.keep("p", answer(("a", 1)))
    kept.keep("q", answer(("a", 1)))
    kept.forget("p")
    assert kept.providers() == {"q"}
    clock.now += 180
    kept.sweep()
    assert (len(kept), kept.bytes) == (0, 0)


def test_a_value_corrects_an_earlier_error_until_another_error():
    items = answer(("a", 0, "bad"), ("a", 1), ("b", 1), ("b", 0, "bad"), ("c", 0, "bad")).items
    assert corrected_keys(items) == {"a"}
    assert corrected_keys((*items, *answer(("a", 0, "worse")).items)) == frozenset()


def test_an_item_is_a_response_or_an_error():
    items = answer(("a", None), ("b", 1, "bad"), ("c", [1])).items
    assert answered_items(items) == ((("a", None), ("c", [1])), (("b", "bad"),))
