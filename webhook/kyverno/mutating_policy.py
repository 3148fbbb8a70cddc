"""Kyverno's MutatingPolicy: compiles one, and applies it to objects.

Its mutations have the form of a MutatingAdmissionPolicy, and the same code applies them. If a
mutation fails, the object stays unchanged (pkg/cel/policies/mpol of Kyverno 1.18).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from webhook.admission_policies.kinds import PATCH_TYPES, REINVOCATIONS
from webhook.admission_policies.mutating import with_value
from webhook.admission_policies.reading import PATCH_RESULTS
from webhook.api.shapes import integer_of, object_of, texts_of
from webhook.cel.errors import EvaluationError
from webhook.cel.kubernetes import patching
from webhook.cel.run.meter import Meter
from webhook.constraint.drivers.cel_validator import Composed
from webhook.kyverno.autogen import autogen_warnings, generated_specs
from webhook.kyverno.compiling import null_warnings, object_in, objects_in
from webhook.kyverno.kinds import InvalidPolicy
from webhook.kyverno.policy import COST, KUBERNETES, CompiledSpec, KyvernoPolicy, fault_text
from webhook.mutation.mutator import OPERATIONS, MutatorId
from webhook.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from webhook.api.shapes import Json
    from webhook.cel.engine import Expression
    from webhook.kyverno.policy import PolicyQuestion
    from webhook.kyverno.policy_exception import KyvernoException

_FIELDS: Final = {"ApplyConfiguration": "applyConfiguration", "JSONPatch": "jsonPatch"}
"""The field of a mutation's expression, by its patchType."""

_STORED: Final = "Waddle changes objects on their way to the API server, and none that are stored"


@dataclass(frozen=True, slots=True)
class KyvernoChange:
    """The outcome for an object: ``pass``, ``error``, or ``skip`` if the policy does not match it.

    ``missing`` are the facts that the policy read and that were not provided. Then the result is an
    error, and the object stays unchanged.
    """

    result: str
    object: Json
    message: str = ""
    missing: tuple[str, ...] = ()
    annotations: tuple[tuple[str, str], ...] = ()
    exception: KyvernoException | None = None
    is_about: bool = True
    """Whether the policy matches the object, regardless of its conditions."""


class _Spec(CompiledSpec):
    """A spec with its mutations."""

    def __init__(self, spec: Json, namespace: str) -> None:
        super().__init__(spec, namespace, conditions_read_variables=True)
        evaluation = object_in(spec, "evaluation")
        self._replaces_wholes = evaluation.get("useServerSideApply") is True
        self._mutations = [
            self._mutation(mutation, f"mutations[{at}]")
            for at, mutation in enumerate(objects_in(spec, "mutations"))
        ]

    def _mutation(self, mutation: Json, at: str) -> tuple[str, Expression]:
        patch_type = str(mutation.get("patchType"))
        if patch_type not in PATCH_TYPES:
            raise InvalidPolicy(
                f"spec.{at}.patchType: {patch_type!r} is not one of {', '.join(PATCH_TYPES)}"
            )
        field = _FIELDS[patch_type]
        given = mutation.get(field)
        if type(given) is not dict:
            raise InvalidPolicy(f"spec.{at}.{field}: is required where patchType is {patch_type}")
        expected = PATCH_RESULTS[patch_type]
        known = patching(self.environment)
        return patch_type, self.compiled(given, "expression", known, (expected,), f"{at}.{field}")

    def change(
        self,
        question: PolicyQuestion,
        exceptions: Sequence[KyvernoException],
        definitions: Iterable[Mapping[str, Any]],
    ) -> KyvernoChange:
        """Applies the mutations to the object of a request that the policy matches."""
        given, already = {**question.given(self.namespace)}, len(question.world.missing)
        before: Json = question.request["object"]
        try:
            exception = self.excusing(given, question, exceptions)
            if exception is not None:
                why = f"excused by {exception.title}"
                return KyvernoChange(exception.result, before, why, exception=exception)
            composed = Composed(self.variables, given, None)
            meter = composed.meter = Meter(COST, question.look)
            if not self.holds(self.conditions, composed.env, question):
                return KyvernoChange("skip", before)
            obj = before
            for patch_type, expression in self._mutations:
                value = expression.evaluate(composed.env, meter)
                obj = with_value(
                    patch_type, value, obj, definitions, replaces_wholes=self._replaces_wholes
                )
                # Variables that were read keep their values.
                composed.env["object"] = obj
            return KyvernoChange("pass", obj, annotations=self.annotated(composed, meter))
        except EvaluationError as error:
            return KyvernoChange("error", before, *fault_text(error, given, question, already))
        except RecursionError:
            return KyvernoChange("error", before, "the object is nested too deeply for it")


