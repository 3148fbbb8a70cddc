"""Counts and logs the findings of an admission's review, with Gatekeeper's messages and fields."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from webhook.api.gvk import name_of
from webhook.constraint import enforcement
from webhook.constraint.result import Responses, logged_violation
from webhook.metrics.admission import (
    EVALUATION_ERRORS,
    EXCUSED,
    OVERRUNS,
    POLICY_FAULTS,
    UNDECIDABLE,
)
from webhook.server import submission, verdict
from webhook.server.outcome import Unanswerable
from webhook.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from webhook.api.admission import AdmissionRequest, AdmissionResponse
    from webhook.constraint.result import Result, Undecided
    from webhook.log import Logger
    from webhook.metrics.registry import Registry
    from webhook.serving.revision import ExceptionUses

KNOWN_ACTIONS: Final = frozenset(enforcement.SCOPED_ACTIONS)
"""The known enforcement actions; others are reported as an error of the constraint."""


EVENTS_MAX: Final = 100
"""The most log events of one request: answer and decision record list all violations, and one Pod
of thousands of containers would write 9 MB of log.
"""


def denials(request: AdmissionRequest, responses: Responses) -> list[dict[str, Any]]:
    """One log event for each violation, with Gatekeeper's message and fields."""
    document = submission.submitted(request)
    # On CREATE the client may leave the name to the server.
    name = request.name or (name_of(document) if document else "")
    events: list[dict[str, Any]] = []
    for number, result in enumerate(responses.results):
        if len(events) == EVENTS_MAX:
            events.append(
                {
                    "message": "denied admission: more violations than are logged of one request",
                    "hookType": "validation",
                    "process": "admission",
                    "violations": len(responses.results),
                    "notLogged": len(responses.results) - number,
                    "resource_kind": request.kind.kind,
                    "resource_namespace": request.namespace,
                    "resource_name": name,
                    "request_username": request.username,
                }
            )
            break
        if not KNOWN_ACTIONS.intersection(result.actions):
            continue
        events.append(
            {
                "message": f"denied admission: {result.msg}",
                "hookType": "validation",
                "semantic": True,
                "process": "admission",
                "details": result.details,
                "event_type": "violation",
                **logged_violation(result, request.kind, request.namespace, name),
                "constraint_enforcement_actions": list(result.scoped_actions),
                "request_username": request.username,
            }
        )
    return events


@dataclass(frozen=True, slots=True)
class ReviewLogOptions:
    """The operator's settings for log lines."""

    log_denies: bool = False


class GatheredViolations(NamedTuple):
    """The answer to a review with its metrics and log lines."""

    response: AdmissionResponse
    """The answer."""
    counts: list[tuple[Result, int]]
    """Violations to count, with their number."""
    events: list[dict[str, Any]]
    """Log events."""
    is_excused: bool
    """Whether an exception applies to a violation."""


class AdmissionObserver:
    """Counts and logs reviews."""

    def __init__(
        self, registry: Registry, log: Logger, uses: ExceptionUses, options: ReviewLogOptions
    ) -> None:
        """``uses`` records the use of exceptions."""
        self._uses = uses
        self._registry = registry
        self._log = log
        self._options = options

    def gathered(
        self,
        request: AdmissionRequest,
        responses: Responses,
        decision_id: str = "",
        rest: Callable[[float], None] | None = None,
    ) -> GatheredViolations:
        """Prepares the log lines of violations.

        Callable on any thread, since thousands take a while; ``rest`` is then called between parts.
        """
        alike: dict[tuple[int, str, tuple[str, ...], str], list[Result]] = {}
        is_excused = bool(responses.excused)
        for number, result in enumerate(responses.results, 1):
            if rest is not None and number % verdict.RESULTS_AT_ONCE == 0:
                rest(0.0)
            _, constraint, _, _, action, scoped, cause, excuse, _ = result
            is_excused = is_excused or excuse is not None
            key = id(constraint), action, scoped, cause
            if (group := alike.get(key)) is None:
                alike[key] = [result]
            else:
                group.append(result)
        return GatheredViolations(
            verdict.judge(request.uid, responses, decision_id, rest),
            [(results[0], len(results)) for results in alike.values()],
            denials(request, responses) if self._options.log_denies else [],
            is_excused,
        )

    def violations(self, gathered: GatheredViolations) -> None:
        """Counts all violations, and logs them if ``--log-denies`` is set."""
        for result, times in gathered.counts:
            self._count(result, times)
        if gathered.events:
            # The details of a violation may be a large part of the object.
            keeps = not any(event.get("details") for event in gathered.events)
            self._log.info_all(gathered.events, keeps=keeps)

    def _count(self, result: Result, times: int) -> None:
        """Counts violations of a constraint."""
        constraint = result.constraint
        for action in result.actions:
            if action in KNOWN_ACTIONS:
                self._registry.violations.count(constraint.kind, constraint.name, action, times)
            else:
                self._log.error(
                    "error validating enforcement action",
                    skipping_enforcement_action=action,
                    constraint=constraint.name,
                )
        if result.error:
            self._registry.count(EVALUATION_ERRORS, constraint.kind, by=times)

    def excused(self, request: AdmissionRequest, responses: Responses) -> None:
        """Counts excused violations and notes the use of exceptions; dry runs do not count as use."""
        for result in (*responses.excused, *responses.results):
            if result.excuse is not None:
                self._registry.count(EXCUSED, result.constraint.kind, result.excuse.effect)
        if not request.dry_run:
            self._uses.note(responses)

    def undecided(self, request: AdmissionRequest, undecided: Sequence[Undecided]) -> None:
        """Counts undecided constraints, and logs failures of this request."""
        for item in undecided:
            kind = item.constraint.kind
            self._registry.count(POLICY_FAULTS, kind, item.cause, item.answer)
            if item.cause == "error":
                self._registry.count(EVALUATION_ERRORS, kind)
            elif item.cause == "overrun":
                self._registry.count(OVERRUNS, kind)
            else:
                continue  # logged when the suspension begins, not for each request
            self._log.error(
                "a constraint gave no verdict",
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
        """Returns the answer if the request cannot be reviewed, or a template gave no verdict."""
        failed = [fault for fault in responses.faults if fault.kind]
        if not failed:
            faults = "".join(f"{fault.target}: {fault.message}\n" for fault in responses.faults)
            message = f"error reviewing resource {request.name}: {faults}"
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
        faults = "; ".join(f"{fault.kind}: {fault.message}" for fault in failed)
        return Unanswerable(500, "evaluation_error", f"evaluation failed: {faults}")

    def refused(self, response: AdmissionResponse) -> None:
        """Counts a refusal of a request that cannot be reviewed."""
        if response.reason == verdict.UNDECIDABLE_REASON:
            self._registry.count(UNDECIDABLE)

    def unexpanded(self, request: AdmissionRequest, why: str) -> None:
        """Logs that the implied objects were not reviewed."""
        self._log.error(
            "objects that a reviewed object creates were not reviewed with it",
            hookType="validation",
            error=why,
            request_uid=request.uid,
        )
