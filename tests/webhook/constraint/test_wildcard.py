"""Many patterns mean what each of them means."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from webhook.constraint import wildcard

TEXT = st.text(alphabet="ab*-", max_size=5)


@given(st.lists(TEXT, min_size=wildcard.FEW + 1, max_size=40), st.lists(TEXT, max_size=10))
def test_many_patterns_match_what_one_of_them_matches(
    patterns: list[str], names: list[str]
) -> None:
    test = wildcard.any_of(patterns)
    for name in (*names, *patterns):
        assert test(name) == any(wildcard.matches(pattern, name) for pattern in patterns), name


def test_a_name_is_not_compared_with_each_of_very_many_patterns() -> None:
    """A Config with 60,000 patterns cost each admission 38 ms."""
    compared: list[str] = []

    class Counting(str):
        __slots__ = ()

        def startswith(self, *of: Any) -> bool:
            compared.append(self)
            return str.startswith(self, *of)

    test = wildcard.any_of([Counting(f"team-{number}-*") for number in range(1000)])
    compared.clear()
    assert not test("shop")
    assert test("team-7-a")
    assert compared == []
