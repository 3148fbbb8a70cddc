"""Loads policies from the disk, counts them, and publishes complete revisions."""

from __future__ import annotations

import time
from collections import Counter
from typing import TYPE_CHECKING, Final

from webhook.admission_policies.kinds import MUTATING_POLICY, POLICY
from webhook.constraint import constraint
from webhook.metrics.mutation import EXPANSION_TEMPLATES, MUTATORS
from webhook.metrics.policies import RELOAD_FAULT, RELOAD_SECONDS, RELOADS, TEMPLATES
from webhook.metrics.providers import KNOWN_PROVIDERS
from webhook.mutation.mutator import VERSIONS as MUTATOR_VERSIONS
from webhook.policies.advice import advice_on_document, advice_on_messages
from webhook.policies.exception_advice import warnings_of_exceptions
from webhook.policies.extensions import Extensions, foreign_warnings
from webhook.policies.policy_files import PolicyFiles
from webhook.policy_kinds.known import (
    BESIDE_POLICIES,
    is_admission_policy,
    is_foreign_policy,
    kyverno_parts,
    part_of,
)
from webhook.printable import quantity
from webhook.serving.in_force import gauge, gauge_extensions, settle
from webhook.serving.revision import Revision, Serving

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from webhook.constraint.client import Client
    from webhook.constraint.snapshot import Snapshot
    from webhook.log import Logger
    from webhook.metrics.registry import Registry
    from webhook.policies.directory import Announce, PolicyReport
    from webhook.review.policy_set import PolicySet

_NAMING_KINDS: Final = BESIDE_POLICIES | {constraint.GROUP}

API_SERVERS: Final = "it is enforced by the API server, and never by waddle serve: apply it there"
NOT_FOLLOWED: Final = "nothing is decided by it: --kyverno-policies is off"
"""The reason why API server and Kyverno policies among the files are not evaluated."""

FAULTS_SHOWN: Final = 5
"""The most faults that a probe shows; the log has all of them."""


