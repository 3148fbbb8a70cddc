"""``waddle report`` prints a summary."""

import json
from dataclasses import replace

from tests.webhook.reports.made import finding, subject
from webhook.api.gvk import GroupVersionKind
from webhook.cli.report.view import NO_REPORTS, as_excused, as_json, as_tables
from webhook.reports.confirmation import Confirmation
from webhook.reports.summary import ReportSummary

NAMESPACE = GroupVersionKind("", "v1", "Namespace")


def summary():
    found = ReportSummary()
    found.add(subject("web", "shop"), [finding("a"), finding("b", verdict="warn")])
    found.add(subject("db", "shop"), [finding("a")])
    found.add(subject("shop", "", NAMESPACE), [finding("c", verdict="error")])
    found.add(subject("fine", "quiet"), [finding("a", verdict="pass")])
    return found


def test_the_tables_show_the_worst_first():
    lines = as_tables(summary(), 10).splitlines()
    assert lines[0] == "1 pass, 2 fail, 1 warn, 1 error, 0 skip, of 4 resources"
    rows = [" ".join(line.split()) for line in lines]
    start = rows.index("RESOURCE FAIL ERROR WARN")
    assert rows[start + 1 : start + 4] == [
        "Pod shop/web 1 0 1",
        "Pod shop/db 1 0 0",
        "Namespace shop 0 1 0",
    ]
    assert "RequireRunAsNonRoot/a 2 0 0" in rows
    assert "(cluster-wide) 0 1 0" in rows
    assert "RequireRunAsNonRoot/a in shop 2 0 0" in rows


def test_a_table_is_as_long_as_it_may_be_and_says_what_is_left_out():
    text = as_tables(summary(), 1)
    assert "and 2 more" in text
    assert "shop/db" not in text


def test_what_passes_is_in_no_table():
    assert "quiet" not in as_tables(summary(), 10)
    only = ReportSummary()
    only.add(subject(), [finding(verdict="pass")])
    assert as_tables(only, 10).splitlines()[1:] == ["no violations"]


def test_a_cluster_without_reports_is_not_called_free_of_violations():
    assert as_tables(ReportSummary(), 10) == NO_REPORTS
    audited = Confirmation("waddle-audit-0", "2026-11-29T20:47:00Z", "2026-11-29T20:48:00Z")
    assert as_tables(ReportSummary(), 10, [audited]).splitlines()[-1] == "no violations"


def test_resources_of_one_name_are_counted_apart():
    found = ReportSummary()
    for uid in "ab":
        found.add(subject()._replace(uid=uid), [finding()])
    assert as_tables(found, 10).count("Pod shop/web") == 2


def test_names_cannot_write_to_the_terminal():
    found = ReportSummary()
    found.add(subject("x\x1b[2J"), [finding("y\x1b[2J")])
    assert "\x1b" not in as_tables(found, 10)


def test_json_has_everything():
    found = json.loads(as_json(summary()))
    assert found["total"] == {"pass": 1, "fail": 2, "warn": 1, "error": 1, "skip": 0}
    assert [item["name"] for item in found["resources"]] == ["web", "db", "shop", "fine"]
    assert found["resources"][2]["kind"] == "Namespace"
    assert found["namespaces"][0] == {
        "namespace": "shop",
        "pass": 0,
        "fail": 2,
        "warn": 1,
        "error": 0,
        "skip": 0,
    }
    assert found["policies"][0]["rule"] == "a"
    assert {"policy", "rule", "namespace"} <= found["policyNamespaces"][0].keys()


def test_what_is_excused_is_shown_with_its_exception_and_its_end():
    found = ReportSummary()
    one = replace(
        finding("a", verdict="skip"),
        exception="PolicyException shop/e",
        reason="r",
        expires="2100-01-01T00:00:00Z",
    )
    found.add(subject("web", "shop"), [one])
    first, _, _, row = as_excused(found).splitlines()
    assert first == "1 violation excused, by 1 exception"
    assert row.startswith("PolicyException shop/e  2100-01-01T00:00:00Z  Pod shop/web")
    assert as_excused(summary()) == "no violation is excused"
    assert '"exception": "PolicyException shop/e"' in as_json(found)
