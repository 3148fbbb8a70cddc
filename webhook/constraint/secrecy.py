"""Keeps values of Secrets out of engine messages, which go to answers, logs, records and Events.

The messages that a policy's author writes are not changed.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from webhook.api.shapes import object_of
from webhook.constraint.errors import PolicyError

WITHHELD: Final = (
    "the error's text quotes a value of a Secret and is left out; "
    "try the policy on a Secret with made-up values"
)
"""The text that replaces an engine's message."""

PART_CHARACTERS: Final = 4
"""Words of a message shorter than this are not searched for in values, because most texts contain
them.
"""

_WORD: Final = re.compile(r"[^\s\"'`:;,(){}\[\]]+")


def quoting_no_secret(error: PolicyError, request: Any) -> PolicyError:
    """Returns an error, without its message if that quotes a value of the request's Secret.

    Parts of a value count, in upper and lower case, decoded from base64 or not.
    """
    if error.overrun or type(request) is not dict:
        return error
    bug = error.bug
    if bug is not None and any(_quotes(str(fault), request) for fault in _chain(bug)):
        withheld = RuntimeError(f"{type(bug).__name__}; its text quotes a value of a Secret")
        bug = withheld.with_traceback(bug.__traceback__)
    if bug is error.bug and not _quotes(str(error), request):
        return error
    return PolicyError(WITHHELD, no_verdict=error.no_verdict, too_deep=error.too_deep, bug=bug)


def _chain(error: BaseException) -> Iterator[BaseException]:
    """Yields an exception and its causes, which a traceback shows."""
    fault: BaseException | None = error
    while fault is not None:
        yield fault
        fault = fault.__cause__ or fault.__context__


def without_secrets(text: str, request: Mapping[str, Any]) -> str:
    """Returns an engine's message about a request's objects.

    Replaced if it quotes a value of a Secret.
    """
    return WITHHELD if _quotes(text, request) else text


def _quotes(text: str, request: Mapping[str, Any]) -> bool:
    secrets = [
        item
        for item in (object_of(request.get("object")), object_of(request.get("oldObject")))
        if item and "Secret" in (item.get("kind"), object_of(request.get("kind")).get("kind"))
    ]
    if not secrets:
        return False
    held = text.lower()
    words = {word for word in _WORD.findall(held) if len(word) >= PART_CHARACTERS}
    for value in (value.lower() for secret in secrets for value in _values(secret)):
        is_quoted = value in held if len(value) >= PART_CHARACTERS else value in _WORD.findall(held)
        if value and (is_quoted or any(word in value for word in words)):
            return True
    return False


def _values(secret: Mapping[str, Any]) -> Iterator[str]:
    """Yields the texts and numbers of a Secret's data, also decoded from base64."""
    due: list[Any] = [secret.get("data"), secret.get("stringData")]
    while due:
        value = due.pop()
        if isinstance(value, dict):
            due += value.values()
        elif isinstance(value, list):
            due += value
        elif isinstance(value, str):
            yield value
            try:
                yield base64.b64decode(value, validate=True).decode()
            except (binascii.Error, ValueError):
                continue
        elif value is not None:
            yield str(value)
