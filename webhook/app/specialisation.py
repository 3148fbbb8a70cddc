"""The thread on which constraints get code of their own, beside reviews."""

from __future__ import annotations

from typing import TYPE_CHECKING

from webhook.app.jobs_thread import JobsThread
from webhook.constraint.drivers.specialisation import Specialiser
from webhook.metrics.policies import (
    SPECIALISATIONS_REFUSED,
    SPECIALISED_BYTES,
    SPECIALISED_CONSTRAINTS,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from webhook.log import Logger
    from webhook.metrics.registry import Registry


class SpecialisingThread:
    """Started when a constraint first asks; the specialiser bounds what waits."""

    def __init__(self, evaluations: int, registry: Registry, log: Logger) -> None:
        """``evaluations`` is after how many a constraint asks."""
        self._jobs = JobsThread("specialise", "a constraint gets no code of its own", log)
        self.specialiser = Specialiser(self._submit, evaluations=evaluations)
        self._registry = registry

    def stop(self) -> None:
        """Write no more; what is being written is not waited for."""
        self._jobs.stop()

    def _submit(self, job: Callable[[], None]) -> None:
        self._jobs.submit(lambda: self._run(job))

    def _run(self, job: Callable[[], None]) -> None:
        try:
            job()
        finally:
            specialiser = self.specialiser
            self._registry.set(SPECIALISED_CONSTRAINTS, specialiser.constraints)
            self._registry.set(SPECIALISED_BYTES, specialiser.bytes)
            self._registry.set(SPECIALISATIONS_REFUSED, specialiser.refused)
