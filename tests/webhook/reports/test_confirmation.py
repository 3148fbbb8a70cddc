"""The times at which audits confirmed reports."""

import pytest

from webhook.cli.report.view import as_json, as_tables
from webhook.reports.confirmation import Author, Confirmation, lease, oldest, read
from webhook.reports.summary import ReportSummary

BEGAN, ENDED = "2026-11-22T08:00:00Z", "2026-11-22T08:00:07Z"
FIRST = Confirmation("audit-1", BEGAN, ENDED, ("apps/v1 Deployment",), 2)
SECOND = Confirmation("audit-2", "2026-11-22T08:01:00Z", "2026-11-22T08:01:09Z")


@pytest.mark.parametrize("confirmation", [FIRST, SECOND], ids=["not of all", "whole"])
def test_what_a_lease_says_is_read_back(confirmation):
    document = lease(confirmation, Author(confirmation.audit, "waddle-system", "uid", 60.0))
    assert read(document) == confirmation
    assert document["metadata"]["ownerReferences"][0]["uid"] == "uid"
    assert document["spec"]["leaseDurationSeconds"] == 60


@pytest.mark.parametrize(
    "document",
    [
        {},
        {"spec": {"holderIdentity": "x"}},
        {"spec": {"acquireTime": "yesterday", "renewTime": ENDED}},
        {
            "metadata": {"annotations": {"waddle.dev/reports-not-written": "many"}},
            "spec": {"acquireTime": BEGAN, "renewTime": ENDED},
        },
        {"metadata": 7, "spec": 7},
    ],
)
def test_what_says_nothing_of_the_kind_is_passed_over(document):
    assert read(document) is None


def test_shares_are_as_old_as_the_oldest_of_them():
    assert oldest([SECOND, FIRST]) == FIRST
    assert oldest([]) is None


def test_people_are_informed_since_when_and_but_for_what():
    shown = as_tables(ReportSummary(), 10, [SECOND, FIRST])
    assert f"confirmed by the audit that began {BEGAN}, the oldest of 2" in shown
    assert "without these kinds, which it could not list: apps/v1 Deployment" in shown
    assert "without 2 reports that it could not write" in shown
    assert "confirmed" not in as_tables(ReportSummary(), 10)
    assert BEGAN in as_json(ReportSummary(), [FIRST])
