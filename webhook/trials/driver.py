"""A driver that compiles sources after their trial."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from webhook.constraint.driver import Driver, Evaluator
    from webhook.constraint.drivers.rego import RegoDriver
    from webhook.constraint.template import Code, Template
    from webhook.trials.trials import Trials


class TriedDriver:
    """A driver that has its sources tried in another process before it compiles them here."""

    def __init__(self, driver: Driver, trials: Trials) -> None:
        self._driver = driver
        self._trials = trials

    @property
    def name(self) -> str:
        """The engine's name in templates: trials are before the driver, not instead of it."""
        return self._driver.name

    def compile(self, template: Template, code: Code) -> Evaluator:
        """Compile; raises :class:`~webhook.constraint.errors.InvalidTemplate`."""
        self._trials.source(code)
        return self._driver.compile(template, code)


class TriedRegoDriver(TriedDriver):
    """A driver of Rego that uses code from another process."""

    _driver: RegoDriver

    def compile(self, template: Template, code: Code) -> Evaluator:
        """Loads or compile; raises :class:`~webhook.constraint.errors.InvalidTemplate`."""
        compiled = self._trials.source(code)
        if compiled is None:
            return self._driver.compile(template, code)
        return self._driver.load(template, code, compiled.key, compiled.body)
