"""Violations searched, grouped and written as files of other formats."""

import csv
import io
import threading
from dataclasses import replace

import pytest

from tests.webhook.console.client import ask
from tests.webhook.console.pictures import HOSTILE, constraint, violation
from tests.webhook.console.world import World
from webhook.api.names import CLUSTER_WIDE
from webhook.console import pages, violations
from webhook.console.application import ConsoleOptions
from webhook.console.violations import (
    FILTERS,
    Search,
    as_csv,
    counted,
    gravity,
    groups,
    in_order,
    row,
)

ROWS = [
    violation("shop", "A/a", message="no label"),
    violation("shop", "B/b", message="no LIMIT"),
    violation("", "A/a", name="node-1"),
]


def test_each_word_of_a_search_narrows_it():
    assert Search(text="limit").finds(ROWS) == [ROWS[1]]
    assert Search(policy="A/a").finds(ROWS) == [ROWS[0], ROWS[2]]
    assert Search(policy="A/a", namespace="shop").finds(ROWS) == [ROWS[0]]
    assert Search.of({"namespace": CLUSTER_WIDE}).finds(ROWS) == [ROWS[2]]
    assert Search.of({}).finds(ROWS) == ROWS
    assert Search(action="warn").finds(ROWS) == []


def test_a_filter_s_choices_say_how_many_violations_each_would_find_beside_the_others():
    found = Search(policy="A/a", severity="high").choices(ROWS)
    assert found.keys() == set(FILTERS)
    assert found["policy"] == [
        {"value": "A/a", "found": 2},
        {"value": "B/b", "found": 1},
    ], "its own choice narrows no filter"
    assert found["namespace"] == [
        {"value": CLUSTER_WIDE, "found": 1},
        {"value": "shop", "found": 1},
    ]
    for name, choices in found.items():
        for one in choices:
            search = replace(Search(policy="A/a", severity="high"), **{name: one["value"]})
            assert len(search.finds(ROWS)) == one["found"], (name, one)


def test_what_is_chosen_is_a_choice_though_nothing_is_found_by_it():
    found = Search(kind="Nothing").choices(ROWS)
    assert found["kind"][-1] == {"value": "Nothing", "found": 0}
    assert found["policy"] == []


def test_the_gravest_come_first_by_action_and_then_by_severity():
    given = [
        replace(violation(f"{action}-{severity}"), action=action, severity=severity)
        for severity in ("", "low", "critical")
        for action in ("dryrun", "warn,deny", "audited", "warn", "deny")
    ]
    names = [item.name for item in sorted(given, key=gravity)]
    assert names[:2] == ["deny-critical", "warn,deny-critical"]
    assert names[2:4] == ["deny-low", "warn,deny-low"]
    assert names[6] == "warn-critical"
    assert names[-1] == "audited-"


def test_the_newest_and_the_oldest_come_first_where_that_is_asked_for():
    given = [violation(f"at-{since}", since=since) for since in (2, 0, 3)]
    assert [item.since for item in in_order(given, "newest")] == [3, 2, 0]
    assert [item.since for item in in_order(given, "oldest")] == [2, 3, 0]
    assert in_order(given, "gravity") == given
    assert row(given[0], {})["firstSeen"] == "1970-01-01T00:00:02Z"


def test_policies_and_namespaces_are_put_together_where_that_is_asked_for():
    given = [violation("shop", "B/b"), violation("", "A/a"), violation("a", "A/a")]
    assert in_order(given, "policy") == [given[1], given[2], given[0]]
    assert in_order(given, "namespace") == [given[2], given[0], given[1]], "cluster-wide last"


def test_a_violation_was_seen_last_by_its_policy_s_last_audit_or_when_it_was_found():
    audited = constraint("owner", audited=50)
    known = {audited.key: audited}
    for since, last in ((20, "1970-01-01T00:00:50Z"), (70, "1970-01-01T00:01:10Z")):
        assert row(violation("a", since=since), known)["lastSeen"] == last
    assert row(violation("a"), known)["firstSeen"] == "", "a status does not say"
    assert row(violation("a"), {})["lastSeen"] == "", "nobody says"


def test_groups_have_the_most_first():
    assert groups(counted(ROWS, "policy"), "policy") == [
        {"policy": "A/a", "violations": 2},
        {"policy": "B/b", "violations": 1},
    ]
    assert groups(counted(ROWS, "resource"), "resource")[0]["name"] == "shop"


def test_csv_is_read_back_as_it_was_whatever_it_holds():
    found = [violation(text) for text in (*HOSTILE, "a,b", 'say "no"', "two\nlines")]
    lines = list(csv.DictReader(io.StringIO("".join(as_csv(found, {})), newline="")))
    assert lines == [row(item, {}) for item in found]


def test_no_cell_of_csv_is_a_formula():
    found = [violation(text) for text in ("=1+1", "+1", "-1", "@a", "\tx")]
    for line in csv.DictReader(io.StringIO("".join(as_csv(found, {})))):
        assert line["message"].startswith("'")


@pytest.mark.parametrize(
    ("form", "module", "name"),
    [
        ("csv", violations, "as_csv"),
        ("sarif", pages, "found_violations"),
        ("", pages, "violation_page"),
    ],
)
def test_many_violations_are_not_looked_through_on_the_thread_that_answers_probes(
    form, module, name, monkeypatch, tmp_path
):
    threads = []
    inner = getattr(module, name)

    def seen(*arguments):
        threads.append(threading.get_ident())
        return inner(*arguments)

    monkeypatch.setattr(module, name, seen)
    world = World(tmp_path, ConsoleOptions(as_sarif=lambda *_: "{}")).read()
    answer = ask(world.console.application(), "/violations", {"format": form})
    assert answer.status == 200
    assert threads
    assert threading.get_ident() not in threads
