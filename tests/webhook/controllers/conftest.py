"""Processes that try policies, for tests of who tries them."""

import pytest

from webhook.trials.trials import Trials


@pytest.fixture(scope="module")
def trials():
    """Processes that try policies."""
    found = Trials(notify=lambda message, *, error: None, tries_all=lambda: True)
    yield found
    found.stop()


@pytest.fixture
def tried(trials, monkeypatch):
    """Returns the list of documents that are tried from now on, in order."""
    tried, find_out = [], trials.found_out_all

    def noted(requests, seconds, notify):
        tried.extend(one.document for one in requests)
        find_out(requests, seconds, notify)

    monkeypatch.setattr(trials, "found_out_all", noted)
    return tried
