"""The driver of the engine ``K8sNativeValidation``: templates whose source is CEL."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from webhook.constraint.drivers.cel_source import read_source
from webhook.constraint.template import CEL, Code, Template

if TYPE_CHECKING:
    from webhook.constraint.drivers.cel_evaluation import CelEvaluator

NAME: Final = CEL


class CelDriver:
    """Compiles templates whose source is CEL."""

    def __init__(self, *, fails: bool = True) -> None:
        """``fails`` is the failurePolicy of a source without one: whether an error is a violation."""
        self._fails = fails

    @property
    def name(self) -> str:
        """The engine's name in templates."""
        return NAME

    def compile(self, template: Template, code: Code) -> CelEvaluator:
        """Compiles a template's expressions, each with the variables before it.

        Raises :class:`~webhook.constraint.errors.InvalidTemplate`.
        """
        # Imported here: without a template in CEL the engine would cost memory.
        from webhook.constraint.drivers.cel_evaluation import CelEvaluator  # noqa: PLC0415

        del template
        return CelEvaluator(read_source(code.source, fails=self._fails))
