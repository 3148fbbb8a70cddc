"""Translates the findings of a review to an answer, in Gatekeeper's words and codes."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from webhook.api.admission import AdmissionResponse
from webhook.api.names import LONE_SURROGATE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from webhook.constraint.causes import UndecidedCause
    from webhook.constraint.result import Responses, Result, Undecided


CHARACTERS_MAX: Final = 256
TOTAL_BYTES_MAX: Final = 4096

_ROOM_FOR_REST: Final = len("4294967296 more warnings")

# Go's unicode.IsControl (category Cc), line and paragraph separators, characters that change the
# direction of writing in a terminal, and lone surrogates.
_UNSAFE: Final = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u206f]+")


def one_line(text: str) -> str:
    """Returns a text as one line of valid Unicode, cut to the length that the API server shows."""
    if len(text) <= CHARACTERS_MAX and text.isprintable() and text == text.strip():
        return text  # As most are; of one object there may be thousands.
    text = _UNSAFE.sub(" ", text)
    text = LONE_SURROGATE.sub("\N{REPLACEMENT CHARACTER}", text).strip()
    return text if len(text) <= CHARACTERS_MAX else text[: CHARACTERS_MAX - 1] + "…"


def safe_warnings(texts: Iterable[str], missing_already: int = 0) -> tuple[str, ...]:
    """Returns the warnings to send: safe, without repetitions, within the budget.

    They keep their order. The API server silently drops a warning with any control character or
    invalid UTF-8. If all together exceed 4,096 bytes it cuts each to 256 and then drops the excess
    (k8s.io/apiserver endpoints/filters/warning.go). So the last warning counts those without room;
    it includes the ``missing_already``.
    """
    warnings: list[str] = []
    bytes_left = TOTAL_BYTES_MAX
    missing = 0
    for text in dict.fromkeys(map(one_line, texts)):
        size = len(text.encode())
        if missing == 0 and size + _ROOM_FOR_REST <= bytes_left:
            warnings.append(text)
            bytes_left -= size
        else:
            missing += 1
    missing += missing_already
    if missing:
        warnings.append(f"{missing} more warning{'s' if missing > 1 else ''}")
    return tuple(warnings)


WARNED: Final = 299
"""The code of an answer that allows with warnings."""


RESULTS_AT_ONCE: Final = 1_024
"""Results that are gone through between two rests of a thread, some 0.3 ms."""

MESSAGE_CHARACTERS_MAX: Final = 32 * 1024
"""Of the message of an answer: people read it, in a terminal or a CI's log. A hundred constraints
have some 300 characters each."""

LINE_CHARACTERS_MAX: Final = 4096
"""The part of one constraint in that line, in characters."""


FAULT_CODE: Final = 500
FAULT_REASON: Final = "PolicyFault"
"""Code and reason of a refusal for which no policy decided: its message names the policies."""


def allowed(uid: str, message: str = "") -> AdmissionResponse:
    """Allow without a review."""
    return AdmissionResponse(uid, allowed=True, message=message)


def denied(uid: str, message: str) -> AdmissionResponse:
    """Deny as a policy does."""
    return AdmissionResponse(uid, allowed=False, code=403, reason="Forbidden", message=message)


def errored(uid: str, code: int, message: str) -> AdmissionResponse:
    """Deny because the request itself is wrong, with a code that says how."""
    return AdmissionResponse(uid, allowed=False, code=code, message=_cut(message))


def with_notice(response: AdmissionResponse, notice: str) -> AdmissionResponse:
    """Returns an allowing answer with one more warning."""
    return response._replace(code=WARNED, warnings=safe_warnings([notice, *response.warnings]))


def with_warning(response: AdmissionResponse, warning: str) -> AdmissionResponse:
    """Returns the answer, allowing or not, with one more warning."""
    if response.allowed:
        return with_notice(response, warning)
    return response._replace(warnings=safe_warnings([warning, *response.warnings]))


UNDECIDABLE_REASON: Final = "Undecidable"
UNDECIDABLE_CODE: Final = 422
"""Code and reason of the refusal of an object that is too deep, too large or too slow to review."""

CROWDED_REASON: Final = "TooManyRequests"
CROWDED_CODE: Final = 429
"""Code and reason of the refusal of a request that had no time because of its user's others."""

_UNDECIDABLE_ADVICE: Final = (
    "make the object smaller (fewer containers, entries or levels), or split it; an operator may "
    "annotate constraints and mutators with waddle.dev/on-undecidable: ignore"
)
_CROWDED_ADVICE: Final = "send fewer requests at a time, or smaller objects, and this one again"


def undecidable(uid: str, message: str) -> AdmissionResponse:
    """Refuses an object that cannot be reviewed because of its own size, depth or content."""
    return _refused(uid, {"object"}, f"the object cannot be reviewed: {_cut(message)}")


def unmutated(uid: str, cause: UndecidedCause, why: str) -> AdmissionResponse:
    """Refuses an object whose mutation did not end in time because of itself or its user."""
    message = f"the object cannot be mutated: {why}\n{_refused_for({cause})[2]}"
    return _refused(uid, {cause}, message)


