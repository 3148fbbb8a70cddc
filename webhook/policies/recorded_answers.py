"""Recorded answers of providers in files and decisions, for commands without a network.

A file has the answers of one provider: ``items`` by key, each with a ``value`` or an ``error``, and
optionally a ``systemError``, which fails the whole request.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from webhook.api.shapes import objects_of
from webhook.external_data.exchange import ProviderRequest, ProviderResponse, no_provider
from webhook.policies.manifests import UnreadableFile, read_values
from webhook.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from webhook.external_data.exchange import ProviderAnswers

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
    system_error = document.get("systemError")
    if system_error is None:
        system_error = ""
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
            values[key] = _value(item["value"], key, place)
        elif type(item["error"]) is not str or not item["error"]:
            raise InvalidAnswers(f"{place}: items[{key!r}].error must be a text that is not empty")
        else:
            errors[key] = item["error"]
    return RecordedProvider(values, errors, system_error)


def _value(value: Any, key: str, place: str) -> Any:
    if type(value) is str:
        return value
    # Imported here: commands without such answers do not need it.
    from webhook.external_data.response import UnreadableAnswer, read_value  # noqa: PLC0415

    try:
        return read_value(value, f"items[{key!r}].value")
    except UnreadableAnswer as error:
        raise InvalidAnswers(f"{place}: {error}") from None


def answers_of(record: Mapping[str, Any]) -> dict[ProviderRequest, ProviderResponse]:
    """Returns the providers' answers in a decision, if the record has all of them."""
    answers = {}
    for call in objects_of(record.get("externalData")):
        provider, keys, status = call.get("provider"), call.get("keys"), call.get("statusCode") or 0
        if type(provider) is not str or type(keys) is not list or type(status) is not int:
            continue
        if "idempotent" not in call:
            continue
        try:
            answers[ProviderRequest(provider, tuple(map(str, keys)))] = ProviderResponse(
                _pairs(call.get("responses")),
                _pairs(call.get("errors")),
                status,
                str(call.get("systemError") or ""),
                bool(call["idempotent"]),
            )
        except (InvalidAnswers, TypeError, ValueError):
            continue  # the answer is missing then
    return answers


def _pairs(value: Any) -> tuple[tuple[str, Any], ...] | None:
    if type(value) is not list:
        return None
    return tuple(
        (pair[0], _value(pair[1], pair[0], "responses"))
        for pair in value
        if type(pair) is list and len(pair) == 2
    )


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
