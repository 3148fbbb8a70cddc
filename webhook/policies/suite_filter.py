"""Selects tests and cases of suites to run: gator's ``--run``.

``x`` selects cases whose own name or test's name matches; ``x//y`` selects cases
that match ``y`` in tests that match ``x``. Both are RE2's, found anywhere.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from webhook.rego.errors import BuiltinError
from webhook.rego.run import patterns

if TYPE_CHECKING:
    from collections.abc import Callable

    from webhook.policies.suite import SuiteTest


class InvalidFilter(ValueError):
    """A filter that cannot be understood."""


class Filter:
    """A parsed filter; the empty filter selects everything."""

    def __init__(self, text: str = "") -> None:
        """Raises :class:`InvalidFilter`."""
        parts = text.split("//")
        if len(parts) > 2:
            raise InvalidFilter('invalid test filter: a filter may include at most one "//"')
        self._or = _compile(parts[0]) if len(parts) == 1 else None
        self._and = (_compile(parts[0]), _compile(parts[1])) if len(parts) == 2 else None

    def selects_test(self, test: SuiteTest) -> bool:
        """Returns whether any part of a test is selected."""
        if self._and is not None:
            return self._and[0](test.name)
        assert self._or is not None
        return self._or(test.name) or any(self._or(case.name) for case in test.cases)

    def selects_case(self, test: str, case: str) -> bool:
        """Whether a case is to be run, by the names of its test and its own."""
        if self._and is not None:
            return self._and[0](test) and self._and[1](case)
        assert self._or is not None
        return self._or(case) or self._or(test)


def _compile(pattern: str) -> Callable[[str], bool]:
    try:
        return patterns.pattern(pattern).found_in
    except BuiltinError as error:
        raise InvalidFilter(f"invalid test filter: {error}") from None
