"""The two loops around the walk: walk, fetch the missing data, walk again."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

from webhook.constraint.review import AugmentedObject, AugmentedReview
from webhook.external_data.exchange import Unanswered, no_answers, without_providers
from webhook.review.outcome import Found
from webhook.review.walk import walk

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from webhook.external_data.exchange import AnswersSoFar, Ask, AskAsync
    from webhook.review.outcome import Needs
    from webhook.review.policy_set import PolicySet
    from webhook.review.subject import Subject

T = TypeVar("T")


class NamespaceGone(Exception):
    """The Namespace of a subject does not exist any more, so the subject will be deleted."""


def review(
    policies: PolicySet,
    subject: Subject,
    namespace: Callable[[str], Mapping[str, Any] | None] | None = None,
    ask: Ask | None = None,
) -> Found:
    """Reviews a subject, for synchronous callers.

    ``namespace`` fetches a Namespace that the walk needs. ``ask`` sends requests to providers;
    without it no provider answers. Raises :class:`NamespaceGone`.
    """
    while True:
        outcome = walk(policies, subject)
        if isinstance(outcome, Found):
            return outcome
        if outcome.requests:
            answers = without_providers(outcome.requests) if ask is None else ask(outcome.requests)
            subject = subject.with_answers(answers)
            continue
        document = None if namespace is None else namespace(_namespace(outcome))
        subject = _with_namespace(subject, document)


async def review_async(
    policies: PolicySet,
    subject: Subject,
    namespace: Callable[[str], Awaitable[Mapping[str, Any] | None]],
    ask: AskAsync | None = None,
) -> Found:
    """Reviews a subject on an asyncio event loop.

    Raises the errors of ``namespace`` and ``ask``, too.
    """
    while True:
        outcome = walk(policies, subject)
        if isinstance(outcome, Found):
            return outcome
        if outcome.requests:
            answers = (
                without_providers(outcome.requests) if ask is None else await ask(outcome.requests)
            )
            subject = subject.with_answers(answers)
            continue
        subject = _with_namespace(subject, await namespace(_namespace(outcome)))


def answered(attempt: Callable[[AnswersSoFar], T], ask: Ask | None) -> T:
    """Returns the result of ``attempt``, called again after each round of provider requests.

    ``attempt`` raises :class:`~webhook.external_data.exchange.Unanswered` for the requests that it
    needs.
    """
    answers = no_answers()
    while True:
        try:
            return attempt(answers)
        except Unanswered as wanting:
            requests = wanting.requests
        answers = answers.more(without_providers(requests) if ask is None else ask(requests))


def _namespace(needs: Needs) -> str:
    if needs.time:
        # Only a caller that can continue on another thread sets a deferrable budget; it calls the
        # walk itself.
        raise AssertionError("a review was deferred that nothing can continue")
    return needs.namespace


def _with_namespace(subject: Subject, document: Mapping[str, Any] | None) -> Subject:
    if document is None:
        raise NamespaceGone(subject.place)
    value = subject.value
    if type(value) is AugmentedReview:
        return replace(subject, value=value._replace(namespace=dict(document)))
    assert type(value) is AugmentedObject  # A document is in no namespace.
    return replace(subject, value=value._replace(namespace=document))
