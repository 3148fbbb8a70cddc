"""The built-in ``external_data``: provider responses, or requests for missing ones.

It never waits. A missing response leaves the evaluation without a result. The evaluation still
continues with undefined while it asks the same provider, so that a rule that asks for each
container separately requests all keys at once. The findings of such an evaluation are dropped.
"""

from __future__ import annotations

import re
from typing import Any, Final

from webhook.constraint.errors import PolicyError
from webhook.external_data.exchange import (
    REQUEST_KEYS_MAX,
    REQUESTS_MAX,
    Answering,
    ProviderRequest,
    ProviderResponse,
    Unanswered,
    failure,
    has_no_provider,
)
from webhook.rego import types
from webhook.rego.builtins.registry import Context, make_builtin
from webhook.rego.errors import BuiltinError, EvaluationError
from webhook.rego.run.values import UNDEFINED, RegoObject, RegoSet, Value

NAME: Final = "external_data"

_UNWRITABLE: Final = re.compile(r"[\x00-\x07\x0b\x0e-\x1f\x7f]")
"""Characters that Go escapes in a way that JSON does not know; OPA passes the operand on as such a
text.
"""

STEPS_A_PART: Final = 4
"""Steps for each member of an array or object in the operand, at about 200 ns."""

_BEYOND: Final = "\uffff"


class Asking:
    """The provider requests of one template's evaluations in a review."""

    __slots__ = ("_known", "_missing", "_nobody", "_values")

    def __init__(self, known: Answering | None) -> None:
        self._known = known
        self._missing: dict[ProviderRequest, None] = {}
        self._values: dict[ProviderRequest, Value] = {}
        self._nobody = ""

    def answer(self, request: ProviderRequest) -> Value:
        """Returns the response to a request.

        Undefined, or the end of the evaluation, if it is missing.
        """
        value = self._values.get(request)
        if value is None:
            response = None if self._known is None else self._known(request)
            if response is None:
                return self._miss(request)
            if has_no_provider(response):
                self._nobody = f"{NAME}: {response.system_error}"
                raise _ended()
            value = self._values[request] = _value(response)
        return value

    def _miss(self, request: ProviderRequest) -> Value:
        missing = self._missing
        if missing:
            first = next(iter(missing))
            if request.provider != first.provider or len(missing) >= REQUESTS_MAX:
                raise _ended()
        missing[request] = None
        return UNDEFINED

    def end(self) -> None:
        """Ends one evaluation: its findings are valid unless a response was missing.

        Raises :class:`~webhook.external_data.exchange.Unanswered`, and PolicyError if there is no
        client for providers.
        """
        if self._missing:
            missing, self._missing = self._missing, {}
            raise Unanswered(tuple(missing))
        if self._nobody:
            fault, self._nobody = self._nobody, ""
            raise PolicyError(fault, no_verdict=True)


def _ended() -> EvaluationError:
    return EvaluationError("eval_cancel_error", "evaluation waits for an answer of a provider")


def _external_data(context: Context, operand: Value) -> Value:
    """Asks a provider for keys (Gatekeeper, "External Data")."""
    request = _usual_request(operand, context)
    if request is None:
        _check_writable(operand, context)
        request = _request(operand)
    count = len(request.keys)
    if not count:
        return {"responses": [], "errors": [], "status_code": 0, "system_error": ""}
    if count > REQUEST_KEYS_MAX:
        return _value(failure(f"{count} keys are asked for at once, and {REQUEST_KEYS_MAX} may be"))
    asking: Asking | None = getattr(context, "asking", None)
    if asking is None:
        raise BuiltinError(f"{NAME}: nobody can be asked here")
    return asking.answer(request)


BUILTIN: Final = make_builtin(
    NAME,
    (types.ANY,),
    types.ANY,
    _external_data,
    check=False,
    context=True,
    deterministic=False,
)


def _value(response: ProviderResponse) -> Value:
    return {
        "responses": _pairs(response.responses),
        "errors": _pairs(response.errors),
        "status_code": response.status_code,
        "system_error": response.system_error,
    }


def _pairs(given: tuple[tuple[str, Any], ...] | None) -> list[list[Any]] | None:
    return None if given is None else [list(pair) for pair in given]


# --- the operand ----------------------------------------------------------------------------------


def _usual_request(operand: Value, context: Context) -> ProviderRequest | None:
    """Reads an operand of a provider and printable keys, as nearly all are; None for any other."""
    if type(operand) is not dict or len(operand) != len(ProviderRequest._fields):
        return None
    provider, keys = operand.get("provider"), operand.get("keys")
    if type(provider) is not str or type(keys) is not list:
        return None
    try:
        is_printable = provider.isprintable() and "".join(keys).isprintable()
    except TypeError:  # a key is no text
        return None
    if not is_printable:
        return None
    context.charge(STEPS_A_PART * (len(operand) + len(keys)))
    return ProviderRequest(provider, tuple(keys))


def _request(operand: Value) -> ProviderRequest:
    """Reads a request from the operand's text as Go does; raises BuiltinError."""
    provider, keys = "", tuple[str, ...]()
    if operand is None:
        return ProviderRequest(provider, keys)
    if type(operand) is not dict:
        raise BuiltinError(f"{NAME}: the operand must be an object with provider and keys")
    for name in sorted(operand):  # as OPA writes them: of two that differ by case the last counts
        value, field = operand[name], name.casefold()
        if field == "provider" and value is not None:
            if type(value) is not str:
                raise BuiltinError(f"{NAME}: provider must be a string")
            provider = value
        elif field == "keys":
            keys = _keys(value, keys)
    return ProviderRequest(provider, keys)


def _keys(value: Value, before: tuple[str, ...]) -> tuple[str, ...]:
    """Reads keys as Go does, over those of an earlier field.

    A null keeps the former value at its index.
    """
    if value is None:
        return ()
    if type(value) is not list or any(type(key) is not str and key is not None for key in value):
        raise BuiltinError(f"{NAME}: keys must be an array of strings")
    if None not in value:
        return tuple(value)
    kept = (*before, *("" for _ in value))
    return tuple(kept[at] if key is None else key for at, key in enumerate(value))


def _check_writable(operand: Value, context: Context) -> None:
    """Refuses operands that OPA does not write as JSON: sets, non-string keys, some characters."""
    due = [operand]
    while due:
        value = due.pop()
        kind = type(value)
        if kind is list or kind is dict:
            context.charge(STEPS_A_PART * len(value))
        if kind is str:
            if not value.isprintable() and _is_unwritable(value):
                raise BuiltinError(f"{NAME}: a text has a character that JSON cannot hold")
        elif kind is list:
            due.extend(value)
        elif kind is dict:
            due.extend(value)
            due.extend(value.values())
        elif kind is RegoSet or kind is RegoObject:
            raise BuiltinError(f"{NAME}: the operand holds a set, or an object without names")


def _is_unwritable(text: str) -> bool:
    return _UNWRITABLE.search(text) is not None or any(
        letter > _BEYOND and not letter.isprintable() for letter in text
    )
