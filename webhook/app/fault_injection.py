"""A replica that is made to fail, to test the reaction of the other replicas.

``WADDLE_INJECT_FAULT_FOR_TESTS=refuse-template:<Kind>:<Pod>`` makes this process refuse one
template that every other replica accepts. It cannot be on by accident: the value must name the
process's own Pod, the process must have a kubeconfig, and it must not run in a Pod (where the
kubelet sets ``KUBERNETES_SERVICE_HOST``). Any other value ends the start. It is logged as an error.

``blame-nobody:127.0.0.1`` makes it leave requests that are slow because of their own object to
failurePolicy. Only a process that listens on that address alone accepts it, which no API server
calls.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from webhook.constraint.errors import CompileError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from webhook.constraint.driver import Driver, Evaluator
    from webhook.constraint.template import Code, Template
    from webhook.settings.serve import ServeSettings

VARIABLE: Final = "WADDLE_INJECT_FAULT_FOR_TESTS"
FAULT: Final = "refuse-template"
LOOPBACK: Final = "127.0.0.1"
BLAME_NOBODY: Final = f"blame-nobody:{LOOPBACK}"


class FaultRefused(Exception):
    """The variable is invalid, or set in a process that must not inject faults."""


class RefusingDriver:
    """A driver that refuses to compile the template of one kind."""

    def __init__(self, driver: Driver, kind: str) -> None:
        self._driver = driver
        self._kind = kind

    @property
    def name(self) -> str:
        """Returns the engine's name in templates, which is the driver's."""
        return self._driver.name

    def compile(self, template: Template, code: Code) -> Evaluator:
        """Compiles a template; raises CompileError for the refused kind."""
        if template.kind == self._kind:
            raise CompileError(f"refused for a test: {VARIABLE}")
        return self._driver.compile(template, code)


def refused_kind(settings: ServeSettings, environment: Mapping[str, str]) -> str:
    """Returns the kind whose template this replica refuses; empty without a requested fault.

    Raises :class:`FaultRefused`.
    """
    refused = environment.get(VARIABLE)
    if refused is None or blames_nobody(settings, environment):
        return ""
    if "KUBERNETES_SERVICE_HOST" in environment or not settings.policies.kubeconfig:
        raise FaultRefused(f"{VARIABLE}: only for a test's process with --kubeconfig")
    fault, _, rest = refused.partition(":")
    kind, _, pod = rest.partition(":")
    if fault != FAULT or not kind or pod != settings.pod.name:
        raise FaultRefused(f"{VARIABLE}: must be {FAULT}:<Kind>:{settings.pod.name}")
    return kind


def blames_nobody(settings: ServeSettings, environment: Mapping[str, str]) -> bool:
    """Whether requests that are slow because of their own object are left to failurePolicy."""
    return (
        environment.get(VARIABLE) == BLAME_NOBODY
        and "KUBERNETES_SERVICE_HOST" not in environment
        and settings.serving.host == LOOPBACK
    )
