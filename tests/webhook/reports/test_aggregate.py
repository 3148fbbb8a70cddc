"""Results of a policy packed into reports: split, stable, each resource replaced whole."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from tests.webhook.reports.made import finding, subject
from webhook.reports.aggregate import (
    EntriesChange,
    ReportPlace,
    document_of,
    entries_of,
    name_of_report,
    repack,
)
from webhook.reports.finding import Policy
from webhook.reports.report import finding_in
from webhook.reports.report_api import WGPOLICY

PLACE = ReportPlace(Policy("RequireRunAsNonRoot", "must-run-as-non-root"), "shop")


def entries(name, *messages, seconds=100):
    return entries_of(subject(name), [finding(message=text) for text in messages], seconds)


def change(name, *messages, seconds=100):
    return {subject(name).uid: EntriesChange(entries(name, *messages, seconds=seconds))}


def packed(reports, changes, entries_max=3, reports_max=100):
    return repack(reports, changes, entries_max=entries_max, reports_max=reports_max)


def names_in(report):
    return [entry["resources"][0]["name"] for entry in report]


def test_entries_are_split_at_the_limit():
    changes = {}
    for number in range(7):
        changes |= change(f"p{number}", "no")
    reports, left_out = packed([], changes)
    assert [names_in(report) for report in reports] == [
        ["p0", "p1", "p2"],
        ["p3", "p4", "p5"],
        ["p6"],
    ]
    assert left_out == 0


def test_a_change_of_one_resource_changes_one_report():
    reports, _ = packed([], change("a", "1") | change("b", "1") | change("c", "1"), 2)
    after, _ = packed(reports, change("b", "2"), 2)
    assert after[1] == reports[1]
    assert names_in(after[0]) == ["a", "b"]


def test_an_entry_that_is_found_again_keeps_its_time():
    reports, _ = packed([], change("a", "1", seconds=100))
    after, _ = packed(reports, change("a", "1", "2", seconds=200))
    times = [entry["timestamp"]["seconds"] for entry in after[0]]
    assert times == [100, 200]


def test_a_resource_without_findings_leaves_and_its_room_is_used():
    reports, _ = packed([], change("a", "1") | change("b", "1") | change("c", "1"), 2)
    after, _ = packed(reports, change("a") | change("d", "1"), 2)
    assert sorted(names_in(after[0]) + names_in(after[1])) == ["b", "c", "d"]


def test_no_report_in_the_middle_is_empty():
    reports = [entries("a", "1"), entries("b", "1"), entries("c", "1")]
    after, _ = packed(reports, change("b"), 1)
    assert [names_in(report) for report in after] == [["a"], ["c"]]
    assert packed(reports, change("a") | change("b") | change("c"), 1).reports == []


def test_an_entry_that_two_writers_stored_twice_is_kept_once():
    twice = [entries("a", "1"), entries("a", "1")]
    assert packed(twice, change("a", "1"), 1).reports == [entries("a", "1")]


def test_what_finds_no_room_is_counted():
    changes = {}
    for number in range(5):
        changes |= change(f"p{number}", "no")
    reports, left_out = packed([], changes, entries_max=2, reports_max=2)
    assert ([len(report) for report in reports], left_out) == ([2, 2], 1)


RESOURCES = st.sampled_from("abcdefgh")
CHANGES = st.lists(st.dictionaries(RESOURCES, st.sets(st.sampled_from("123"))), max_size=8)


@given(CHANGES, st.integers(1, 4))
def test_whatever_changes_the_reports_hold_what_was_last_found(history, entries_max):
    """A model: the last findings of each resource, in reports that are not too long or empty."""
    reports = []
    model = {}
    for step in history:
        changes = {}
        for name, messages in step.items():
            model[name] = messages
            changes |= change(name, *messages)
        reports, left_out = packed(reports, changes, entries_max)
        assert left_out == 0
    stored = Counter(
        (entry["resources"][0]["name"], finding_in(entry).message)
        for report in reports
        for entry in report
    )
    assert stored == Counter((name, text) for name, texts in model.items() for text in texts)
    assert all(0 < len(report) <= entries_max for report in reports)


def of_admission(name, state, *messages):
    found = [
        finding(message=text, point="validation.gatekeeper.sh", state=state) for text in messages
    ]
    return entries_of(subject(name), found, 100)


def test_what_an_admission_found_stays_while_its_resource_is_in_that_state():
    uid = subject("a").uid
    reports, _ = packed([], {uid: EntriesChange(of_admission("a", "now", "1"))})
    assert packed(reports, {uid: EntriesChange([], "now")}).reports == reports
    assert packed(reports, {uid: EntriesChange([], "later")}).reports == []
    assert packed(reports, {uid: EntriesChange([])}).reports == [], (
        "its policy finds nothing any more"
    )
    again = {uid: EntriesChange(of_admission("a", "later", "2"))}
    assert packed(reports, again).reports == [of_admission("a", "later", "2")]


def test_what_an_audit_found_before_does_not_stay_for_an_admission_s_sake():
    reports, _ = packed([], change("a", "1"))
    assert packed(reports, {subject("a").uid: EntriesChange([], "now")}).reports == []


STEPS = st.lists(
    st.tuples(
        st.sampled_from("ab"),
        st.sampled_from(["", "s", "t"]),
        st.sampled_from(["", "s", "t"]),
        st.sets(st.sampled_from("12"), max_size=2),
    ),
    max_size=6,
)


@given(STEPS, STEPS)
def test_changes_that_wait_for_each_other_come_to_the_same_as_one_after_the_other(before, steps):
    """Unwritten findings of an admission are not lost by an audit of the same state."""

    def entries_change(name, found_in, kept, messages):
        # The findings of a state, or the entries kept from one: never both.
        if found_in:
            return EntriesChange(of_admission(name, found_in, *sorted(messages)))
        return EntriesChange([], kept)

    written, gathered = [], {}
    for name, *rest in before:
        written = packed(written, {subject(name).uid: entries_change(name, *rest)}).reports
    stored = written
    for name, *rest in steps:
        uid, step = subject(name).uid, entries_change(name, *rest)
        written = packed(written, {uid: step}).reports
        gathered[uid] = step.after(gathered[uid]) if uid in gathered else step
    at_once = packed(stored, gathered).reports

    def contents(reports):
        return Counter(
            (entry["resources"][0]["uid"], finding_in(entry)) for one in reports for entry in one
        )

    assert contents(at_once) == contents(written)


def test_a_report_of_a_policy_is_owned_by_its_constraint():
    document = document_of(PLACE, 1, entries("a", "1"), WGPOLICY, "uid-of-constraint")
    assert document["metadata"]["name"] == "waddle-1.requirerunasnonroot.must-run-as-non-root"
    assert document["metadata"]["ownerReferences"] == [
        {
            "apiVersion": "constraints.gatekeeper.sh/v1beta1",
            "kind": "RequireRunAsNonRoot",
            "name": "must-run-as-non-root",
            "uid": "uid-of-constraint",
        }
    ]
    assert document["results"][0]["resources"] == [
        {"apiVersion": "v1", "kind": "Pod", "namespace": "shop", "name": "a", "uid": "uid-of-a"}
    ]
    assert document["summary"]["fail"] == 1
    assert document_of(PLACE, 0, [], WGPOLICY, "u") is None


def test_no_two_places_share_a_name():
    places = [
        ReportPlace(Policy("A", "x"), ""),
        ReportPlace(Policy("A", ""), ""),
        ReportPlace(Policy("A", "x.1"), ""),
        ReportPlace(Policy("B", "x"), ""),
    ]
    names = {name_of_report(place, number) for place in places for number in (0, 1, 11)}
    assert len(names) == 12
