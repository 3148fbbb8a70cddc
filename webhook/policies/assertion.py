"""An assertion of a test suite's case: the expected number of violations and their message."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from webhook.golang.strings import quote
from webhook.rego.errors import BuiltinError
from webhook.rego.run.patterns import pattern
from webhook.values import dataclass

_FIELDS = frozenset({"message", "violations"})

_WRONG_COUNT = (
    'invalid yaml: assertion.violation, if set, must be a nonnegative integer, "yes", or "no"'
)


class AssertionFailure(Exception):
    """The differing outcome of an assertion, or why it cannot be run."""


@dataclass(frozen=True, slots=True)
class Assertion:
    """``violations`` is a count, ``yes`` (at least one) or ``no``.

    ``message`` is a pattern of RE2.
    """

    violations: int | str = "yes"
    message: str | None = None

    def check(self, messages: Sequence[str]) -> None:
        """Compares with the messages of a review; raises :class:`AssertionFailure`."""
        fault = self._fault(self._matching(messages))
        if fault:
            raise AssertionFailure(f"{fault}: got messages [{' '.join(messages)}]")

    def _matching(self, messages: Sequence[str]) -> int:
        if self.message is None:
            return len(messages)
        try:
            compiled = pattern(self.message)
        except BuiltinError as error:
            raise AssertionFailure(
                f"message contains invalid regular expression: {error}"
            ) from None
        return sum(map(compiled.found_in, messages))

    def _fault(self, matching: int) -> str:
        counted = f"got {matching} violations"
        if self.message is not None:
            counted += f" containing {quote(self.message)}"
        match self.violations:
            case "yes":
                expected = "" if matching else "at least 1"
            case "no":
                expected = "none" if matching else ""
            case int() as count if count >= 0:
                expected = "" if matching == count else f"exactly {count}"
            case _:
                return _WRONG_COUNT
        return f"unexpected number of violations: {counted} but want {expected}" if expected else ""


def read_assertion(value: Any) -> Assertion:
    """Reads an assertion; raises ValueError for a field that is unknown, or of a wrong type."""
    if type(value) is not dict:
        raise ValueError("an assertion must be an object")
    if unknown := sorted(value.keys() - _FIELDS):
        raise ValueError(f'unknown field "{unknown[0]}": there are {", ".join(sorted(_FIELDS))}')
    violations, message = value.get("violations"), value.get("message")
    if violations is None:
        violations = "yes"
    if type(violations) is not str and type(violations) is not int:
        raise ValueError('violations must be a nonnegative integer, "yes" or "no"')
    if message is not None and type(message) is not str:
        raise ValueError("message must be a string")
    return Assertion(violations, message)
