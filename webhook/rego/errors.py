"""The errors of the Rego language, with OPA's codes, messages and positions.

Three families, never mixed: a source that cannot be loaded
(:class:`RegoSyntaxError` and :class:`RegoCompileError`, collected in
:class:`RegoErrors`), an evaluation that failed (:class:`EvaluationError`), and a
built-in's complaint about its operands (:class:`BuiltinError`), which ordinary
evaluation turns into *undefined* and strict evaluation raises.
"""

from __future__ import annotations

import traceback
from collections.abc import Sequence
from pathlib import PurePath
from typing import Any, Final, Literal

from webhook.errors import WaddleError
from webhook.rego.location import NOWHERE, Location

LoadCode = Literal[
    "rego_parse_error",
    "rego_compile_error",
    "rego_type_error",
    "rego_unsafe_var_error",
    "rego_recursion_error",
    "format_error",
]

EvaluationCode = Literal[
    "eval_internal_error",
    "eval_cancel_error",
    "eval_conflict_error",
    "eval_type_error",
    "eval_builtin_error",
    "eval_with_merge_error",
]


GENERATED: Final = "<rego>"
"""The name of the file that generated code seems to be in."""


class RegoError(WaddleError):
    """One fault at one place: ``code``, ``message`` (without code or place) and ``location``."""

    code: str

    def __init__(self, message: str, location: Location = NOWHERE) -> None:
        super().__init__(message)
        self.message = message
        self.location = location

    def __str__(self) -> str:
        # A whole file at fault has row 0, as OPA tells it.
        place = f"{self.location}: " if self.location.row or self.location.file else ""
        return f"{place}{self.code}: {self.message}"


class RegoLoadError(RegoError):
    """A source that cannot be loaded; ``code`` is one of :data:`LoadCode`.

    ``details`` are lines that OPA prints below the message: for a parse error the line of source
    and a caret, for a type error the conflicting types.
    """

    def __init__(
        self,
        code: LoadCode,
        message: str,
        location: Location = NOWHERE,
        *,
        details: Sequence[str] = (),
    ) -> None:
        super().__init__(message, location)
        self.code: LoadCode = code
        self.details = tuple(details)

    def __str__(self) -> str:
        return "".join([super().__str__(), *(f"\n\t{line}" for line in self.details)])


class RegoErrors(WaddleError):
    """Every fault found in a set of sources, in order of place."""

    def __init__(self, errors: Sequence[RegoLoadError]) -> None:
        assert errors, "an empty collection of errors was raised"
        super().__init__(errors)
        self.errors = tuple(errors)

    def limited(self, most: int) -> RegoErrors:
        """Returns the first ``most`` errors and a note, as OPA's compiler stops; all for 0."""
        if not 0 < most <= len(self.errors):
            return self
        end = RegoLoadError("rego_compile_error", "error limit reached")
        return RegoErrors([*self.errors[:most], end])

    def __str__(self) -> str:
        if len(self.errors) == 1:
            return f"1 error occurred: {self.errors[0]}"
        lines = "\n".join(str(error) for error in self.errors)
        return f"{len(self.errors)} errors occurred:\n{lines}"


class EvaluationError(RegoError):
    """An evaluation that failed; ``code`` is one of :data:`EvaluationCode`.

    ``answer`` is the result that a strict evaluation still found; OPA returns both.
    """

    answer: Any = None

    def __init__(self, code: EvaluationCode, message: str, location: Location = NOWHERE) -> None:
        super().__init__(message, location)
        self.code = code


class EngineFault(EvaluationError):
    """An evaluation that ended in an exception of Python's: a fault of this engine.

    ``cause`` is the exception, ``place`` where in the generated code, or in the engine, it was
    raised. The message names neither values nor names: they may be a user's.
    """

    def __init__(self, cause: Exception) -> None:
        kind = type(cause).__name__
        super().__init__("eval_internal_error", f"policy met a fault of the engine: {kind}")
        self.cause = cause
        self.place = _raised_at(cause)


def _raised_at(error: BaseException) -> str:
    """Returns the place of an exception: the last generated function, and the raising one."""
    frames = traceback.extract_tb(error.__traceback__)
    generated = [frame for frame in frames if frame.filename == GENERATED]
    shown = [*generated[-1:], *(frames[-1:] if frames[-1:] != generated[-1:] else ())]
    return ", ".join(
        f"{PurePath(frame.filename).name}:{frame.lineno} in {frame.name}" for frame in shown
    )


class DepthError(EvaluationError):
    """An evaluation with values nested too deeply for Python."""

    def __init__(self) -> None:
        super().__init__("eval_cancel_error", "evaluation met values nested too deeply")


class BuiltinError(Exception):
    """A built-in cannot answer for these operands: undefined, or an error when strict.

    ``kind`` is ``type`` for an operand of the wrong type (eval_type_error) and
    ``builtin`` for everything else (eval_builtin_error). The message excludes
    the built-in's name, which the caller puts in front as OPA does.
    """

    def __init__(self, message: str, kind: Literal["type", "builtin"] = "builtin") -> None:
        super().__init__(message)
        self.message = message
        self.kind = kind
