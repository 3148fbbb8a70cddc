"""Policies from the disk into service: loaded, counted, published whole."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from webhook.constraint import constraint
from webhook.metrics.policies import (
    RELOAD_FAULT,
    RELOAD_SECONDS,
    RELOADS,
    TEMPLATES,
)
from webhook.policies.advice import advice_on_document
from webhook.policies.policy_files import PolicyFiles
from webhook.policy_kinds.known import BESIDE_POLICIES, kyverno_parts
from webhook.printable import quantity
from webhook.serving.in_force import gauge, gauge_extensions, settle
from webhook.serving.revision import Revision

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from webhook.constraint.client import Client
    from webhook.constraint.snapshot import Snapshot
    from webhook.log import Logger
    from webhook.metrics.registry import Registry
    from webhook.policies.directory import Announce, PolicyReport
    from webhook.review.policy_set import PolicySet
    from webhook.serving.revision import Serving

_NAMING_KINDS: Final = BESIDE_POLICIES | {constraint.GROUP}

FAULTS_SHOWN: Final = 5
"""Faults that a probe shows; the log has them all."""


class PolicyLoader:
    """Loads policies and puts what is in force into service. Used by one thread."""

    def __init__(
        self,
        client: Client,
        paths: Sequence[Path],
        serving: Serving,
        *,
        registry: Registry,
        log: Logger,
        retries: int,
        kyverno: str = "off",
        announce: Announce | None = None,
    ) -> None:
        """After ``retries`` loads with faults the process is ready without what is broken.

        ``kyverno`` says what is made of Kyverno's policies; ``announce`` is the directory's.
        """
        self._client = client
        self._files = PolicyFiles(client, paths, foreign=kyverno_parts(kyverno), announce=announce)
        self._serving = serving
        self._registry = registry
        self._log = log
        self._retries_left = retries
        self._logged: frozenset[str] = frozenset()
        self._advised: frozenset[str] = frozenset()
        self._skipped: tuple[str, ...] = ()
        self._state = "policies are not loaded yet"
        self._faults: tuple[str, ...] = ()
        self._idle = ""
        """That no constraint is in force, or an empty text."""

    def not_ready(self) -> str:
        """Why there is nothing to serve yet, or an empty text; any thread may ask."""
        return self._state

    def faults(self) -> tuple[str, ...]:
        """Return the faults of the files, as last read; any thread may ask."""
        return (*self._faults, self._idle) if self._idle else self._faults

    def load(self) -> bool:
        """Read the files and serve what they say; whether nothing was wrong with them."""
        began = time.monotonic()
        try:
            policies, report = self._files.load()
        except Exception as error:  # noqa: BLE001  # the reload's boundary: what is in force stays
            self._registry.count(RELOADS, "policies", "error")
            self._registry.set(RELOAD_FAULT, 1, "policies")
            self._faults = (f"internal error: {type(error).__name__}",)
            if self._serving.revision is None:
                self._state = self._faults[0]
            self._log.fault("bug while loading policies", error)
            return False
        seconds = time.monotonic() - began
        revision = Revision.of(policies, self._client)
        previous = self._serving.revision
        takes = previous is not None or self._good_enough(report, policies)
        extensions = self._publish(revision, report) if takes else None
        self._count(report, seconds)
        self._faults = tuple(str(fault) for fault in report.faults)
        # The log comes last: who reads a line finds reviews, probes and metrics so, too.
        if extensions is not None:
            self._log.info("mutators in force", **extensions)
        if takes and (previous is None or _is_other(revision.snapshot, previous.snapshot)):
            self._tell_in_force(revision, report, seconds)
        self._tell(report, was_serving=previous is not None)
        return not report.faults

    def _good_enough(self, report: PolicyReport, policies: PolicySet) -> bool:
        """Whether to begin serving with this first revision."""
        # What an engine would decide that is switched off is warned about: more will not come.
        faults = [fault for fault in report.faults if not fault.switched_off]
        if not faults:
            return True
        shown = "; ".join(str(fault) for fault in faults[:FAULTS_SHOWN])
        more = len(faults) - FAULTS_SHOWN
        self._state = shown + (f"; and {more} more" if more > 0 else "")
        if self._retries_left != 0:
            self._retries_left -= self._retries_left > 0
            return False
        # A file that may hold the constraints must not leave a replica ready that enforces none.
        others = report.templates > 0 or policies.mutates
        return report.constraints > 0 or (others and not report.may_lack_constraints)

    def _publish(self, revision: Revision, report: PolicyReport) -> dict[str, int] | None:
        """Serve a revision; what to log of the mutators, if they are others."""
        previous = self._serving.revision
        if previous is None:
            settle()
        self._serving.revision = revision
        self._state = ""
        snapshot = revision.snapshot
        none = f"{quantity(report.templates, 'template')}, 0 constraints: nothing is enforced"
        foreign = revision.policies.foreign
        self._idle = "" if report.constraints or foreign.keys else none
        gauge(self._registry, snapshot)
        return gauge_extensions(self._registry, self._serving.fights, previous, revision)

    def _tell_in_force(self, revision: Revision, report: PolicyReport, seconds: float) -> None:
        snapshot = revision.snapshot
        self._log.info(
            "policies in force",
            revision=snapshot.revision,
            digest=snapshot.digest,
            templates=report.templates,
            constraints=report.constraints,
            data=report.data,
            seconds=round(seconds, 3),
        )
        if self._idle:
            self._log.warning("no constraint is in force: every request is allowed")

    def _tell(self, report: PolicyReport, *, was_serving: bool) -> None:
        """Log each fault when it is new, and not at every look."""
        if report.skipped and report.skipped != self._skipped:
            self._log.info(
                "files that hold no Kubernetes object are skipped",
                count=len(report.skipped),
                files=", ".join(report.skipped[:FAULTS_SHOWN]),
            )
        self._skipped = report.skipped
        for fault, text in zip(report.faults, self._faults, strict=True):
            if text not in self._logged:
                stays = "; what was in force before stays" if was_serving and fault.stays else ""
                self._log.error(f"policy cannot be used{stays}", fault=text)
        advice = frozenset(
            str(problem)
            for manifest in report.read
            if manifest.gvk.group in _NAMING_KINDS
            for problem in advice_on_document(manifest.document)
        )
        for text in sorted(advice - self._advised):
            self._log.warning("a policy probably names the wrong kind", policy=text)
        self._advised = advice
        if self._logged and not self._faults:
            self._log.info("all policies can be used again")
        self._logged = frozenset(self._faults)

    def _count(self, report: PolicyReport, seconds: float) -> None:
        failing = bool(report.faults)
        self._registry.count(RELOADS, "policies", "error" if failing else "success")
        self._registry.set(RELOAD_FAULT, int(failing), "policies")
        self._registry.set(RELOAD_SECONDS, seconds, "policies")
        templates = sum(fault.title.startswith("ConstraintTemplate ") for fault in report.faults)
        self._registry.replace(TEMPLATES, {("active",): report.templates, ("error",): templates})


def _is_other(now: Snapshot, before: Snapshot) -> bool:
    """Whether something else is in force; what is broken is tried anew at each look."""
    return now.digest != before.digest or now.inventory is not before.inventory
