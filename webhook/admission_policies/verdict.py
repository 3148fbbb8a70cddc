"""Evaluates a policy on a request, with one resource of parameters.

As k8s.io/apiserver, admission/plugin/policy/validating/validator.go. Given answers decide on users'
rights (:mod:`~webhook.admission_policies.authorizer`). An expression that needs a missing answer is
undecided.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from webhook.admission_policies.authorizer import NO_ANSWERS, authorizers
from webhook.cel.errors import EvaluationError, NoAuthorizer, TimeUp
from webhook.cel.run.meter import EXPRESSION_COST, POLICY_COST, Meter
from webhook.constraint.drivers.cel_review import objects_of, variables_of
from webhook.constraint.drivers.cel_validator import (
    Composed,
    Purse,
    conditions_hold,
    failed_validations,
    failure_text,
    message_of,
    pass_on,
)
from webhook.golang.strings import SPACES

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from webhook.admission_policies.authorizer import Answers
    from webhook.admission_policies.reading import AdmissionPolicy
    from webhook.api.shapes import Json

ANNOTATION_BYTES_MAX: Final = 10 * 1024
"""The longest value of an audit annotation; longer ones are cut (validating/validator.go)."""


class PolicyFailure(NamedTuple):
    """A refusal of a request: by a false validation, or by an error under ``Fail``.

    ``denies`` is whether it denies whatever the binding's actions are. It does for unavailable
    parameters and for audit annotations in error (validating/dispatcher.go).
    """

    message: str
    reason: str = "Invalid"
    is_error: bool = False
    denies: bool = False


class PolicyVerdict(NamedTuple):
    """The result of a policy; ``ignored`` are errors that ``failurePolicy: Ignore`` admits."""

    failures: tuple[PolicyFailure, ...] = ()
    ignored: tuple[str, ...] = ()
    undecided: tuple[str, ...] = ()
    annotations: Mapping[str, str] = {}
    is_skipped: bool = False
    """Whether a match condition is false."""


_SKIPPED: Final = PolicyVerdict(is_skipped=True)
_PASSED: Final = PolicyVerdict()


def evaluate(
    policy: AdmissionPolicy,
    request: Json,
    namespace: Json | None,
    params: Any,
    look: Callable[[], None] | None = None,
    answers: Answers = NO_ANSWERS,
) -> PolicyVerdict:
    """Evaluates a policy on a request that it matches.

    ``namespace`` is the Namespace of the request, if it has one. ``answers`` are the answers on
    users' rights.
    """
    verdict = evaluate_fast(policy, request, namespace, params, look)
    if verdict is None:
        return evaluate_exact(policy, request, namespace, params, look, answers)
    return verdict


def evaluate_fast(
    policy: AdmissionPolicy,
    request: Json,
    namespace: Json | None,
    params: Any,
    look: Callable[[], None] | None = None,
) -> PolicyVerdict | None:
    """Returns the verdict of :func:`evaluate_exact` by generated code; None if that must decide."""
    fast = policy.fast
    if fast is None:
        return None
    if fast.reads_request:
        env = variables_of({**request, "namespaceObject": namespace})
    else:
        env = objects_of(request)
    env["params"] = params
    operation = request.get("operation") or ""
    meter = Meter(EXPRESSION_COST, look)
    try:
        if fast.conditions is not None:
            if fast.conditions.run(None, None, operation, env, meter, ()):
                return _SKIPPED
            meter.rewind(EXPRESSION_COST)
        prepared = fast.prepared.values(params, look)
        if prepared is None:
            return None
        failed = fast.validations.run(None, None, operation, env, meter, prepared)
    except TimeUp:
        raise
    except Exception:  # noqa: BLE001  # the single expressions then report the proper error
        return None
    if not failed:
        return _PASSED
    failures = []
    for number, value in failed:
        message = fast.messages[number]
        if value is not None:
            message = message_of(policy.validations[number], value)
        failures.append(PolicyFailure(message, policy.reasons[number]))
    return PolicyVerdict(tuple(failures))


def evaluate_exact(
    policy: AdmissionPolicy,
    request: Json,
    namespace: Json | None,
    params: Any,
    look: Callable[[], None] | None = None,
    answers: Answers = NO_ANSWERS,
) -> PolicyVerdict:
    """Evaluates a policy on a request that it matches, expression by expression."""
    given = variables_of({**request, "namespaceObject": namespace})
    inputs = {**given, **authorizers(request, answers)}
    try:
        if not conditions_hold(
            policy.conditions, {**inputs, "params": params, "namespaceObject": None}, look
        ):
            return _SKIPPED
    except NoAuthorizer as wanting:
        return PolicyVerdict(undecided=(f"a match condition {wanting}",))
    except EvaluationError as error:
        pass_on(error)
        return _faulty(policy, error.text)
    failures, ignored, undecided = [], [], []
    composed = Composed(policy.variables, inputs, params)
    reasons = {
        id(validation): why
        for validation, why in zip(policy.validations, policy.reasons, strict=True)
    }
    for validation in failed_validations(policy.validations, composed, look, cost=POLICY_COST):
        source = validation.validation.expression.source.strip(SPACES)
        if isinstance(validation.error, NoAuthorizer):
            undecided.append(f"expression '{source}' {validation.error}")
        elif not validation.is_error:
            failures.append(PolicyFailure(validation.message, reasons[id(validation.validation)]))
        elif policy.fails:
            failures.append(PolicyFailure(validation.message, is_error=True))
        else:
            ignored.append(validation.message)
    annotations, faults = _annotations(policy, Composed(policy.variables, given, params), look)
    if policy.fails:
        failures += [PolicyFailure(text, is_error=True, denies=True) for text in faults]
    else:
        ignored += faults
    return PolicyVerdict(tuple(failures), tuple(ignored), tuple(undecided), annotations)


def misconfigured(policy: AdmissionPolicy, text: str) -> PolicyVerdict:
    """Returns the verdict of a policy with unavailable parameters."""
    return _faulty(policy, f"failed to configure binding: {text}", denies=True)


def _faulty(policy: AdmissionPolicy, text: str, *, denies: bool = False) -> PolicyVerdict:
    if policy.fails:
        return PolicyVerdict((PolicyFailure(text, is_error=True, denies=denies),))
    return PolicyVerdict(ignored=(text,))


def _annotations(
    policy: AdmissionPolicy, composed: Composed, look: Callable[[], None] | None
) -> tuple[dict[str, str], list[str]]:
    """Returns the annotations that have a value, by key, and the errors of the others.

    An API server compiles them with an authorizer, and evaluates them without one.
    """
    annotations: dict[str, str] = {}
    faults = []
    purse = Purse(POLICY_COST, look)
    for key, expression in policy.audit_annotations.items():
        try:
            value = purse.pay(expression, composed.env)
        except EvaluationError as error:
            pass_on(error)
            faults.append(failure_text(expression, composed.env, error))
            continue
        text = value.strip(SPACES) if type(value) is str else ""
        if text:
            annotations[key] = text.encode()[:ANNOTATION_BYTES_MAX].decode(errors="ignore")
    return annotations, faults