def crowded(uid: str, message: str) -> AdmissionResponse:
    """Refuses a request that had no room or time because of the same user's other requests."""
    return _refused(uid, {"requester"}, f"the object was not reviewed: {_cut(message)}")


def _refused(uid: str, causes: set[UndecidedCause], message: str) -> AdmissionResponse:
    code, reason, _ = _refused_for(causes)
    return AdmissionResponse(uid, allowed=False, code=code, reason=reason, message=message)


def judge(
    uid: str,
    responses: Responses,
    decision_id: str = "",
    rest: Callable[[float], None] | None = None,
) -> AdmissionResponse:
    """Returns the answer to a review: any ``deny`` denies, ``warn`` adds a warning.

    Without a denial, an undecided constraint refuses if it fails closed. Messages are in the order
    of the results. ``dryrun`` and unknown actions produce no message. ``rest`` is called between
    parts of the results.
    """
    if not responses.results and not responses.undecided:
        # As AdmissionResponse would, at a third of its cost.
        return tuple.__new__(AdmissionResponse, (uid, True, 200, "", "", (), decision_id, None))
    denials, warned = _Message(), _ViolationWarnings()
    for number, result in enumerate(responses.results, 1):
        if rest is not None and number % RESULTS_AT_ONCE == 0:
            rest(0.0)
        for action in result.actions:
            if action == "deny":
                denials.add(result)
            elif action == "warn":
                warned.add(result)
    warnings = warned.texts
    refusals = _Message()
    causes = set()
    for item in responses.undecided:
        if item.answer == "reject":
            refusals.add_line(undecided(item))
            causes.add(item.cause)
        elif item.answer == "warn":
            warnings.append(undecided(item))
    shown = safe_warnings(warnings, warned.missing) if warnings else ()
    if denials.shown:
        return tuple.__new__(
            AdmissionResponse,
            (uid, False, 403, "Forbidden", denials.text(), shown, decision_id, None),
        )
    if refusals.shown:
        status, reason, advice = _refused_for(causes)
        if advice:
            refusals.add_line(advice)
        return AdmissionResponse(
            uid,
            allowed=False,
            code=status,
            reason=reason,
            message=refusals.text(),
            warnings=shown,
            decision_id=decision_id,
        )
    code = WARNED if shown else 200
    return AdmissionResponse(uid, True, code, warnings=shown, decision_id=decision_id)


def _refused_for(causes: set[UndecidedCause]) -> tuple[int, str, str]:
    """Returns code, reason and advice of a refusal for undecided constraints."""
    if "object" in causes:
        return UNDECIDABLE_CODE, UNDECIDABLE_REASON, _UNDECIDABLE_ADVICE
    if "requester" in causes:
        return CROWDED_CODE, CROWDED_REASON, _CROWDED_ADVICE
    return FAULT_CODE, FAULT_REASON, ""


def _cut(text: str) -> str:
    return text if len(text) <= LINE_CHARACTERS_MAX else text[: LINE_CHARACTERS_MAX - 1] + "…"


class _Message:
    """The lines that have room in a message, and how many have not: they are not even written."""

    __slots__ = ("_characters_left", "_missing", "shown")

    def __init__(self) -> None:
        self.shown: list[str] = []
        self._characters_left = MESSAGE_CHARACTERS_MAX
        self._missing = 0

    def add(self, result: Result) -> None:
        """Adds a constraint's result."""
        if self._missing:
            self._missing += 1
        else:
            self.add_line(f"[{result.constraint.name}] {_cut(result.msg)}")

    def add_line(self, line: str) -> None:
        """A line that is short enough."""
        self._characters_left -= len(line) + 1
        if self._characters_left < 0:
            self._missing += 1
        else:
            self.shown.append(line)

    def text(self) -> str:
        """Returns all of it."""
        more = [f"… and {self._missing} more"] if self._missing else []
        return "\n".join([*self.shown, *more])


class _ViolationWarnings:
    """The warnings of violations that may have room, and how many have certainly not."""

    __slots__ = ("_bytes_left", "_known", "_last", "missing", "texts")

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.missing = 0
        self._bytes_left = TOTAL_BYTES_MAX
        self._known: set[tuple[str, str]] = set()
        """The violations that are shown."""
        self._last = ("", "")

    def add(self, result: Result) -> None:
        """Adds a constraint's result."""
        key = result.constraint.name, result.msg
        if key in self._known:
            return
        if self._bytes_left <= 0:
            # Only consecutive duplicates are counted once. Remembering a hundred thousand held the
            # interpreter for 20 ms.
            if key != self._last:
                self.missing += 1
                self._last = key
            return
        self._known.add(key)
        text = one_line(f"[{key[0]}] {key[1]}")
        self.texts.append(text)
        self._bytes_left -= len(text)


def undecided(item: Undecided) -> str:
    """One line that names a constraint which could not be decided, and says why."""
    constraint = item.constraint
    return one_line(
        f"[{constraint.name}] {constraint.kind} could not be decided ({item.cause}): {item.message}"
    )
