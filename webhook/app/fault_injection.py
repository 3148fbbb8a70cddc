"""A replica that is made to fail, so that tests see what the others do about it.

``WADDLE_INJECT_FAULT_FOR_TESTS=refuse-template:<Kind>:<Pod>`` makes this process
refuse one template that every other replica takes. It cannot be on by accident:
the value must name the process's own Pod, the process must have been given a
kubeconfig, and it must not run in a Pod (where the kubelet sets
``KUBERNETES_SERVICE_HOST``); anything else ends the start. It is logged as an error.

``blame-nobody:127.0.0.1`` makes it leave to failurePolicy what is slow by its own doing. Only a
process that listens on that address alone, which no API server of a cluster asks, accepts it.
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
    """The variable is set where no fault may be injected, or cannot be read."""


class RefusingDriver:
    """A driver that does not compile the template of one kind."""

    def __init__(self, driver: Driver, kind: str) -> None:
        self._driver = driver
        self._kind = kind

    @property
    def name(self) -> str:
        """Return the engine's name in templates: this stands in the driver's place."""
        return self._driver.name

    def compile(self, template: Template, code: Code) -> Evaluator:
        """Compile, but for the one kind."""
        if template.kind == self._kind:
            raise CompileError(f"refused for a test: {VARIABLE}")
        return self._driver.compile(template, code)


def refused_kind(settings: ServeSettings, environment: Mapping[str, str]) -> str:
    """The kind whose template this replica refuses; empty where no fault is asked for.

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
    """Whether this process leaves to failurePolicy what is slow by its own doing."""
    return (
        environment.get(VARIABLE) == BLAME_NOBODY
        and "KUBERNETES_SERVICE_HOST" not in environment
        and settings.serving.host == LOOPBACK
    )