class PolicyLoader:
    """Loads policies and publishes revisions. Used by one thread."""

    def __init__(  # noqa: PLR0913  # what a process sets
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
        external_data: bool = True,
    ) -> None:
        """After ``retries`` loads with faults the process is ready without the faulty policies.

        ``kyverno`` is the mode of Kyverno's policies; ``announce`` is passed to the directory.
        Without ``external_data`` no mutator may ask a provider.
        """
        self._client = client
        self._files = PolicyFiles(
            client,
            paths,
            foreign=kyverno_parts(kyverno),
            announce=announce,
            external_data=external_data,
        )
        self._serving = serving
        self._registry = registry
        self._log = log
        self._retries_left = retries
        self._logged: frozenset[str] = frozenset()
        self._advised: frozenset[str] = frozenset()
        self._lost: frozenset[str] = frozenset()
        self._parts = frozenset(kyverno_parts(kyverno))
        self._foreign_advice: frozenset[str] = frozenset()
        self._skipped: tuple[str, ...] = ()
        self._repeated: tuple[str, ...] = ()
        self._state = "policies are not loaded yet"
        self._faults: tuple[str, ...] = ()
        self._idle = ""
        """That no constraint is in force, or an empty text."""

    def not_ready(self) -> str:
        """Returns why no policies are in force yet, or an empty text; thread-safe."""
        return self._state

    def faults(self) -> tuple[str, ...]:
        """Returns the faults of the files, as last read; thread-safe."""
        return (*self._faults, self._idle) if self._idle else self._faults

    def load(self) -> bool:
        """Reads the files and publishes them; returns whether they had no fault."""
        began = time.monotonic()
        try:
            policies, report = self._files.load()
        except Exception as error:  # noqa: BLE001  # after a failed reload the policies in force stay
            self._registry.count(RELOADS, "policies", "error")
            self._registry.set(RELOAD_FAULT, 1, "policies")
            self._faults = (f"internal error: {type(error).__name__}",)
            if self._serving.revision is None:
                self._state = self._faults[0]
            self._log.fault("bug while loading policies", error)
            return False
        seconds = time.monotonic() - began
        revision = Revision(policies, self._client)
        previous = self._serving.revision
        takes = previous is not None or self._good_enough(report, policies)
        extensions = self._publish(revision, report) if takes else None
        self._count(report, seconds)
        self._faults = tuple(str(fault) for fault in report.faults)
        # The log is written last, so that readers of a line find reviews, probes and metrics
        # updated.
        if extensions is not None:
            self._log.info("mutators in force", **extensions)
        if takes and (previous is None or _is_other(revision.snapshot, previous.snapshot)):
            self._log_in_force(revision, report, seconds)
        self._notify(policies, report, was_serving=previous is not None)
        if previous is None or _is_other(revision.snapshot, previous.snapshot):
            self._advise_on_foreign(report, policies)
        return not report.faults

    def _good_enough(self, report: PolicyReport, policies: PolicySet) -> bool:
        """Whether to begin serving with this first revision."""
        # Policies for a disabled engine only warn: no later load would enable it.
        faults = [fault for fault in report.faults if not fault.switched_off]
        if not faults:
            return True
        shown = "; ".join(str(fault) for fault in faults[:FAULTS_SHOWN])
        more = len(faults) - FAULTS_SHOWN
        self._state = shown + (f"; and {more} more" if more > 0 else "")
        if self._retries_left != 0:
            self._retries_left -= self._retries_left > 0
            return False
        # If a faulty file may contain constraints, a replica must not become ready without them.
        others = report.templates > 0 or policies.mutates
        return report.constraints > 0 or (others and not report.may_lack_constraints)

    def _publish(self, revision: Revision, report: PolicyReport) -> dict[str, int] | None:
        """Publishes a revision; returns log lines about changed mutators."""
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

    def _log_in_force(self, revision: Revision, report: PolicyReport, seconds: float) -> None:
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

    def _notify(self, policies: PolicySet, report: PolicyReport, *, was_serving: bool) -> None:
        """Logs each fault and warning when it is new, not at every load."""
        if report.skipped and report.skipped != self._skipped:
            self._log.info(
                "files that hold no Kubernetes object are skipped",
                count=len(report.skipped),
                files=", ".join(report.skipped[:FAULTS_SHOWN]),
            )
        self._skipped = report.skipped
        if report.repeated != self._repeated:
            for line in report.repeated:
                self._log.warning("an object is defined more than once", object=line)
        self._repeated = report.repeated
        for fault, text in zip(report.faults, self._faults, strict=True):
            if text not in self._logged:
                stays = (
                    "; the earlier version stays in force" if was_serving and fault.stays else ""
                )
                self._log.error(f"policy cannot be used{stays}", fault=text)
        advice = frozenset(
            str(problem)
            for manifest in report.read
            if manifest.gvk.group in _NAMING_KINDS
            for problem in advice_on_document(manifest.document)
        ).union(warnings_of_exceptions(policies, report))
        for text in sorted(advice - self._advised):
            self._log.warning("a policy is probably not as intended", policy=text)
        self._advised = advice
        if self._logged and not self._faults:
            self._log.info("all policies can be used again")
        self._logged = frozenset(self._faults)

    def _advise_on_foreign(self, report: PolicyReport, policies: PolicySet) -> None:
        """Logs warnings about API server and Kyverno policies, each text when it is new."""
        foreign = [item for item in report.read if is_foreign_policy(item.gvk)]
        advice = set(foreign_warnings(policies, foreign))
        let_be = [item for item in foreign if part_of(item.gvk) not in self._parts]
        if let_be:  # compiled for these warnings only
            others = Extensions()
            advice.update(map(str, others.load(let_be)))
            advice.update(foreign_warnings(others.policy_set(policies.snapshot), let_be))
        for item in let_be:
            is_own = is_admission_policy(item.gvk)
            if not is_own or item.gvk.kind in {POLICY, MUTATING_POLICY}:
                why = API_SERVERS if is_own else NOT_FOLLOWED
                advice.add(f"{item.file}:{item.line}: {item.title}: {why}")
        for text in sorted(advice - self._foreign_advice):
            self._log.warning(
                "an admission policy has no effect, or not the expected one", policy=text
            )
        self._foreign_advice = frozenset(advice)

    def advise_on_messages(self) -> None:
        """Logs the templates whose violations deny nothing for want of a message, each once."""
        revision = self._serving.revision
        entries = () if revision is None else revision.snapshot.entries
        lost = frozenset(map(str, advice_on_messages(entries)))
        for text in sorted(lost - self._lost):
            self._log.warning("violations deny nothing", policy=text)
        self._lost = lost

    def _count(self, report: PolicyReport, seconds: float) -> None:
        failing = bool(report.faults)
        self._registry.count(RELOADS, "policies", "error" if failing else "success")
        self._registry.set(RELOAD_FAULT, int(failing), "policies")
        self._registry.set(RELOAD_SECONDS, seconds, "policies")
        broken = Counter(fault.title.partition(" ")[0] for fault in report.faults)
        templates = broken["ConstraintTemplate"]
        self._registry.replace(TEMPLATES, {("active",): report.templates, ("error",): templates})
        revision = self._serving.revision
        expansions, conflicts = (
            (0, 0)
            if revision is None
            else (len(revision.expansion.names), len(revision.mutations.conflicts))
        )
        mutators = sum(broken[kind] for kind in MUTATOR_VERSIONS)
        self._registry.set(MUTATORS, conflicts + mutators, "error")
        self._registry.set(KNOWN_PROVIDERS, broken["Provider"], "error")
        self._registry.set(EXPANSION_TEMPLATES, expansions, "active")
        self._registry.set(EXPANSION_TEMPLATES, broken["ExpansionTemplate"], "error")


def _is_other(now: Snapshot, before: Snapshot) -> bool:
    """Returns whether the policies in force change; faulty ones are retried at each load."""
    return now.digest != before.digest or now.inventory is not before.inventory
