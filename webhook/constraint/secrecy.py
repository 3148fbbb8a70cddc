"""No message of ours quotes a value of a Secret: messages go to answers, logs, records and Events.

What a policy's author writes into a message is the author's; what an engine says of a value that it
could not use is ours.
"""

from __future__ import annotations

import base64
import binascii
import re
from typing import TYPE_CHECKING, Any, Final

from webhook.api.shapes import object_of
from webhook.constraint.errors import PolicyError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

WITHHELD: Final = (
    "the error's text quotes a value of a Secret and is left out; "
    "try the policy on a Secret with made-up values"
)
"""In the place of what an engine says."""

PART_CHARACTERS: Final = 4
"""So long is a word of a message that is looked for within values: shorter ones are in most texts."""

_WORD: Final = re.compile(r"[^\s\"'`:;,(){}\[\]]+")


def quoting_no_secret(error: PolicyError, request: Any) -> PolicyError:
    """Return an evaluation's error, without its words where they quote a value of the request's Secret.

    A part of a value counts, in any case of letters, and what base64 stands for.
    """
    if error.overrun or type(request) is not dict:
        return error
    bug = error.bug
    if bug is not None and any(_quotes(str(one), request) for one in _chain(bug)):
        withheld = RuntimeError(f"{type(bug).__name__}; its text quotes a value of a Secret")
        bug = withheld.with_traceback(bug.__traceback__)
    if bug is error.bug and not _quotes(str(error), request):
        return error
    return PolicyError(WITHHELD, no_verdict=error.no_verdict, too_deep=error.too_deep, bug=bug)


def _chain(error: BaseException) -> Iterator[BaseException]:
    """An exception and those that it came of: a traceback shows them all."""
    one: BaseException | None = error
    while one is not None:
        yield one
        one = one.__cause__ or one.__context__


def without_secrets(text: str, request: Mapping[str, Any]) -> str:
    """Return an engine's words about a request's objects, unless they quote a value of a Secret."""
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
    """The texts and numbers of its data, those that base64 stands for among them."""
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