class KyvernoMutatingPolicy(KyvernoPolicy):
    """A compiled policy, with the specs that it implies for pod controllers.

    ``id``, ``generation`` and its text have the form of a mutator's, for records and metrics.
    """

    def __init__(self, document: Json) -> None:
        """Raises :class:`~webhook.kyverno.kinds.InvalidPolicy`, also for unsupported fields."""
        super().__init__(document)
        spec = self.spec
        if not spec.get("mutations"):
            raise InvalidPolicy("spec.mutations is empty: it would change nothing")
        _refuse_unsupported(self)
        reinvocation = spec.get("reinvocationPolicy") or "Never"
        if reinvocation not in REINVOCATIONS:
            raise InvalidPolicy(
                f"spec.reinvocationPolicy: {reinvocation!r} is not one of {', '.join(REINVOCATIONS)}"
            )
        self.reinvokes = reinvocation == "IfNeeded"
        self.id = MutatorId(self.kind, self.title)
        self.generation = integer_of(object_of(document.get("metadata")).get("generation"))
        generated = generated_specs(spec)
        self._specs = [_Spec(of, self.namespace) for of in (spec, *generated)]
        notes = _notes(self, is_generated=bool(generated))
        warnings, *_ = [compiled.cost_warnings() for compiled in self._specs]
        self.notes = (*notes, *warnings, *null_warnings(spec), *autogen_warnings(spec))

    @property
    def specs(self) -> Sequence[CompiledSpec]:
        """Returns its own spec, and those that it implies for pod controllers."""
        return self._specs

    def change(
        self, question: PolicyQuestion, definitions: Iterable[Mapping[str, Any]] = ()
    ) -> KyvernoChange:
        """Changes the object of an admission request.

        ``definitions`` are the known CustomResourceDefinitions; they determine how lists are
        merged.
        """
        if self.is_in_place(question):
            for spec in self._specs:
                if spec.is_about(question):
                    return spec.change(question, self.exceptions_of(question), definitions)
        return KyvernoChange("skip", question.request["object"], is_about=False)

    def names(self, request: Mapping[str, Any]) -> bool:
        """Whether a rule names the resource of a request, regardless of other matching."""
        return any(spec.names(request) for spec in self._specs)

    def __str__(self) -> str:
        """Returns kind, namespace, name and generation, for annotations and logs."""
        return f"{self.kind}/{self.namespace}/{self.name}:{self.generation}"


def _refuse_unsupported(policy: KyvernoMutatingPolicy) -> None:
    """Raises :class:`InvalidPolicy` for fields that would be ignored silently."""
    spec = policy.spec
    evaluation = object_in(spec, "evaluation")
    if policy.mode != KUBERNETES:
        raise InvalidPolicy(
            f"spec.evaluation.mode {policy.mode}: a MutatingPolicy changes objects of Kubernetes alone"
        )
    if object_in(evaluation, "mutateExisting").get("enabled"):
        raise InvalidPolicy(f"spec.evaluation.mutateExisting: {_STORED}")
    for field in ("targetMatchConstraints", "targetMatchConditions"):
        if spec.get(field):
            raise InvalidPolicy(f"spec.{field}: {_STORED}")
    if not policy.at_admission:
        raise InvalidPolicy(f"spec.evaluation.admission: without it nothing is changed: {_STORED}")
    rules = objects_in(object_in(spec, "matchConstraints"), "resourceRules")
    if not rules:
        raise InvalidPolicy(
            "spec.matchConstraints.resourceRules is empty: add a rule for what is changed"
        )
    for at, rule in enumerate(rules):
        operations = texts_of(rule.get("operations"))
        if operations and not {*OPERATIONS, "*"} & set(operations):
            raise InvalidPolicy(
                f"spec.matchConstraints.resourceRules[{at}].operations: nothing is changed at "
                f"{', '.join(operations)}, but at {' and '.join(OPERATIONS)}"
            )


def _notes(policy: KyvernoMutatingPolicy, *, is_generated: bool) -> Iterator[str]:
    """Yields notes on fields that have another effect here than in Kyverno."""
    spec = policy.spec
    if is_generated and any(mutation.get("jsonPatch") for mutation in spec["mutations"]):
        yield (
            "spec.autogen: a JSON Patch keeps the paths of a Pod for pod controllers, as in Kyverno; "
            "name no controllers (spec.autogen.podControllers.controllers: []) if it is for Pods"
        )
    if object_in(object_in(spec, "autogen"), "mutatingAdmissionPolicy").get("enabled"):
        yield (
            "spec.autogen.mutatingAdmissionPolicy: no MutatingAdmissionPolicy is written; the webhook "
            "applies it"
        )
    if spec.get("auditAnnotations"):
        yield "spec.auditAnnotations: they are evaluated, and shown in tests alone"
