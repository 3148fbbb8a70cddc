"""The verdict of a repeated review, by the rules for a record's."""

from __future__ import annotations

from typing import TYPE_CHECKING

from webhook.decisions.exporter.admission import verdict_of
from webhook.external_data.exchange import has_no_provider

if TYPE_CHECKING:
    from webhook.constraint.result import Responses
    from webhook.decisions.exporter.record import DecisionVerdict


def replayed_verdict(responses: Responses) -> DecisionVerdict:
    """Returns the verdict that a server would record.

    An undecided policy takes the verdict away if it refuses the request, and not if it lets it in.
    It also does where a provider's answer is missing: a server would have it.
    """
    verdict = verdict_of(responses.results)
    if verdict == "deny":
        return verdict
    lacks_answers = any(map(has_no_provider, (responses.answers or {}).values()))
    if any(lacks_answers or item.answer == "reject" for item in responses.undecided):
        return "error"
    return "error" if responses.faults and not responses.results else verdict
