"""The stage that reviews by ValidatingAdmissionPolicies, of files or of a cluster.

It only adds results. The API server itself enforces these policies, so the webhook does not have
this stage; commands over files, audit and reports have it. The actions ``Deny``, ``Warn`` and
``Audit`` count as ``deny``, ``warn`` and ``dryrun``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from webhook.admission_policies.advice import type_warnings, unserved_resources
from webhook.admission_policies.authorizer import Answers, AuthorizerAnswer
from webhook.admission_policies.kinds import (
    BINDING,
    MUTATING_BINDING,
    MUTATING_POLICY,
    POLICY,
    ConfigurationFault,
)
from webhook.admission_policies.matching import concerns_kind, requested_resource
from webhook.admission_policies.parameters import UnknownParameters, named_parameters, parameters_of
from webhook.admission_policies.reading import AdmissionBinding, AdmissionPolicy, MutatingPolicy
from webhook.admission_policies.verdict import evaluate, misconfigured
from webhook.api.gvk import namespace_of
from webhook.api.shapes import object_of
from webhook.cel.errors import TimeUp
from webhook.constraint.constraint import Constraint
from webhook.constraint.result import DEFERRED, Remark, Result, Undecided, answer_order
from webhook.constraint.targets.admission import NAME
from webhook.mutation.drift import OPERATION as UPDATED
from webhook.mutation.mutator import MutatorId
from webhook.review.admission_changes import AdmissionChanges
from webhook.review.admission_requests import (
    known_of,
    looking,
    other_versions,
    request_of,
    requested_namespace,
    title_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from typing import Self

    from webhook.admission_policies.parameters import Find, ParameterStore
    from webhook.admission_policies.verdict import PolicyVerdict
    from webhook.api.gvk import GroupVersionKind
    from webhook.api.shapes import Json
    from webhook.constraint.result import Responses
    from webhook.constraint.snapshot import Snapshot
    from webhook.mutation.drift import Drift
    from webhook.review.policy_set import ChangedObject, Examination, MutatedBy
    from webhook.review.subject import Subject

ACTIONS: Final = {"Deny": "deny", "Warn": "warn", "Audit": "dryrun"}
"""The enforcement action of a constraint for each action of a binding."""


class ListedPolicy(NamedTuple):
    """A policy with its bindings by name and their actions.

    Bindings of mutating policies have no actions.
    """

    kind: str
    name: str
    policy: AdmissionPolicy | MutatingPolicy
    bindings: tuple[tuple[str, tuple[str, ...]], ...]


class AdmissionPolicies:
    """Policies and their bindings. Immutable, except that it records which policies have matched."""

    def __init__(
        self,
        items: Iterable[AdmissionPolicy | MutatingPolicy | AdmissionBinding | AuthorizerAnswer],
    ) -> None:
        listed = list(items)
        self.answers = Answers([stage for stage in listed if isinstance(stage, AuthorizerAnswer)])
        self._policies: dict[tuple[str, str], AdmissionPolicy | MutatingPolicy] = {
            (MUTATING_POLICY if isinstance(item, MutatingPolicy) else POLICY, item.name): item
            for item in listed
            if isinstance(item, AdmissionPolicy | MutatingPolicy)
        }
        self._bindings = [item for item in listed if isinstance(item, AdmissionBinding)]
        self._pairs: list[tuple[AdmissionPolicy, AdmissionBinding, Constraint]] = []
        changing: list[tuple[MutatingPolicy, AdmissionBinding]] = []
        for binding in self._bindings:
            policy = self._policies.get((binding.policy_kind, binding.policy))
            if isinstance(policy, AdmissionPolicy):
                self._pairs.append((policy, binding, _constraint(policy, binding)))
            elif policy is not None:
                changing.append((policy, binding))
        self._changes = AdmissionChanges(changing, self.answers)
        self._alone = {
            policy.name: AdmissionChanges(
                [change for change in changing if change[0] is policy], self.answers
            )
            for policy, _ in changing
        }
        self._store: ParameterStore | None = None
        self.matched: set[str] = set()
        """The names of the policies that have matched a request so far."""

    def with_parameters(self, store: ParameterStore) -> Self:
        """Returns these policies with parameters from ``store`` instead of the snapshot's data."""
        self._store = store
        for changes in (self._changes, *self._alone.values()):
            changes.store = store
        return self

    def concerns(self, gvk: GroupVersionKind) -> bool:
        """Whether a bound policy may match objects of this kind on CREATE."""
        return any(
            any(
                concerns_kind(rule, gvk)
                for rule in policy.document["spec"]["matchConstraints"]["resourceRules"]
            )
            for policy, _, _ in self._pairs
        )

    def reads_more(self, gvk: GroupVersionKind) -> bool:
        """Whether a policy reviews such objects: parameters and rights may change."""
        return self.concerns(gvk)

    @property
    def keys(self) -> list[tuple[str, str]]:
        """The policies that have a binding: kind and name."""
        return sorted({(POLICY, policy.name) for policy, _, _ in self._pairs})

    @property
    def document_keys(self) -> Sequence[tuple[str, str]]:
        """None."""
        return ()

    @property
    def matched_keys(self) -> set[tuple[str, str]]:
        """The policies, as kind and name, that matched some request."""
        return {(POLICY, name) for name in self.matched}

    @property
    def enforced(self) -> Sequence[Mapping[str, Any]]:
        """None: the API server enforces them itself."""
        return ()

    @property
    def kinds_of_parameters(self) -> Sequence[GroupVersionKind]:
        """The kinds of resources that policies name as paramKind."""
        kinds = (policy.param_kind for policy in self._policies.values())
        return sorted({kind for kind in kinds if kind is not None})

    def known_parameters(
        self, kind: GroupVersionKind, inventory: Mapping[str, Any]
    ) -> Sequence[Mapping[str, Any]]:
        """Returns the parameter objects of a kind; raises :class:`UnknownParameters`."""
        if self._store is None:
            return list(known_of(inventory, kind))
        if why := self._store.why_unknown(kind):
            raise UnknownParameters(why)
        return self._store.find(kind)

    def warnings(self, inventory: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
        """Yields kind, name and reason of each policy or binding with no or an unintended effect."""
        yield from self.loose()
        for bound in self._bindings:
            kind = bound.policy_kind
            policy = self._policies.get((kind, bound.policy))
            if policy is None:
                continue
            if policy.param_kind is None and bound.param_ref is not None:
                text = f"its paramRef has no effect: {kind} {policy.name} has no paramKind"
            elif policy.param_kind is not None and bound.param_ref is None:
                text = (
                    f"it has no paramRef, so params is null in {kind} {policy.name}: add one, or "
                    "remove paramKind"
                )
            else:
                store = self._store
                try:
                    if store is not None:
                        store.check(policy, bound)
                except UnknownParameters:
                    continue  # the reader reports it
                find = store.find if store else lambda gvk: list(known_of(inventory, gvk))
                text = _fault_of_parameters(policy, bound, find, inventory)
            if text:
                yield BINDING if kind == POLICY else MUTATING_BINDING, bound.name, text
        yield from self.notes()

    def notes(self) -> Iterator[tuple[str, str, str]]:
        """Yields kind, name and reason of each policy with probably wrong rules or expressions.

        Unserved resources are guessed only for policies of files: in a cluster, discovery knows
        them.
        """
        for (kind, name), policy in sorted(self._policies.items()):
            guesses = unserved_resources(policy.document) if self._store is None else ()
            for text in (*guesses, *type_warnings(policy.document), *policy.cost.warnings):
                yield kind, name, text

    def listed(self) -> Iterator[ListedPolicy]:
        """Yields each policy with the bindings that name it, by kind and name."""
        for (kind, name), policy in sorted(self._policies.items()):
            bound = tuple(
                (binding.name, binding.actions)
                for binding in self._bindings
                if (binding.policy_kind, binding.policy) == (kind, name)
            )
            yield ListedPolicy(kind, name, policy, bound)

    def policy_of(self, kind: str, binding: str) -> tuple[str, str]:
        """Returns kind and name of the policy that a binding names.

        An empty name if there is no such binding.
        """
        policy_kind = POLICY if kind == BINDING else MUTATING_POLICY
        named = (candidate for candidate in self._bindings if candidate.policy_kind == policy_kind)
        return policy_kind, next((policy.policy for policy in named if policy.name == binding), "")

    def unbound(self) -> Iterator[tuple[str, str, str]]:
        """Yields kind, name and advice for each policy without a binding."""
        bound = {(binding.policy_kind, binding.policy) for binding in self._bindings}
        for kind, name in sorted(self._policies.keys() - bound):
            done = "reviewed" if kind == POLICY else "changed"
            yield (
                kind,
                name,
                f"no binding names it, so nothing is {done} by it: add a {kind}Binding",
            )

    def loose(self) -> Iterator[tuple[str, str, str]]:
        """Yields policies without a binding, and bindings that name no existing policy."""
        yield from self.unbound()
        for binding in self._bindings:
            kind = binding.policy_kind
            if (kind, binding.policy) not in self._policies:
                done = "reviewed" if kind == POLICY else "changed"
                text = (
                    f"there is no {kind} {binding.policy}, so nothing is {done} by it: add the policy, or "
                    "mend policyName"
                )
                yield BINDING if kind == POLICY else MUTATING_BINDING, binding.name, text

    @property
    def mutates(self) -> MutatedBy:
        """Returns "API server" if there are mutating policies, else an empty text."""
        return "API server" if self._changes else ""

    def change(
        self, subject: Subject, snapshot: Snapshot, look: Callable[[], None] | None = None
    ) -> ChangedObject:
        """Applies the mutating policies to an object that is about to be stored."""
        return self._changes.change(subject, snapshot, look)

    def may_change(self, gvk: GroupVersionKind) -> bool:
        """Whether a bound mutating policy matches updates of objects of this kind."""
        bound = (policy for policy in self._policies.values() if policy.name in self._alone)
        return any(
            concerns_kind(rule, gvk, UPDATED)
            for policy in bound
            if isinstance(policy, MutatingPolicy)
            for rule in policy.document["spec"]["matchConstraints"]["resourceRules"]
        )

    def drifts(self, subject: Subject, snapshot: Snapshot) -> Iterator[Drift]:
        """Yields the change that each mutating policy alone would make on an update of the object."""
        if (before := subject.object) is None:
            return
        for name, alone in sorted(self._alone.items()):
            changed = alone.change(subject, snapshot)
            yield from changed.drift_of(MutatorId(MUTATING_POLICY, name), before)

    def __call__(self, examined: Examination, responses: Responses) -> Responses:
        """Adds the policies' verdicts to the responses."""
        if responses is DEFERRED or not self._pairs:
            return responses
        request = request_of(examined.value)
        if request is None:
            return responses
        namespace = requested_namespace(request, examined.value, examined.snapshot)
        case = _Case(request, namespace, examined, self.answers, self._store)
        given = requested_resource(request), request, namespace
        for policy, binding, constraint in self._pairs:
            if not (policy.matches.includes(*given) and binding.matches.includes(*given)):
                continue
            self.matched.add(policy.name)
            case.take(policy, binding, constraint)
        return case.added_to(responses)


class _Case:
    """The verdicts of policies on one request."""

    def __init__(
        self,
        request: Json,
        namespace: Json | None,
        examined: Examination,
        answers: Answers,
        store: ParameterStore | None,
    ) -> None:
        self._request = request
        self._answers = answers
        self._store = store
        self._namespace = namespace
        self._snapshot = examined.snapshot
        self._look = looking(examined.limits)
        self._results: list[Result] = []
        self._undecided: list[Undecided] = []
        self._remarks: list[Remark] = []
        self._evaluated = 0

    def take(
        self, policy: AdmissionPolicy, binding: AdmissionBinding, constraint: Constraint
    ) -> None:
        """Evaluates a policy once for each of its parameters."""
        self._evaluated += 1
        try:
            kind, store = policy.param_kind, self._store
            if store is not None:
                store.check(policy, binding)
            namespaced = store.namespaced(kind) if store and kind else None
            given = parameters_of(policy, binding, self._request, self._find, namespaced=namespaced)
        except ConfigurationFault as fault:
            self._add(binding.name, constraint, misconfigured(policy, str(fault)), binding)
            return
        except UnknownParameters as error:
            self._leave(constraint, "environment", f"[binding {binding.name}] {error}")
            return
        for parameter in given:
            where = f"{binding.name}, parameters {title_of(parameter)}" if len(given) > 1 else ""
            try:
                verdict = evaluate(
                    policy, self._request, self._namespace, parameter, self._look, self._answers
                )
            except TimeUp as error:
                self._leave(constraint, "deadline", str(error))
                return
            self._add(where or binding.name, constraint, verdict, binding)

    def _find(self, kind: GroupVersionKind) -> Sequence[Mapping[str, Any]]:
        if self._store is not None:
            return self._store.find(kind)
        return list(known_of(self._snapshot.inventory, kind))

    def _add(
        self, where: str, constraint: Constraint, verdict: PolicyVerdict, binding: AdmissionBinding
    ) -> None:
        for failure in verdict.failures:
            details: Json = {"reason": failure.reason, "binding": binding.name}
            if verdict.annotations:
                details["auditAnnotations"] = dict(verdict.annotations)
            action, scoped = constraint.enforcement_action, constraint.points.get("*", ())
            if failure.denies:
                action, scoped = "deny", ()
            self._results.append(
                Result(
                    NAME,
                    constraint,
                    f"[binding {where}] {failure.message}",
                    details,
                    action,
                    scoped,
                    "error" if failure.is_error else "violation",
                )
            )
        self._remarks += [
            Remark(
                constraint, "ignored", f"[binding {where}] failurePolicy Ignore passes over {text}"
            )
            for text in verdict.ignored
        ]
        self._remarks += [
            Remark(constraint, "annotation", f"[binding {where}] audit annotation {key}: {text}")
            for key, text in verdict.annotations.items()
        ]
        for text in verdict.undecided:
            self._leave(constraint, "environment", f"[binding {where}] {text}")

    def _leave(self, constraint: Constraint, cause: Any, text: str) -> None:
        is_refused = "deny" in (constraint.enforcement_action, *constraint.points.get("*", ()))
        answer: Any = "reject" if is_refused else "warn"
        self._undecided.append(Undecided(NAME, constraint, cause, answer, text))

    def added_to(self, responses: Responses) -> Responses:
        """Returns the responses with the results of all policies."""
        results = responses.results
        if self._results:
            results = tuple(sorted((*results, *self._results), key=answer_order))
        return responses._replace(
            results=results,
            undecided=(*responses.undecided, *self._undecided),
            evaluated=responses.evaluated + self._evaluated,
            remarks=(*responses.remarks, *self._remarks),
        )


def _constraint(policy: AdmissionPolicy, binding: AdmissionBinding) -> Constraint:
    """Returns a policy and binding as the constraint that results report."""
    actions = tuple(sorted(ACTIONS[action] for action in binding.actions))
    document = dict(policy.document)
    if len(actions) == 1:
        return Constraint(POLICY, policy.name, document, actions[0])
    return Constraint(POLICY, policy.name, document, "scoped", {"*": actions})


def _fault_of_parameters(
    policy: AdmissionPolicy | MutatingPolicy,
    binding: AdmissionBinding,
    find: Find,
    inventory: Mapping[str, Any],
) -> str:
    """Returns why a binding's paramRef finds no or too many parameters; empty if it is right."""
    kind, reference = policy.param_kind, binding.param_ref
    if kind is None or reference is None:
        return ""
    named = named_parameters(reference, kind, find)
    if not named:
        versions = other_versions(inventory, kind)
        if versions and kind.group_version not in versions:
            return (
                f"its paramRef finds no {kind.kind} of {kind.group_version}, which paramKind names; "
                f"there are some of {', '.join(versions)}, which are not converted here"
            )
        becomes = "the policy reviews nothing by it"
        if reference["parameterNotFoundAction"] == "Deny":
            becomes = "failurePolicy decides" if policy.fails else "failurePolicy Ignore admits all"
        sought = f"its paramRef finds no {kind.kind}{_sought(reference)} among what was given"
        return f"{sought}: {becomes}. Add one, or mend paramRef"
    if len(named) > 1 and (reference.get("namespace") or not namespace_of(named[0])):
        names = ", ".join(sorted(map(title_of, named)))
        return f"its paramRef finds {len(named)}, and a request must satisfy each: {names}"
    return ""


def _sought(reference: Json) -> str:
    """Names the parameters of a paramRef, for messages; empty where it takes any."""
    name, place = reference.get("name"), reference.get("namespace")
    labels = object_of(object_of(reference.get("selector")).get("matchLabels"))
    parts = [f" {name}"] if name else []
    parts += [f" with {key}={value}" for key, value in labels.items()]
    return "".join(parts) + (f" in namespace {place}" if place else "")
