"""The framework's errors, with the texts that Gatekeeper's users know.

All are policy faults: they belong in the status of the template or constraint
concerned. The sentences in front are those of the constraint framework; messages about fields have
apimachinery's form: ``spec.x: Invalid value: "y": why``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from webhook.api.encoding import encode

if TYPE_CHECKING:
    from webhook.constraint.causes import FaultStage


class ConstraintFrameworkError(ValueError):
    """A policy or object that the client refuses.

    ``bug`` is the fault of ours that a policy's text brought to light, where it was one.
    """

    bug: Exception | None = None


class InvalidTemplate(ConstraintFrameworkError):
    """A ConstraintTemplate that cannot be used; ``code`` is that of its status error."""

    stage: FaultStage = "template"

    def __init__(self, message: str, code: str = "create_error") -> None:
        super().__init__(message)
        self.code = code


class MissingEngine(InvalidTemplate):
    """A valid template whose code is all for engines that are off or not installed."""

    stage: FaultStage = "engine"

    def __init__(self, message: str) -> None:
        super().__init__(message, "engine")


class CompileError(InvalidTemplate):
    """A template whose source does not parse or compile."""

    def __init__(self, message: str, stage: FaultStage = "compile") -> None:
        super().__init__(message, "ingest_error")
        self.stage = stage


class TrialEnded(CompileError):
    """A template whose trial ended at its bounds; another attempt would end there, too."""


class PassingFault(InvalidTemplate):
    """A template that the machine could not compile now: it is tried again.

    Nothing is known against its text.
    """

    stage: FaultStage = "environment"
    CODE: Final = "environment"

    def __init__(self, message: str) -> None:
        super().__init__(message, self.CODE)


class OutOfMemory(PassingFault):
    """A template whose compilation needed more memory than was free."""

    def __init__(self) -> None:
        super().__init__("policy needs more memory than there is")


class InvalidConstraint(ConstraintFrameworkError):
    """A constraint that cannot be used."""


class SchemaViolation(InvalidConstraint):
    """A constraint that its template's schema refuses."""


class MissingTemplate(ConstraintFrameworkError):
    """A constraint without a template."""


class BrokenTemplate(MissingTemplate):
    """A constraint whose template has no usable revision."""


class MemberFault(ConstraintFrameworkError):
    """A group has a member that cannot be evaluated; ``of_template`` if its template cannot."""

    def __init__(self, message: str, *, of_template: bool) -> None:
        super().__init__(message)
        self.of_template = of_template


class UnsupportedEnforcementPoint(ConstraintFrameworkError):
    """A review for a point the client does not serve."""


class InvalidData(ConstraintFrameworkError):
    """An object that cannot be referential data."""


class MatchError(Exception):
    """A match that cannot be decided: the constraint counts as violated (autoreject)."""


class ReviewError(Exception):
    """A thing that a target understands but cannot review."""


class PolicyError(Exception):
    """A failed evaluation of a template; the message is the engine's.

    With ``no_verdict`` it fails the review even where failures count as
    violations: Gatekeeper answers 500 to a violation whose msg is no string.
    With ``overrun`` it was ended, not wrong: it took more than it may; with ``too_deep``
    because it met values nested deeper than can be followed, which more time would not mend.
    ``bug`` is the fault of ours that ended it, where it was one.
    """

    def __init__(
        self,
        message: str,
        *,
        no_verdict: bool = False,
        overrun: bool = False,
        too_deep: bool = False,
        bug: Exception | None = None,
    ) -> None:
        super().__init__(message)
        self.bug = bug
        self.no_verdict = no_verdict
        self.overrun = overrun
        self.too_deep = too_deep


def shown(value: Any) -> str:
    """Return a value as a message about a field shows it: as JSON."""
    return encode(value).decode()


def invalid(path: str, value: Any, why: str) -> str:
    """Return the message about a field whose value is not acceptable."""
    return f"{path}: Invalid value: {shown(value)}: {why}"
