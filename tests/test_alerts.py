"""The alerts of the manifests: about metrics, labels and states that there are, each explained."""

import re
from typing import Any

import pytest

from tests.alerts import SUFFIXES, alerts
from tests.manifests import MANIFESTS
from webhook.controllers.apply.policies import PolicyController
from webhook.controllers.status.condition_keeper import ConditionKeeper
from webhook.metrics.exposition import METRICS

NOBODY: Any = None
"""For what is never asked here."""


@pytest.mark.parametrize("alert", alerts(), ids=lambda alert: alert["alert"])
def test_alerts_are_about_metrics_that_the_server_has(alert):
    """Their labels exist, too; `pod` is the scraper's."""
    names = {metric.name: metric for metric in METRICS}
    words = {
        word
        for word in re.findall(r"[a-z_]+", alert["expr"])
        if word.startswith(("waddle_", "gatekeeper_"))
    }
    assert words
    known = {"pod", "le"}
    for word in words:
        name = next((word.removesuffix(end) for end in SUFFIXES if word.endswith(end)), word)
        assert name in names
        known |= set(names[name].labels)
    selected = re.findall(r"[{,]([a-z_]+)=", alert["expr"])
    grouped = [
        name for text in re.findall(r"by \(([^)]*)\)", alert["expr"]) for name in text.split(", ")
    ]
    shown = re.findall(r"\$labels\.([a-z_]+)", alert["annotations"]["summary"])
    assert {*selected, *grouped, *shown} <= known
    assert set(shown) <= set(grouped) or not grouped


def test_every_alert_has_its_row_for_the_reader_at_night():
    text = (MANIFESTS.parent / "docs" / "troubleshooting.md").read_text()
    assert [alert["alert"] for alert in alerts() if f"| `{alert['alert']}` |" not in text] == []


def test_the_alerts_on_policies_name_states_that_there_are():
    """A misspelt state would be an alert that never fires."""
    states = {state for _, state in ConditionKeeper(NOBODY, NOBODY, NOBODY).counts}
    causes = {cause for _, cause in PolicyController(NOBODY, NOBODY, NOBODY, str).not_newest}
    for alert in alerts():
        assert set(re.findall(r'state="([a-z]+)"', alert["expr"])) <= states
        assert set(re.findall(r'cause="([a-z]+)"', alert["expr"])) <= causes
