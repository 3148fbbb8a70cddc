"""Evaluates a policy on one object of Kyverno's tests: of Kyverno's kinds or the API server's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

from webhook.admission_policies.kinds import (
    BINDING,
    MUTATED_OPERATIONS,
    ConfigurationFault,
    InvalidAdmissionPolicy,
)
from webhook.admission_policies.mutating import change
from webhook.admission_policies.parameters import DEFINITIONS, NOTHING, parameters_of
from webhook.admission_policies.reading import AdmissionBinding, AdmissionPolicy, MutatingPolicy
from webhook.admission_policies.verdict import PolicyVerdict, evaluate, misconfigured
from webhook.api.gvk import GroupVersionKind, gvk_of
from webhook.api.shapes import Json, annotations_of, object_of, objects_of
from webhook.kyverno.mutating_policy import KyvernoMutatingPolicy
from webhook.kyverno.policy import JSON, PolicyQuestion
from webhook.kyverno.validating_policy import SKIPPED, KyvernoVerdict, ValidatingPolicy
from webhook.policy_kinds.parts import read_admission_policy
from webhook.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    TestedPolicy: TypeAlias = "ValidatingPolicy | KyvernoMutatingPolicy | OwnPolicy"

SCORED: Final = "policies.kyverno.io/scored"
"""The annotation by which Kyverno reports ``fail`` as ``warn``, if it is ``false``."""


class CaseVerdict(NamedTuple):
    """The verdict of a policy: ``pass``, ``fail``, ``warn``, ``error`` or ``skip``.

    ``is_about`` is whether the policy matches the object, before its conditions. ``patched`` is the
    object after a mutating policy, None for a validating one.
    """

    result: str
    message: str = ""
    is_about: bool = True
    patched: Json | None = None
    lacks: bool = False
    """Whether the policy needed data that the test lacks."""


@dataclass(frozen=True, slots=True)
class OwnPolicy:
    """A policy of the API server with its bindings.

    Without a binding it applies to all objects that it matches, as in Kyverno's tests.
    """

    policy: AdmissionPolicy | MutatingPolicy
    bindings: tuple[AdmissionBinding, ...]
    objects: Sequence[Json]
    """Among which its parameters are."""

    def say(self, question: PolicyQuestion) -> CaseVerdict:
        """Judges a request."""
        request, namespace = question.request, question.namespace
        bound = [binding for binding in self.bindings if binding.matches(request, namespace)]
        if not self.policy.matches(request, namespace) or (self.bindings and not bound):
            return CaseVerdict("skip", is_about=False, patched=request["object"])
        bindings: Sequence[AdmissionBinding | None] = bound or [None]
        if isinstance(self.policy, AdmissionPolicy):
            return _verdict(list(self._verdicts(self.policy, bindings, question)))
        return self._changed(self.policy, bindings, question)

    def _find(self, kind: GroupVersionKind) -> list[Mapping[str, Any]]:
        return [obj for obj in self.objects if gvk_of(obj) == kind]

    def _parameters(self, binding: AdmissionBinding | None, request: Json) -> Iterable[Any]:
        if binding is None:
            return NOTHING
        return parameters_of(self.policy, binding, request, self._find)

    def _verdicts(
        self,
        policy: AdmissionPolicy,
        bindings: Sequence[AdmissionBinding | None],
        question: PolicyQuestion,
    ) -> Iterator[PolicyVerdict]:
        for binding in bindings:
            try:
                for params in self._parameters(binding, question.request):
                    yield evaluate(policy, question.request, question.namespace, params)
            except ConfigurationFault as fault:
                yield misconfigured(policy, str(fault))

    def _changed(
        self,
        policy: MutatingPolicy,
        bindings: Sequence[AdmissionBinding | None],
        question: PolicyQuestion,
    ) -> CaseVerdict:
        obj: Json = question.request["object"]
        if question.request.get("operation") not in MUTATED_OPERATIONS or obj is None:
            return CaseVerdict("skip", is_about=False)
        faults: list[str] = []
        lacks, is_skipped = False, True
        for binding in bindings:
            try:
                for params in self._parameters(binding, question.request):
                    request = {**question.request, "object": obj}
                    known = self._find(DEFINITIONS)
                    done = change(policy, request, question.namespace, params, definitions=known)
                    obj, is_skipped = done.object, is_skipped and done.is_skipped
                    faults += (*done.faults, *done.undecided)
                    lacks = lacks or bool(done.undecided)
            except ConfigurationFault as fault:
                faults.append(str(fault))
        if faults:
            return CaseVerdict("error", "; ".join(faults), patched=obj, lacks=lacks)
        return CaseVerdict("skip" if is_skipped else "pass", patched=obj)


def read_own(document: Json) -> tuple[Any, str]:
    """Reads a policy of the API server's own, or a binding.

    Also returns the names of absent fields. Kyverno's command accepts some that an API server would
    refuse: a rule without operations applies to all, a binding without actions denies. Raises
    :class:`InvalidAdmissionPolicy` for others.
    """
    try:
        return read_admission_policy(document), ""
    except InvalidAdmissionPolicy as fault:
        spec = object_of(document.get("spec"))
        completed = {**spec, **_completed_binding(document)} if "policyName" in spec else spec
        constraints = object_of(spec.get("matchConstraints"))
        if rules := objects_of(constraints.get("resourceRules")):
            all_operations = [{"operations": ["*"], **rule} for rule in rules]
            completed = {
                **spec,
                "matchConstraints": {**constraints, "resourceRules": all_operations},
            }
        try:
            return read_admission_policy({**document, "spec": completed}), str(fault)
        except InvalidAdmissionPolicy:
            raise fault from None


def _completed_binding(document: Json) -> Json:
    """Returns the defaults of a binding's absent fields: actions and parameterNotFoundAction."""
    spec = object_of(document.get("spec"))
    fields: Json = {}
    if gvk_of(document).kind == BINDING and not spec.get("validationActions"):
        fields["validationActions"] = ["Deny"]
    if parameters := object_of(spec.get("paramRef")):
        fields["paramRef"] = {"parameterNotFoundAction": "Deny", **parameters}
    return fields


