"""What an admission's review found, counted and logged."""

from __future__ import annotations

from typing import TYPE_CHECKING

from webhook.metrics.admission import EVALUATION_ERRORS, OVERRUNS, POLICY_FAULTS, UNDECIDABLE
from webhook.server import verdict
from webhook.server.denials import KNOWN_ACTIONS, denials
from webhook.server.outcome import Unanswerable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from webhook.api.admission import AdmissionRequest, AdmissionResponse
    from webhook.constraint.result import Responses, Undecided
    from webhook.log import Logger
    from webhook.metrics.registry import Registry


class AdmissionTelling:
    """Tells of reviews."""

    def __init__(self, registry: Registry, log: Logger, *, log_denies: bool) -> None:
        self._registry = registry
        self._log = log
        self._log_denies = log_denies

    def violations(self, request: AdmissionRequest, responses: Responses) -> None:
        """Count every violation, and log it if that is wanted."""
        registry = self._registry
        for result in responses.results:
            constraint = result.constraint
            for action in result.actions:
                if action in KNOWN_ACTIONS:
                    registry.violations.count(constraint.kind, constraint.name, action)
                else:
                    self._log.error(
                        "error validating enforcement action",
                        skipping_enforcement_action=action,
                        constraint=constraint.name,
                    )
            if result.error:
                registry.count(EVALUATION_ERRORS, constraint.kind)
        if self._log_denies:
            for fields in denials(request, responses):
                self._log.info(fields.pop("message"), **fields)

    def undecided(self, request: AdmissionRequest, undecided: Sequence[Undecided]) -> None:
        """Count every constraint that could not be decided; log what just went wrong."""
        for item in undecided:
            kind = item.constraint.kind
            self._registry.count(POLICY_FAULTS, kind, item.cause, item.answer)
            if item.cause == "error":
                self._registry.count(EVALUATION_ERRORS, kind)
            elif item.cause == "overrun":
                self._registry.count(OVERRUNS, kind)
            else:
                continue  # Told when it began; not for each request.
            self._log.error(
                "constraint not decided",
                hookType="validation",
                constraint_kind=kind,
                constraint_name=item.constraint.name,
                cause=item.cause,
                answer=item.answer,
                error=item.message,
                request_uid=request.uid,
            )

    def faulty(
        self, request: AdmissionRequest, responses: Responses
    ) -> AdmissionResponse | Unanswerable:
        """The request itself cannot be reviewed, or a template gave no verdict."""
        failed = [fault for fault in responses.faults if fault.kind]
        if not failed:
            told = "".join(f"{fault.target}: {fault.message}\n" for fault in responses.faults)
            message = f"error reviewing resource {request.name}: {told}"
            self._log.error("error executing query", hookType="validation", error=message)
            return verdict.errored(request.uid, 500, message)
        for fault in failed:
            self._registry.count(EVALUATION_ERRORS, fault.kind)
            self._log.error(
                "evaluation failed",
                hookType="validation",
                constraint_kind=fault.kind,
                error=fault.message,
            )
        told = "; ".join(f"{fault.kind}: {fault.message}" for fault in failed)
        return Unanswerable(500, "evaluation_error", f"evaluation failed: {told}")

    def refused(self, response: AdmissionResponse) -> None:
        """Count a refusal of what cannot be reviewed."""
        if response.reason == verdict.UNDECIDABLE_REASON:
            self._registry.count(UNDECIDABLE)

    def unexpanded(self, request: AdmissionRequest, why: str) -> None:
        """Log that what an object implies is not reviewed with it."""
        self._log.error(
            "object not expanded", hookType="validation", error=why, request_uid=request.uid
        )
