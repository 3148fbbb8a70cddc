"""Writes the narrowest exceptions for given violations."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from webhook.api.encoding import encode
from webhook.api.shapes import Json
from webhook.constraint.names import POLICY_NAME_MAX
from webhook.exceptions.exception import API_VERSION, CLUSTER_KIND, GROUP, KIND
from webhook.exceptions.reading import IMPLIED
from webhook.exceptions.schema import MESSAGE_MAX

_MESSAGES_MAX: Final = 100
"""The most messages of one exception; its schema has this limit."""

_OTHERS: Final = re.compile(r"[^a-z0-9]+")


class KnownViolation(NamedTuple):
    """A violation as in a report, record or message: its constraint and its object.

    ``is_connection`` says that the name is the request's: the options of a CONNECT have none.
    """

    constraint: tuple[str, str]
    group: str
    kind: str
    namespace: str
    name: str
    message: str
    is_connection: bool = False


class ExceptionTerms(NamedTuple):
    """The terms of new exceptions: reason, end and effect."""

    reason: str
    expires: str
    effect: str = "skip"
    ticket: str = ""
    owner: str = ""
    of_cluster: bool = False
    """Whether they are ClusterPolicyExceptions even for namespaced objects."""


def narrow_exceptions(violations: Iterable[KnownViolation], terms: ExceptionTerms) -> list[Json]:
    """Returns an exception for each constraint and object, with the messages of its violations.

    Of more messages than an exception may have, there are several.
    """
    messages: dict[KnownViolation, dict[str, None]] = {}
    for violation in violations:
        message = (
            violation.message.partition("] ")[2]
            if violation.message.startswith(IMPLIED)
            else violation.message
        )
        messages.setdefault(violation._replace(message=""), {})[message] = None
    return [
        _exception(known, part, terms, number)
        for known, of_object in sorted(messages.items(), key=lambda item: item[0])
        for number, part in enumerate(_parts(list(of_object)))
    ]


def _parts(messages: Sequence[str]) -> list[Sequence[str]]:
    return [messages[at : at + _MESSAGES_MAX] for at in range(0, len(messages), _MESSAGES_MAX)]


def _exception(
    violation: KnownViolation, messages: Sequence[str], terms: ExceptionTerms, number: int
) -> Json:
    is_own = bool(violation.namespace) and not terms.of_cluster
    match: Json = {"kinds": [{"apiGroups": [violation.group], "kinds": [violation.kind]}]}
    if violation.namespace and not is_own:
        match["namespaces"] = [violation.namespace]
    conditions = []
    if violation.is_connection and violation.name:
        text = encode(violation.name).decode()
        conditions.append({"name": "name", "expression": f"request.name == {text}"})
    elif violation.name:
        match["name"] = name_pattern(violation.name)
    kind, name = violation.constraint
    spec: Json = {
        "constraints": [{"kind": kind, "name": name}],
        "match": match,
        "violations": [{"message": _pattern(message)} for message in messages if message],
        "matchConditions": conditions,
        "effect": terms.effect,
        "reason": terms.reason,
        "ticket": terms.ticket,
        "owner": terms.owner,
        "expires": terms.expires,
    }
    return {
        "apiVersion": f"{GROUP}/{API_VERSION}",
        "kind": KIND if is_own else CLUSTER_KIND,
        "metadata": {
            "name": _name(violation, number),
            **({"namespace": violation.namespace} if is_own else {}),
        },
        "spec": {field: value for field, value in spec.items() if value},
    }


def _pattern(message: str) -> str:
    """Returns the pattern for a message; a long one, which may have been cut, by its beginning."""
    return message if len(message) < MESSAGE_MAX else f"{message[: MESSAGE_MAX - 1]}*"


def name_pattern(name: str) -> str:
    """Returns the pattern for a name.

    A name with ``*`` inside is cut to its beginning or its end.
    """
    before, star, after = name.partition("*")
    return before + star if before else star + after.rpartition("*")[2]


def _name(violation: KnownViolation, number: int) -> str:
    """Returns a readable and deterministic name of an exception; ``number`` is 0 for an object's first."""
    return exception_name(
        f"{violation.constraint[1]}-{violation.kind}-{violation.name}",
        [*violation.constraint, *violation[1:5], *([str(number)] if number else [])],
    )


def exception_name(words: str, identity: Iterable[str]) -> str:
    """Returns a name made of words, unique for each identity."""
    digest = hashlib.sha256("/".join(identity).encode()).hexdigest()[:8]
    stem = _OTHERS.sub("-", words.lower())[: POLICY_NAME_MAX - len(digest) - 1].strip("-")
    return f"{stem}-{digest}"
