"""Which policies and bindings there should be, and what is to be told of each; nothing is written."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, Any, Final

from webhook.constraint.enforcement import WEBHOOK, points_of
from webhook.constraint.errors import ConstraintFrameworkError, InvalidTemplate
from webhook.constraint.existing import ALLOW, is_allowed_to_exist
from webhook.constraint.existing import ANNOTATION as EXISTING
from webhook.generation.binding import binding, vap_actions
from webhook.generation.policy import (
    NotExpressible,
    constraint_policy,
    read_code,
    template_policy,
)
from webhook.generation.scope import NoOperation
from webhook.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from webhook.api.shapes import Json
    from webhook.generation.policy import PolicyCode
    from webhook.generation.scope import PolicyScope

NO_ENGINE: Final = "K8sNativeValidation engine is missing"
WITHOUT: Final = "its template has no policy: "
NOT_WANTED: Final = (
    "conditions are not satisfied to generate ValidatingAdmissionPolicy and "
    "ValidatingAdmissionPolicyBinding: its template is not to have one (generateVAP)"
)


@dataclass(frozen=True, slots=True)
class Options:
    """The options that flags set: whether policies are made by default, and in which form."""

    policies: bool = True
    bindings: bool = True
    alone: bool = False
    """A policy for each constraint, with its parameters written into it."""
    fails: bool = True
    """Whether a template that has no failurePolicy fails by its errors."""


@dataclass(frozen=True, slots=True)
class Enforced:
    """A constraint in force: its document and the enforcement action that it has now."""

    document: Mapping[str, Any]
    action: str


def decides_beside(given: Enforced) -> bool:
    """Whether the webhook decides by a constraint, too; else it would have nobody."""
    if given.action != "scoped":
        return True
    return bool(points_of(given.document, (WEBHOOK,)))


def _ratcheted(document: Mapping[str, Any]) -> str:
    """Why the webhook alone decides by a constraint that lets stay what was there."""
    if not is_allowed_to_exist(document):
        return ""
    return (
        f"withdrawn for {EXISTING}: {ALLOW}: a policy of the API server cannot compare violations "
        "of the old object, so that the webhook alone decides"
    )


def _not_withdrawn(document: Mapping[str, Any]) -> str:
    del document
    return ""


@dataclass(frozen=True, slots=True)
class Made:
    """The result for a template or constraint: the names of its objects, or why there are none.

    ``waiting`` says what a binding waits for, ``withdrawn`` why there is none for now.
    """

    generation: int
    policy: str = ""
    binding: str = ""
    warning: str = ""
    error: str = ""
    waiting: str = ""
    withdrawn: str = ""


@dataclass(slots=True)
class GenerationPlan:
    """The objects that there should be, by name, and what became of whom.

    Bindings that are ``waiting`` are not made yet; one that is there, made by whoever need not wait
    any more, stays. ``owners`` are the UIDs of the templates and constraints that it was made from:
    of no other can be said that an object of theirs is not wanted.
    """

    policies: dict[str, Json] = field(default_factory=dict)
    bindings: dict[str, Json] = field(default_factory=dict)
    waiting: set[str] = field(default_factory=set)
    templates: dict[str, Made] = field(default_factory=dict)
    constraints: dict[tuple[str, str], Made] = field(default_factory=dict)
    owners: set[str] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class _Template:
    document: Mapping[str, Any]
    scope: PolicyScope
    code: PolicyCode | None = None
    is_generated: bool = False
    policy: Json | None = None
    made: Made | None = None


@dataclass(frozen=True, slots=True)
class _Constraint:
    given: Enforced
    template: _Template
    policy: Json | None = None
    binding: Json | None = None
    made: Made | None = None


class Planner:
    """Makes plans; what has not changed is the same object as in the plan before."""

    def __init__(self, options: Options, version: str) -> None:
        """``version`` is the one of the API group that the API server serves."""
        self._options = options
        self._version = version
        self._templates: dict[str, _Template] = {}
        self._constraints: dict[tuple[str, str], _Constraint] = {}

    def plan(
        self,
        templates: Mapping[str, Mapping[str, Any]],
        constraints: Mapping[tuple[str, str], Enforced],
        scope: PolicyScope,
        waits: Callable[[str], str],
        withdrawn: Callable[[Mapping[str, Any]], str] = _not_withdrawn,
    ) -> GenerationPlan:
        """The plan for what is in force: templates by name, constraints by kind and name.

        ``waits`` says what bindings of a template wait for, ``withdrawn`` why that of a constraint
        is withdrawn, so that the webhook alone decides by it; an empty text for nothing.
        """
        self._templates = {
            name: self._template(name, document, scope) for name, document in templates.items()
        }
        self._constraints = {
            key: self._constraint(key, given, known)
            for key, given in constraints.items()
            if (known := self._templates.get(key[0].lower())) is not None
        }
        plan = GenerationPlan(owners=_uids(templates, constraints))
        for name, template in self._templates.items():
            if template.made is not None:
                plan.templates[name] = template.made
            if template.policy is not None:
                plan.policies[template.policy["metadata"]["name"]] = template.policy
        for key, one in self._constraints.items():
            self._add(plan, key, one, waits, withdrawn)
        return plan

    def _add(
        self,
        plan: GenerationPlan,
        key: tuple[str, str],
        one: _Constraint,
        waits: Callable[[str], str],
        withdrawn: Callable[[Mapping[str, Any]], str],
    ) -> None:
        if one.made is None:
            return
        generated = one.made
        if one.policy is not None:
            plan.policies[one.policy["metadata"]["name"]] = one.policy
        if one.binding is not None:
            # A policy that has no resource of parameters waits for no kind to be served.
            reason = "" if self._options.alone else waits(key[0].lower())
            document = one.given.document
            why = _ratcheted(document) or withdrawn(document)
            if why and decides_beside(one.given):
                generated = Made(generated.generation, policy=generated.policy, withdrawn=why)
            elif reason:
                generated = Made(generated.generation, policy=generated.policy, waiting=reason)
                plan.waiting.add(one.binding["metadata"]["name"])
            else:
                plan.bindings[one.binding["metadata"]["name"]] = one.binding
        plan.constraints[key] = generated

    # --- templates -----------------------------------------------------------------------------

    def _template(self, name: str, document: Mapping[str, Any], scope: PolicyScope) -> _Template:
        known = self._templates.get(name)
        if known is not None and known.document is document and known.scope is scope:
            return known
        generation = document["metadata"].get("generation", 0)
        try:
            code = read_code(document, fails=self._options.fails)
        except InvalidTemplate:
            return _Template(document, scope)  # it is told elsewhere, with its place
        if code is None:
            return _Template(document, scope)
        by_template = code.source.generate_vap
        generates = self._options.policies if by_template is None else by_template
        if not generates or self._options.alone:
            return _Template(document, scope, code, generates)
        try:
            policy, warning = template_policy(document, code, scope, self._version)
        except (NotExpressible, NoOperation) as error:
            generated = Made(generation, error=str(error))
            return _Template(document, scope, code, generates, made=generated)
        generated = Made(generation, policy=policy["metadata"]["name"], warning=warning)
        return _Template(document, scope, code, generates, policy, generated)

    # --- constraints ---------------------------------------------------------------------------

    def _constraint(
        self, key: tuple[str, str], given: Enforced, template: _Template
    ) -> _Constraint:
        known = self._constraints.get(key)
        if (
            known is not None
            and known.template is template
            and known.given.document is given.document
            and known.given.action == given.action
        ):
            return known
        generation = given.document["metadata"].get("generation", 0)
        try:
            return self._made_constraint(given, template, generation)
        except (NotExpressible, NoOperation, ConstraintFrameworkError) as error:
            return _Constraint(given, template, made=Made(generation, error=str(error)))

    def _made_constraint(
        self, given: Enforced, template: _Template, generation: int
    ) -> _Constraint:
        actions = vap_actions(given.document, given.action, by_default=self._options.bindings)
        if not actions:
            return _Constraint(given, template)
        if template.code is None or not template.is_generated:
            if given.action != "scoped":
                return _Constraint(given, template)  # nobody asked for it
            raise NotExpressible(NO_ENGINE if template.code is None else NOT_WANTED)
        if template.made is not None and template.made.error:
            raise NotExpressible(f"{WITHOUT}{template.made.error}")
        alone, policy, warning = self._options.alone, None, ""
        if alone:
            policy, warning = constraint_policy(
                given.document, template.code, template.scope, self._version
            )
        bound = binding(given.document, actions, self._version, alone=alone)
        generated = Made(
            generation,
            policy=bound["spec"]["policyName"],
            binding=bound["metadata"]["name"],
            warning=warning,
        )
        return _Constraint(given, template, policy, bound, generated)


def _uids(
    templates: Mapping[str, Mapping[str, Any]], constraints: Mapping[tuple[str, str], Enforced]
) -> set[str]:
    documents = [*templates.values(), *(one.document for one in constraints.values())]
    return {uid for one in documents if (uid := one["metadata"].get("uid"))}
