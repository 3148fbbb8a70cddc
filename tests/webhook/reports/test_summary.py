"""Results counted, with a bound on the series of metrics."""

from tests.webhook.reports.made import finding, subject
from webhook.reports.finding import Policy
from webhook.reports.summary import ReportSummary, ReportTally, merged, severity_order


def test_results_are_counted_by_policy_namespace_and_resource():
    summary = ReportSummary()
    summary.add(subject("a", "one"), [finding("x"), finding("y", verdict="warn")])
    summary.add(subject("b", "two"), [finding("x")])
    assert summary.total == {"fail": 2, "warn": 1}
    assert summary.policies[Policy("RequireRunAsNonRoot", "x")] == {"fail": 2}
    assert summary.namespaces["one"] == {"fail": 1, "warn": 1}
    assert summary.resources[subject("b", "two")] == {"fail": 1}


def test_the_worst_have_the_most_failures_and_then_errors():
    summary = ReportSummary()
    summary.add(subject("warned"), [finding(str(n), verdict="warn") for n in range(9)])
    summary.add(subject("failed"), [finding("x")])
    summary.add(subject("erred"), [finding("x", verdict="error")])
    worst = sorted(summary.resources, key=lambda item: severity_order(summary.resources[item]))
    assert [item.name for item in worst] == ["failed", "erred", "warned"]


def test_series_beyond_the_bound_are_counted_together():
    tally = ReportTally(2)
    for number in range(4):
        tally.add(subject("a", f"ns{number}"), [finding("x"), finding("x", verdict="warn")])
    policy = "RequireRunAsNonRoot"
    assert tally.series == {
        (policy, "x", "ns0", "fail"): 1,
        (policy, "x", "ns0", "warn"): 1,
        (policy, "x", "ns1", "fail"): 1,
        (policy, "x", "ns1", "warn"): 1,
        ("", "_other", "", "fail"): 2,
        ("", "_other", "", "warn"): 2,
    }


def test_tallies_of_several_kinds_are_one_with_the_same_bound():
    tallies = [ReportTally(5), ReportTally(5)]
    for number in range(2):
        for tally in tallies:
            tally.add(subject("a", f"ns{number}"), [finding("x")])
    tallies[1].add(subject("a", "another"), [finding("x")])
    policy = "RequireRunAsNonRoot"
    assert merged(tallies, 2) == {
        (policy, "x", "ns0", "fail"): 2,
        (policy, "x", "ns1", "fail"): 2,
        ("", "_other", "", "fail"): 1,
    }
