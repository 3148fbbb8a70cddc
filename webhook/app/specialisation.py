"""The thread on which constraints get code of their own, beside reviews."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from webhook.app.priority import stand_behind
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
    """One thread, started when a constraint first asks; the specialiser bounds what waits."""

    def __init__(self, evaluations: int, registry: Registry, log: Logger) -> None:
        """``evaluations`` is after how many a constraint asks."""
        self.specialiser = Specialiser(self._submit, evaluations=evaluations)
        self._registry = registry
        self._log = log
        self._executor = ThreadPoolExecutor(
            max_workers=1, thread_name_prefix="specialise", initializer=stand_behind
        )

    def stop(self) -> None:
        """Write no more; what is being written is not waited for."""
        self._executor.shutdown(wait=False, cancel_futures=True)

    def _submit(self, job: Callable[[], None]) -> None:
        try:
            self._executor.submit(self._run, job)
        except RuntimeError:
            self._log.debug("no code for a constraint: stopping")  # a review during shutdown

    def _run(self, job: Callable[[], None]) -> None:
        try:
            job()
        except Exception as error:  # noqa: BLE001  # the thread's boundary: the general code stays
            self._log.fault("bug: no code for a constraint", error)
        specialiser = self.specialiser
        self._registry.set(SPECIALISED_CONSTRAINTS, specialiser.constraints)
        self._registry.set(SPECIALISED_BYTES, specialiser.bytes)
        self._registry.set(SPECIALISATIONS_REFUSED, specialiser.refused)
