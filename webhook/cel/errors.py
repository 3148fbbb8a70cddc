"""Errors of expressions: when they are compiled, and when they are evaluated.

Operators such as ``&&`` absorb an :class:`EvaluationError` of an operand, unless it is
:class:`Ended`: a limit that was reached (:class:`TimeUp` or cost), or a panic of cel-go.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

PROBLEMS_MAX: Final = 100
"""The most problems of an expression that are reported, each with its line; as in cel-go."""

# cel-go takes every character beyond ASCII for two columns wide.
_WIDE_DOT, _WIDE_CARET = "\uff0e", "\uff3e"


class EvaluationError(Exception):
    """An evaluation without a value; the message is cel-go's."""

    @property
    def text(self) -> str:
        """Returns the message."""
        return str(self.args[0])


class ShownError(EvaluationError):
    """An error whose message shows a value; its form depends on the evaluation's inputs."""

    def __init__(self, text: str, before: str, value: Any, after: str) -> None:
        super().__init__(text)
        self.before = before
        self.value = value
        self.after = after


class NoAuthorizer(EvaluationError):
    """An evaluation calls the authorizer where there is none."""


class Ended(EvaluationError):
    """An error that ends the whole evaluation: no operator absorbs it."""


class LimitExceeded(Ended):
    """An evaluation that reached its limit of cost or time."""


class TimeUp(LimitExceeded):
    """An evaluation that exceeds the time limit of its review."""


class InternalError(Ended):
    """An evaluation that would end in a panic of cel-go."""

    def __init__(self, text: str) -> None:
        super().__init__(f"internal error: {text}")


class Unsure(Exception):
    """The fast form cannot decide: the exact form evaluates the expression again."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One fault of an expression; lines count from 1, columns (code points) from 0."""

    line: int
    column: int
    message: str


class CompileError(Exception):
    """An expression that cannot be compiled; the message is of the first problem."""

    def __init__(self, source: str, problems: list[Problem]) -> None:
        super().__init__(source, problems)
        self.source = source
        self.problems = sorted(
            problems[:PROBLEMS_MAX], key=lambda problem: (problem.line, problem.column)
        )
        """Sorted by place; problems at one place stay in the order of their discovery."""
        self.truncated_count = len(problems) - len(self.problems)

    def __str__(self) -> str:
        lines = self.source.split("\n")
        texts = [_problem_text(problem, lines) for problem in self.problems]
        if self.truncated_count:
            texts.append(f"{self.truncated_count} more errors were truncated")
        return "\n".join(texts)


class ParseError(CompileError):
    """A text that is no expression."""


class InstantiationError(CompileError):
    """An expression with a constant that has no value."""

    def __init__(self, source: str, message: str) -> None:
        super().__init__(source, [Problem(1, 0, message)])
        self.message = message

    def __str__(self) -> str:
        return f"program instantiation failed: {self.message}"


def _problem_text(problem: Problem, lines: list[str]) -> str:
    """Returns the problem with its line and a mark below it (cel-go, common/error.go)."""
    text = f"ERROR: <input>:{problem.line}:{problem.column + 1}: {problem.message}"
    if not 1 <= problem.line <= len(lines):
        return text
    line = lines[problem.line - 1].replace("\t", " ")
    before = "".join(
        "." if character.isascii() else _WIDE_DOT for character in line[: problem.column]
    )
    at = line[problem.column : problem.column + 1]
    caret = "^" if not at or at.isascii() else _WIDE_CARET
    return f"{text}\n | {line}\n | {before}{caret}"
