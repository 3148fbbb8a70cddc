"""What providers answered put in the place of placeholders, once, after the last pass."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, Any

from webhook.mutation.errors import MutationError
from webhook.mutation.pace import UNBOUNDED
from webhook.mutation.setting import Placeholder, is_secret
from webhook.mutation.values import go_type
from webhook.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from webhook.mutation.pace import Pace
    from webhook.mutation.plan import Mutated


@dataclass(frozen=True, slots=True)
class ProviderAnswer:
    """What a provider said of one key: a value, or an error."""

    value: Any = None
    error: str = ""


@dataclass(frozen=True, slots=True)
class Answers:
    """What one provider said; with ``fault`` it said nothing that can be used."""

    by_key: Mapping[str, ProviderAnswer] = field(default_factory=dict)
    fault: str = ""


def wanted(mutated: Mutated) -> dict[str, tuple[str, ...]]:
    """The keys to ask of each provider, each once, in the order of the object's fields."""
    if not mutated.asks_providers:
        return {}
    keys_of: dict[str, dict[str, None]] = {}
    for placeholder in _placeholders(mutated.object):
        keys_of.setdefault(placeholder.source.provider, {})[placeholder.key] = None
    return {provider: tuple(keys) for provider, keys in keys_of.items()}


def resolved(
    mutated: Mutated, answers: Mapping[str, Answers], pace: Pace = UNBOUNDED
) -> dict[str, Any]:
    """The object with every placeholder replaced.

    Raises :class:`~webhook.mutation.errors.MutationError` for all that failed and may not.
    """
    if not mutated.asks_providers:
        return mutated.object
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


def _resolve(value: Any, answers: Mapping[str, Answers], faults: list[str], pace: Pace) -> Any:
    """The value with its placeholders replaced; the same one where it has none."""
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


def _answer(placeholder: Placeholder, answers: Mapping[str, Answers], faults: list[str]) -> str:
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


def _lookup(placeholder: Placeholder, answers: Mapping[str, Answers]) -> tuple[str, str]:
    """What is wrong with an answer, or empty; and its text."""
    provider = placeholder.source.provider
    said = answers.get(provider)
    if said is None:
        return f"failed to find external data provider {provider} in responses", ""
    if said.fault:
        return said.fault, ""
    answer = said.by_key.get(placeholder.key)
    if answer is None:
        return f"failed to find external data item in response for provider {provider}", ""
    if answer.error:
        fault = f"failed to retrieve external data item from provider {provider}: {answer.error}"
        return fault, ""
    if type(answer.value) is not str:
        kind = "float64" if type(answer.value) is int else go_type(answer.value)
        fault = (
            f"failed to convert external data item value from provider {provider} to string, "
            f"got type {kind}"
        )
        return fault, ""
    return "", answer.value
