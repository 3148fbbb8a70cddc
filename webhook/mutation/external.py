"""Puts providers' answers in the place of placeholders, once, after the last pass."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from webhook.external_data.exchange import (
    REQUEST_KEYS_MAX,
    UNKNOWN_PROVIDER,
    Answering,
    ProviderRequest,
    ProviderResponse,
    Unanswered,
    failure,
    has_no_provider,
)
from webhook.mutation.errors import MutationError
from webhook.mutation.pace import UNBOUNDED, Pace
from webhook.mutation.setting import Placeholder, is_secret
from webhook.mutation.values import go_type

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from webhook.mutation.plan import Mutated


class _ProviderValues(NamedTuple):
    """A provider's values by key; with ``fault`` none can be used."""

    values: Mapping[str, Any] = {}
    errors: Mapping[str, str] = {}
    fault: str = ""


def settled(mutated: Mutated, known: Answering, pace: Pace = UNBOUNDED) -> dict[str, Any]:
    """Returns the object with every placeholder replaced by the answers of providers.

    Raises :class:`~webhook.external_data.exchange.Unanswered` for missing answers, and
    :class:`~webhook.mutation.errors.MutationError` for failed answers without a fallback.
    """
    if not mutated.asks_providers:
        return mutated.object
    requests = [ProviderRequest(*key) for key in unanswered_keys(mutated).items()]
    answers = {request: _response(request, known) for request in requests}
    if missing := [request for request, response in answers.items() if response is None]:
        raise Unanswered(missing)
    by_name = {
        request.provider: answer
        for request, response in answers.items()
        if response is not None and (answer := _read(request, response)) is not None
    }
    return _resolved(mutated, by_name, pace)


class Unresolved(NamedTuple):
    """A field without a usable value from a provider, and the value used instead."""

    path: str
    provider: str
    key: str
    """Empty for a Secret: messages must not contain its values."""
    policy: str
    fault: str

    def __str__(self) -> str:
        instead = "the default stands there" if self.policy == "UseDefault" else "the value stays"
        key = f" for {self.key!r}" if self.key else ""
        message = f"the provider {self.provider} has no answer{key}, {instead}"
        return f"{self.path}: {message} (failurePolicy {self.policy}): {self.fault}"


def unresolved(mutated: Mutated, known: Answering) -> tuple[Unresolved, ...]:
    """Returns the placeholders without a usable answer that have a fallback."""
    if not mutated.asks_providers:
        return ()
    obj = mutated.object
    answers = {
        request.provider: answer
        for key in unanswered_keys(mutated).items()
        if (response := _response(request := ProviderRequest(*key), known)) is not None
        and (answer := _read(request, response)) is not None
    }
    is_masked = is_secret(obj)
    return tuple(
        Unresolved(path, item.source.provider, key, item.source.failure_policy, fault)
        for path, item in _placed(obj, "")
        if item.source.failure_policy in ("Ignore", "UseDefault")
        and (fault := _lookup(item, answers)[0])
        for key in ("" if is_masked else item.key,)
    )


def _placed(value: Any, path: str) -> Iterator[tuple[str, Placeholder]]:
    if type(value) is Placeholder:
        yield path, value
    elif type(value) is dict:
        for name, item in value.items():
            yield from _placed(item, f"{path}.{name}" if path else name)
    elif type(value) is list:
        for at, item in enumerate(value):
            yield from _placed(item, f"{path}[{at}]")


def _response(request: ProviderRequest, known: Answering) -> ProviderResponse | None:
    count = len(request.keys)
    if count > REQUEST_KEYS_MAX:
        return failure(f"{count} keys are asked for at once, and {REQUEST_KEYS_MAX} may be")
    return known(request)


