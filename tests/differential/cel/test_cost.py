"""Estimated costs beside what Kubernetes counts over an object of that size."""

from collections.abc import Iterator

import pytest

from tests.differential.cel.oracle import CelOracle
from tests.differential.cel.values import VARIABLES
from tests.programs import Programs
from webhook.cel.cost import TEXT, estimated_cost
from webhook.cel.engine import checked_expression
from webhook.cel.kubernetes import admission

ENTRIES = 40
WORD = "a" * TEXT
OBJECT = {
    "numbers": list(range(ENTRIES)),
    "words": [WORD] * ENTRIES,
    "map": {f"key{number}": WORD for number in range(ENTRIES)},
    "word": WORD,
    "items": [{"word": WORD, "parts": [{"x": 1}] * ENTRIES}] * ENTRIES,
    "i": 1,
    "no": False,
}
EXPRESSIONS = (
    *("object.items[0].word == 'a'", "object.?i.orValue(1) == 1", "object.no || !object.no"),
    *("object.no ? object.i : object.i", "object.word == object.word", "object.word.startsWith('abc')"),
    *("object.word.contains('abcdefghijklmnopqrstuvwxyz')", "object.word.matches('^a+$')"),
    *("'a' in object.map", "size(object.words) == 1", "object.numbers.all(x, x >= 0)"),
    *("object.numbers.exists(x, x < 0)", "object.numbers.exists_one(x, x < 0)"),
    *("object.numbers.map(x, 1)", "object.numbers.map(x, x)", "object.numbers.filter(x, x > -1)"),
    *("object.numbers.map(x, x >= 0, x)", "object.map.all(k, v, v == 'a' || true)"),
    *("object.numbers.transformList(k, v, v)", "object.map.transformMap(k, v, v)"),
    *("object.words.join(',')", "object.words.isSorted()", "object.word.split('')"),
    *("object.word.replace('a', 'b')", "object.word.lowerAscii()", "'%s'.format([object.word])"),
    *("object.numbers.sortBy(x, x)", "object.numbers.distinct()", "object.numbers.reverse()"),
    *("object.word.find('a+')", "sets.contains(object.numbers, object.numbers)"),
    *("object.items.all(c, c.parts.all(p, p.x == 1))", "object.items.exists(c, c.parts.exists(p, p.x == 2))"),
    *("object.items.filter(c, c.parts.all(p, p.x == 1)).map(c, c.word)",),
    *("object.words.all(a, object.words.all(b, a == b))",),
    *("object.items.all(c, c.parts.all(p, object.numbers.all(n, n >= p.x || true)))",),
)  # fmt: skip


@pytest.fixture(scope="module")
def oracle(program: Programs) -> Iterator[CelOracle]:
    """Kubernetes' CEL."""
    with CelOracle(program("cel-oracle")) as running:
        yield running


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_an_estimate_is_near_what_kubernetes_counts_and_hardly_below(
    oracle: CelOracle, expression: str
) -> None:
    (answer,) = oracle.ask([{"expr": expression, "vars": {**VARIABLES, "object": OBJECT}}])
    checked = checked_expression(expression, admission({}, params=True))
    estimate = estimated_cost(checked, ENTRIES)
    assert 0.8 * answer["cost"] - 5 <= estimate <= 2 * answer["cost"] + 5, answer["cost"]
