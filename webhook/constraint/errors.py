"""The framework's errors, with Gatekeeper's texts.

All are policy faults and go to the status of their template or constraint. The leading sentences
are the constraint framework's; messages about fields have apimachinery's form: ``spec.x: Invalid
value: "y": why``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from webhook.api.encoding import encode

if TYPE_CHECKING:
    from webhook.constraint.causes import FaultStage


class ConstraintFrameworkError(ValueError):
    """The client refuses a policy or object.

    ``bug`` is the exception of a bug of ours that the policy's text triggered, if any.
    """

    bug: Exception | None = None


class InvalidTemplate(ConstraintFrameworkError):
    """A ConstraintTemplate cannot be used; ``code`` is the code of its status error."""

    stage: FaultStage = "template"

    def __init__(self, message: str, code: str = "create_error") -> None:
        super().__init__(message)
        self.code = code


class MissingEngine(InvalidTemplate):
    """A valid template has code only for engines that are turned off or not installed."""

    stage: FaultStage = "engine"

    def __init__(self, message: str) -> None:
        super().__init__(message, "engine")


class CompileError(InvalidTemplate):
    """A template's source does not parse or compile."""

    def __init__(self, message: str, stage: FaultStage = "compile") -> None:
        super().__init__(message, "ingest_error")
        self.stage = stage


class TrialEnded(CompileError):
    """A template's trial exceeded its bounds; another attempt would, too."""


class PassingFault(InvalidTemplate):
    """The machine could not compile a template now, which may be valid; it is tried again."""

    stage: FaultStage = "environment"
    CODE: Final = "environment"

    def __init__(self, message: str) -> None:
        super().__init__(message, self.CODE)


class OutOfMemory(PassingFault):
    """Compiling a template needed more memory than was free."""

    def __init__(self) -> None:
        super().__init__("policy needs more memory than there is")


class InvalidConstraint(ConstraintFrameworkError):
    """A constraint cannot be used."""


class SchemaViolation(InvalidConstraint):
    """A template's schema refuses a constraint."""


class MissingTemplate(ConstraintFrameworkError):
    """A constraint has no template."""


class BrokenTemplate(MissingTemplate):
    """A constraint's template has no usable revision."""


class MemberFault(ConstraintFrameworkError):
    """A member of a group cannot be evaluated; ``of_template`` if its template is the cause."""

    def __init__(self, message: str, *, of_template: bool) -> None:
        super().__init__(message)
        self.of_template = of_template


class UnsupportedEnforcementPoint(ConstraintFrameworkError):
    """The client does not serve the enforcement point of a review."""


class InvalidData(ConstraintFrameworkError):
    """An object cannot be referential data."""


class MatchError(Exception):
    """A match cannot be decided: the constraint counts as violated (autoreject)."""


class ReviewError(Exception):
    """A target recognizes a value but cannot review it."""


class PolicyError(Exception):
    """The evaluation of a template failed; the message is the engine's.

    ``no_verdict`` fails the review even if failures count as violations: Gatekeeper answers 500 to
    a violation whose msg is no string. ``overrun`` is an evaluation beyond its budget; ``too_deep``
    met values that nest too deeply, which more time would not change. ``bug`` is the exception of a
    bug of ours.
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
    """Returns a value as JSON, for a message about a field."""
    return encode(value).decode()


def invalid(path: str, value: Any, why: str) -> str:
    """Returns the message for a field with an invalid value."""
    return f"{path}: Invalid value: {shown(value)}: {why}"