def _read(request: ProviderRequest, response: ProviderResponse) -> _ProviderValues | None:
    """Reads a provider's response, with Gatekeeper's errors; None where there is none."""
    name, system_error = request.provider, response.system_error.strip()
    if has_no_provider(response):
        return _ProviderValues(fault=system_error)
    if response.responses is None or response.errors is None:
        if response.status_code == UNKNOWN_PROVIDER:
            return None
        return _ProviderValues(
            fault=f"failed to send external data request to provider {name}: {system_error}"
        )
    refused = f"failed to validate external data response from provider {name}"
    if system_error:
        return _ProviderValues(fault=f"{refused}: non-empty system error: {system_error}")
    if not response.is_idempotent:
        return _ProviderValues(fault=f"{refused}: non-idempotent response")
    errors = dict(response.errors)
    for key in response.corrected:
        errors.pop(key, None)
    return _ProviderValues(dict(response.responses), errors)


def unanswered_keys(mutated: Mutated) -> dict[str, tuple[str, ...]]:
    """Returns the keys to ask of each provider, each once, in the order of the object's fields."""
    if not mutated.asks_providers:
        return {}
    keys_of: dict[str, dict[str, None]] = {}
    for placeholder in _placeholders(mutated.object):
        keys_of.setdefault(placeholder.source.provider, {})[placeholder.key] = None
    return {provider: tuple(keys) for provider, keys in keys_of.items()}


def _resolved(
    mutated: Mutated, answers: Mapping[str, _ProviderValues], pace: Pace
) -> dict[str, Any]:
    faults: list[str] = []
    obj: dict[str, Any] = _resolve(mutated.object, answers, faults, pace)
    if faults:
        unique = list(dict.fromkeys(faults))
        text = unique[0] if len(unique) == 1 else f"[{', '.join(unique)}]"
        keys = [item.key for item in _placeholders(mutated.object)]
        if is_secret(mutated.object) and any(key and key.lower() in text.lower() for key in keys):
            text = "a provider's error quotes a value of a Secret and is left out"
        raise MutationError(
            f"failed to resolve external data placeholders: {text}", mutated.iterations
        )
    return obj


def _placeholders(value: Any) -> Iterator[Placeholder]:
    due = [value]
    while due:
        item = due.pop()
        kind = type(item)
        if kind is Placeholder:
            yield item
        elif kind is dict:
            due.extend(reversed(item.values()))
        elif kind is list:
            due.extend(reversed(item))


def _resolve(
    value: Any, answers: Mapping[str, _ProviderValues], faults: list[str], pace: Pace
) -> Any:
    """Returns the value with its placeholders replaced; the same object if it has none."""
    if type(value) is dict:
        pace.look()
        changed: dict[str, Any] | None = None
        for name, item in value.items():
            new = (
                _answer(item, answers, faults)
                if type(item) is Placeholder
                else _resolve(item, answers, faults, pace)
            )
            if new is not item:
                changed = dict(value) if changed is None else changed
                changed[name] = new
        return value if changed is None else changed
    if type(value) is list:
        pace.look()
        items = [_resolve(item, answers, faults, pace) for item in value]
        return items if any(a is not b for a, b in zip(items, value, strict=True)) else value
    return value


def _answer(
    placeholder: Placeholder, answers: Mapping[str, _ProviderValues], faults: list[str]
) -> str:
    source = placeholder.source
    fault, value = _lookup(placeholder, answers)
    if not fault:
        return value
    if source.failure_policy == "Ignore":
        return placeholder.key
    if source.failure_policy == "UseDefault":
        return source.default
    faults.append(fault)
    return ""


def _lookup(placeholder: Placeholder, answers: Mapping[str, _ProviderValues]) -> tuple[str, str]:
    """Returns the fault of an answer, or an empty text; and the answer's text."""
    provider = placeholder.source.provider
    response = answers.get(provider)
    if response is None:
        return f"failed to find external data provider {provider} in responses", ""
    if response.fault:
        return response.fault, ""
    if error := response.errors.get(placeholder.key):
        return f"failed to retrieve external data item from provider {provider}: {error}", ""
    if placeholder.key not in response.values:
        return f"failed to find external data item in response for provider {provider}", ""
    value = response.values[placeholder.key]
    if type(value) is not str:
        is_number = isinstance(value, int | float) and type(value) is not bool
        kind = "float64" if is_number else go_type(value)
        fault = (
            f"failed to convert external data item value from provider {provider} to string, "
            f"got type {kind}"
        )
        return fault, ""
    return "", value
