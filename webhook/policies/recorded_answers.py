"""Recorded answers of providers in files, for commands without a network.

A file has the answers of one provider: ``items`` by key, each with a ``value`` or an ``error``, and
optionally a ``systemError``, which fails the whole request.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from webhook.external_data.exchange import ProviderResponse, no_provider
from webhook.policies.manifests import UnreadableFile, read_values
from webhook.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from webhook.external_data.exchange import ProviderAnswers, ProviderRequest

STATUS_CODE: Final = 200
_FIELDS: Final = frozenset({"items", "systemError"})


class InvalidAnswers(ValueError):
    """Recorded answers cannot be read; the message has place and fault."""


@dataclass(frozen=True, slots=True)
class RecordedProvider:
    """The recorded answers of a provider; nothing for unknown keys."""

    values: Mapping[str, Any]
    errors: Mapping[str, str]
    system_error: str = ""

    def answer(self, request: ProviderRequest) -> ProviderResponse:
        """Returns the answer to a request, in the order of its keys."""
        return ProviderResponse(
            tuple((key, self.values[key]) for key in request.keys if key in self.values),
            tuple((key, self.errors[key]) for key in request.keys if key in self.errors),
            STATUS_CODE,
            self.system_error,
            is_idempotent=True,
        )


class RecordedAnswers:
    """Answers requests from the recorded answers of each provider."""

    def __init__(
        self,
        providers: Mapping[str, RecordedProvider | Callable[[ProviderRequest], RecordedProvider]],
        advice: str = "",
    ) -> None:
        """``advice`` is the remedy for missing answers; ``{}`` in it is the provider's name."""
        self._providers = dict(providers)
        self._advice = advice

    @property
    def names(self) -> frozenset[str]:
        """Returns the providers with recorded answers."""
        return frozenset(self._providers)

    def __call__(self, requests: Sequence[ProviderRequest]) -> ProviderAnswers:
        """Answers all requests; without an answer for a provider that has no recording."""
        return {request: self._answer(request) for request in requests}

    async def ask(self, requests: Sequence[ProviderRequest]) -> ProviderAnswers:
        """Answers the requests, for a caller that awaits it."""
        return self(requests)

    def _answer(self, request: ProviderRequest) -> ProviderResponse:
        provider = self._providers.get(request.provider)
        if provider is None:
            return no_provider(request.provider, self._advice.format(request.provider))
        answer = provider if isinstance(provider, RecordedProvider) else provider(request)
        return answer.answer(request)


def read_answers(path: Path) -> RecordedProvider:
    """Reads one provider's answers from a file; raises :class:`InvalidAnswers`."""
    try:
        documents = read_values(path)
    except UnreadableFile as error:
        raise InvalidAnswers(str(error)) from None
    if len(documents) != 1:
        raise InvalidAnswers(f"{path}: expected one document with items, got {len(documents)}")
    return recorded_provider(documents[0].value, str(path))


def recorded_provider(document: Any, place: str) -> RecordedProvider:
    """Reads a recorded provider from a document; ``place`` begins its fault messages."""
    if type(document) is not dict:
        raise InvalidAnswers(f"{place}: expected an object with items")
    for name in document:
        if name not in _FIELDS:
            raise InvalidAnswers(
                f"{place}: unknown field {name!r}: there are items and systemError"
            )
    system_error = document.get("systemError") or ""
    if type(system_error) is not str:
        raise InvalidAnswers(f"{place}: systemError must be a string")
    items = document.get("items")
    if items is None:
        items = {}
    if type(items) is not dict:
        raise InvalidAnswers(f"{place}: items must be an object: a value or an error by its key")
    values: dict[str, Any] = {}
    errors: dict[str, str] = {}
    for key, item in items.items():
        if type(item) is not dict or len(item) != 1 or not item.keys() <= {"value", "error"}:
            raise InvalidAnswers(f"{place}: items[{key!r}] must hold a value or an error")
        if "value" in item:
            values[key] = item["value"]
        elif type(item["error"]) is not str or not item["error"]:
            raise InvalidAnswers(f"{place}: items[{key!r}].error must be a string")
        else:
            errors[key] = item["error"]
    return RecordedProvider(values, errors, system_error)


def is_answers(document: Any) -> bool:
    """Returns whether a document has only recorded answers: ``providers`` by their names."""
    return type(document) is dict and document.keys() == {"providers"}


def typed_answers(documents: Sequence[Any]) -> RecordedAnswers:
    """Returns the answers among documents; raises :class:`InvalidAnswers`."""
    providers = {}
    for document in documents:
        if not is_answers(document):
            continue
        named = document["providers"]
        if type(named) is not dict:
            raise InvalidAnswers("providers: expected an object: answers by a provider's name")
        for name, given in named.items():
            providers[name] = recorded_provider(given, f"providers.{name}")
    return RecordedAnswers(
        providers, "give its answers as a document, providers: {{{}: {{items: …}}}}"
    )
