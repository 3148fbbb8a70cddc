"""The flags of reports."""

import pytest

from webhook.settings.flags import InvalidFlag
from webhook.settings.reading import read
from webhook.settings.reports import ENTRIES_MAX

ENVIRONMENT = {"POD_NAME": "p", "POD_NAMESPACE": "n", "POD_UID": "u"}


def test_reports_are_off_and_passes_are_not_stored_unless_asked_for():
    settings = read(["--kubernetes"], ENVIRONMENT)
    assert not settings.reports.enabled
    assert settings.reports.results == ("fail", "warn", "error")
    assert (settings.reports.api, settings.reports.mode) == ("wgpolicyk8s", "resource")
    assert settings.reports.debounce_seconds == 10


def test_results_that_are_named_take_the_place_of_the_default():
    settings = read(["--kubernetes", "--report-results=pass", "--report-results=fail"], ENVIRONMENT)
    assert settings.reports.results == ("pass", "fail")


@pytest.mark.parametrize(
    ("flag", "message"),
    [
        ("--report-results=passed", "want pass, fail, warn, error or skip"),
        ("--report-api=v2", "want wgpolicyk8s or openreports"),
        ("--report-mode=both", "want resource or policy-namespace"),
        ("--report-max-resources=0", "must be at least 1"),
        ("--report-max-entries=0", "must be at least 1"),
        (f"--report-max-entries={ENTRIES_MAX + 1}", "do not fit into etcd"),
        ("--report-debounce=-1s", "report-debounce"),
    ],
)
def test_what_makes_no_sense_is_refused_by_its_name(flag, message):
    with pytest.raises(InvalidFlag, match=message):
        read(["--kubernetes", flag], ENVIRONMENT)


def test_reports_need_a_cluster(tmp_path):
    with pytest.raises(InvalidFlag, match="--reports needs --kubernetes"):
        read([f"--policies={tmp_path}", "--reports"], {})
