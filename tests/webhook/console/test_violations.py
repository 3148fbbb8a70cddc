"""Violations searched, grouped and written as files of other formats."""

import csv
import io

from tests.webhook.console.pictures import HOSTILE, violation
from webhook.console.violations import Search, as_csv, counted, groups, row

ROWS = [
    violation("shop", "A/a", message="no label"),
    violation("shop", "B/b", message="no LIMIT"),
    violation("", "A/a", name="node-1"),
]


def test_each_word_of_a_search_narrows_it():
    assert Search(text="limit").finds(ROWS) == [ROWS[1]]
    assert Search(policy="A/a").finds(ROWS) == [ROWS[0], ROWS[2]]
    assert Search(policy="A/a", namespace="shop").finds(ROWS) == [ROWS[0]]
    assert Search.of({"clusterwide": "1"}).finds(ROWS) == [ROWS[2]]
    assert Search.of({}).finds(ROWS) == ROWS
    assert Search(action="warn").finds(ROWS) == []


def test_groups_have_the_most_first():
    assert groups(counted(ROWS, "policy"), "policy") == [
        {"policy": "A/a", "violations": 2},
        {"policy": "B/b", "violations": 1},
    ]
    assert groups(counted(ROWS, "resource"), "resource")[0]["name"] == "shop"


def test_csv_is_read_back_as_it_was_whatever_it_holds():
    found = [violation(text) for text in (*HOSTILE, "a,b", 'say "no"', "two\nlines")]
    lines = list(csv.DictReader(io.StringIO("".join(as_csv(found)), newline="")))
    assert lines == [row(item) for item in found]


def test_no_cell_of_csv_is_a_formula():
    found = [violation(text) for text in ("=1+1", "+1", "-1", "@a", "\tx")]
    for line in csv.DictReader(io.StringIO("".join(as_csv(found)))):
        assert line["message"].startswith("'")
