"""Expected answers, and faults of wrong ones: pure functions over decoded bodies."""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

# The API server's prefix of a webhook's own message (its ToStatusErr).
REFUSED = re.compile(r'admission webhook "[^"]+" denied the request: ', re.ASCII)
# RFC 9111 §5.5 as Kubernetes sends it: 299, an agent that is a dash, the quoted text.
WARNING = re.compile(r'299 - ("(?:[^"\\]|\\.)*")')
WRONG = "wrong "
"""The prefix of wrong answers: those are never within a tolerated ratio."""
SHOWN_CHARACTERS_MAX = 160
"""A failure's text names a row of Locust's report: long messages are cut."""


@dataclass(frozen=True, slots=True)
class Expectation:
    """The answer that policies demand."""

    allowed: bool
    message: str = ""
    warnings: tuple[str, ...] = ()
    code: int = 403
    """Of a denial: what Gatekeeper answers."""


def fault_of_review(
    expected: Expectation, uid: str, status: int, content: bytes | None
) -> str | None:
    """Returns the fault of a webhook's answer; None if there is none."""
    if status != 200:
        return f"no review: status {status}"
    try:
        review = json.loads(content or b"")
        response = review["response"]
        allowed, answered = response["allowed"], response["uid"]
    except (ValueError, KeyError, TypeError):
        return f"{WRONG}body: no AdmissionReview with a response"
    if answered != uid:
        return f"{WRONG}uid: not the request's"
    if allowed is not expected.allowed:
        return f"{WRONG}verdict: {_verdict(allowed)}, not {_verdict(expected.allowed)}"
    result = response.get("status") or {}
    if not expected.allowed:
        if result.get("code") != expected.code:
            return f"{WRONG}code: {result.get('code')}, not {expected.code}"
        fault = _fault_of_message(expected, str(result.get("message", "")))
        if fault:
            return fault
    return _fault_of_warnings(expected, response.get("warnings") or ())


def fault_of_object(
    expected: Expectation, status: int, content: bytes | None, headers: Iterable[tuple[str, str]]
) -> str | None:
    """Returns the fault of an API server's answer to a request that a webhook reviewed."""
    try:
        body = json.loads(content or b"")
    except ValueError:
        return f"{WRONG}body: no JSON with status {status}"
    if not isinstance(body, Mapping):
        return f"{WRONG}body: no object"
    message = str(body.get("message", ""))
    prefix = REFUSED.match(message)
    denied = status == expected.code and prefix is not None
    if denied is expected.allowed or not (denied or 200 <= status < 300):
        if denied or 200 <= status < 300:
            return f"{WRONG}verdict: {_verdict(not denied)}, not {_verdict(expected.allowed)}"
        return f"status {status}: {_shown(message)}"
    if prefix is not None:
        fault = _fault_of_message(expected, message[prefix.end() :])
        if fault:
            return fault
    # An API server warns of its own accord as well; a policy's warning begins with its constraint.
    ours = [text for text in warnings_of(headers) if text.startswith("[")]
    return _fault_of_warnings(expected, ours)


def warnings_of(headers: Iterable[tuple[str, str]]) -> list[str]:
    """The texts of an answer's Warning headers, several of which may share one line."""
    return [
        re.sub(r"\\(.)", r"\1", quoted[1:-1])
        for name, value in headers
        if name.lower() == "warning"
        for quoted in WARNING.findall(value)
    ]


def _fault_of_message(expected: Expectation, message: str) -> str | None:
    if message != expected.message:
        return f"{WRONG}message: {_shown(message)}"
    return None


def _fault_of_warnings(expected: Expectation, warnings: Iterable[Any]) -> str | None:
    if sorted(map(str, warnings)) != sorted(expected.warnings):
        return f"{WRONG}warnings: {_shown(' | '.join(map(str, warnings))) or 'none'}"
    return None


def _verdict(allowed: Any) -> str:
    return {True: "allowed", False: "denied"}.get(allowed, "neither") if allowed in (0, 1) else "?"


def _shown(text: str) -> str:
    return text[:SHOWN_CHARACTERS_MAX]