def _verdict(verdicts: Sequence[PolicyVerdict]) -> CaseVerdict:
    """Combines the verdicts of each binding and its parameters."""
    failures = [failure for verdict in verdicts for failure in verdict.failures]
    undecided = [text for verdict in verdicts for text in verdict.undecided]
    if undecided:
        return CaseVerdict("error", "; ".join(undecided), lacks=True)
    if failures:
        is_error = all(failure.is_error for failure in failures)
        return CaseVerdict(
            "error" if is_error else "fail", "; ".join(failure.message for failure in failures)
        )
    return CaseVerdict("skip" if all(verdict.is_skipped for verdict in verdicts) else "pass")


def judged(policy: TestedPolicy, question: PolicyQuestion) -> CaseVerdict:
    """Judges an object by a policy, as Kyverno's command reports it."""
    if isinstance(policy, OwnPolicy):
        return _scored(policy.say(question), policy.policy.document)
    if isinstance(policy, KyvernoMutatingPolicy):
        if question.request["object"] is None:
            return CaseVerdict("skip", is_about=policy.is_about(question))
        done = policy.change(question)
        missing = bool(done.missing)
        return CaseVerdict(done.result, done.message, done.is_about, done.object, missing)
    if policy.mode == JSON:
        return judged_document(policy, question.request["object"], question)
    verdict = policy.say(question)
    is_about = verdict is not SKIPPED or policy.is_about(question)
    return _scored(_case_verdict(verdict)._replace(is_about=is_about), policy.document)


def judged_document(
    policy: ValidatingPolicy, document: Any, question: PolicyQuestion
) -> CaseVerdict:
    """Judges a document by a policy of mode JSON."""
    return _scored(_case_verdict(policy.verdict_of_json(document, question)), policy.document)


def _case_verdict(verdict: KyvernoVerdict) -> CaseVerdict:
    return CaseVerdict(verdict.result, verdict.message, lacks=bool(verdict.missing))


def _scored(verdict: CaseVerdict, document: Mapping[str, Any]) -> CaseVerdict:
    is_warning = verdict.result == "fail" and annotations_of(document).get(SCORED) == "false"
    return verdict._replace(result="warn") if is_warning else verdict
