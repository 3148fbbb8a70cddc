"""Applies the API server's MutatingAdmissionPolicies to an object, in the order of their names.

As in k8s.io/apiserver, admission/plugin/policy/mutating/dispatcher.go, the policies are selected
before any of them changes the object, and selected again for the reinvocation. The API server
documents no order; names make ours deterministic.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from webhook.admission_policies.kinds import MUTATED_OPERATIONS, MUTATING_POLICY, ConfigurationFault
from webhook.admission_policies.mutating import change
from webhook.admission_policies.parameters import (
    DEFINITIONS,
    ParameterStore,
    UnknownParameters,
    parameters_of,
)
from webhook.api.encoding import is_same_json
from webhook.cel.errors import TimeUp
from webhook.review.admission_requests import (
    as_given,
    as_requested,
    known_of,
    looking,
    request_of,
    requested_namespace,
    title_of,
)
from webhook.review.policy_set import ChangedObject

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from webhook.admission_policies.authorizer import Answers
    from webhook.admission_policies.reading import AdmissionBinding, MutatingPolicy
    from webhook.api.shapes import Json
    from webhook.constraint.snapshot import Snapshot
    from webhook.review.subject import Subject


class _Invocation(NamedTuple):
    """A policy with one of its parameter resources."""

    policy: MutatingPolicy
    binding: AdmissionBinding
    parameter: Any

    @property
    def key(self) -> tuple[str, str, str]:
        """Returns the key that identifies this invocation in the reinvocation."""
        named = "" if self.parameter is None else title_of(self.parameter)
        return self.policy.name, self.binding.name, named

    @property
    def title(self) -> str:
        """Returns the policy and its binding, for messages."""
        return f"{MUTATING_POLICY}/{self.policy.name} [binding {self.binding.name}]"


class AdmissionChanges:
    """Mutating policies with their bindings."""

    store: ParameterStore | None = None
    """The parameters of a cluster; None where they are among the data of the snapshot."""

    def __init__(
        self, pairs: Iterable[tuple[MutatingPolicy, AdmissionBinding]], answers: Answers
    ) -> None:
        self._pairs = sorted(pairs, key=lambda pair: (pair[0].name, pair[1].name))
        self._answers = answers

    def __bool__(self) -> bool:
        return bool(self._pairs)

    def change(
        self, subject: Subject, snapshot: Snapshot, look: Callable[[], None] | None = None
    ) -> ChangedObject:
        """Changes a subject's object.

        The result can run the policies with ``reinvocationPolicy`` again.
        """
        obj: Any = subject.object
        request = request_of(subject.value)
        if request is None or request.get("operation") not in MUTATED_OPERATIONS:
            return ChangedObject(obj)
        namespace = requested_namespace(request, subject.value, snapshot)
        turn = _Turn(self, request, namespace, snapshot, look or looking(subject.limits))
        invoked = turn.take(obj)
        again = {invocation.key for invocation in invoked if invocation.policy.reinvokes}
        outcome = turn.outcome(obj)
        if not again:
            return outcome
        return ChangedObject(
            outcome.object,
            outcome.by,
            outcome.ignored,
            outcome.faults,
            partial(turn.again, keys=again),
        )

    def invocations(
        self, request: Json, namespace: Json | None, snapshot: Snapshot
    ) -> tuple[list[_Invocation], list[tuple[MutatingPolicy, str]]]:
        """Returns the policies that match a request, and the faults of unreadable parameters."""
        invocations, faults = [], []
        for policy, binding in self._pairs:
            if not (policy.matches(request, namespace) and binding.matches(request, namespace)):
                continue
            try:
                given = self._parameters(policy, binding, request, snapshot)
            except (ConfigurationFault, UnknownParameters) as fault:
                title = _Invocation(policy, binding, None).title
                faults.append((policy, f"{title} failed to configure binding: {fault}"))
                continue
            invocations += [_Invocation(policy, binding, mutation) for mutation in given]
        return invocations, faults

    def _parameters(
        self, policy: MutatingPolicy, binding: AdmissionBinding, request: Json, snapshot: Snapshot
    ) -> Sequence[Any]:
        store = self.store
        if store is None:
            known = partial(known_of, snapshot.inventory)
            return parameters_of(policy, binding, request, lambda kind: list(known(kind)))
        store.check(policy, binding)
        namespaced = store.namespaced(policy.param_kind) if policy.param_kind else None
        return parameters_of(policy, binding, request, store.find, namespaced=namespaced)

    @property
    def answers(self) -> Answers:
        """Returns the answers of the API server's authorizer."""
        return self._answers


class _Turn:
    """One run of all matching policies over one request."""

    def __init__(
        self,
        changes: AdmissionChanges,
        request: Json,
        namespace: Json | None,
        snapshot: Snapshot,
        look: Callable[[], None] | None,
    ) -> None:
        self._changes = changes
        self._request = request
        self._namespace = namespace
        self._snapshot = snapshot
        self._look = look
        self._object: Json = request["object"]
        self._by: list[str] = []
        self._ignored: list[str] = []
        self._faults: list[str] = []

    def take(self, obj: Json, keys: set[tuple[str, str, str]] | None = None) -> list[_Invocation]:
        """Runs all policies, or those with the given keys.

        Returns those whose match conditions hold.
        """
        request = {**self._request, "object": as_requested(obj, self._request)}
        self._object = request["object"]
        invocations, faults = self._changes.invocations(request, self._namespace, self._snapshot)
        for policy, text in faults:
            self._fail(policy, text)
        invoked: list[_Invocation] = []
        for invocation in invocations:
            if keys is None or invocation.key in keys:
                invoked += self._ask(invocation, request)
        return invoked

    def _ask(self, invocation: _Invocation, request: Json) -> Sequence[_Invocation]:
        try:
            done = change(
                invocation.policy,
                {**request, "object": self._object},
                self._namespace,
                invocation.parameter,
                self._look,
                answers=self._changes.answers,
                definitions=tuple(known_of(self._snapshot.inventory, DEFINITIONS)),
            )
        except TimeUp as error:
            self._faults.append(f"{invocation.title} is not decided: {error}")
            return ()
        if done.is_skipped:
            return ()
        for text in done.faults:
            self._fail(invocation.policy, f"{invocation.title} {text}")
        self._faults += [f"{invocation.title} is not decided: {text}" for text in done.undecided]
        if not is_same_json(done.object, self._object):
            self._by.append(f"{MUTATING_POLICY}/{invocation.policy.name}")
        self._object = done.object
        return (invocation,)

    def _fail(self, policy: MutatingPolicy, text: str) -> None:
        if policy.fails:
            self._faults.append(f"denied request: {text}")
        else:
            self._ignored.append(f"failurePolicy Ignore passes over {text}")

    def outcome(self, before: Json) -> ChangedObject:
        """Returns the result of this run; the given object itself if nothing changed."""
        return ChangedObject(
            as_given(self._object, before) if self._by else before,
            tuple(self._by),
            tuple(self._ignored),
            tuple(self._faults),
        )

    def again(self, obj: Json, keys: set[tuple[str, str, str]]) -> ChangedObject:
        """Runs the policies with the given keys again, on the object as later mutators left it."""
        turn = _Turn(self._changes, self._request, self._namespace, self._snapshot, self._look)
        turn.take(obj, keys)
        return turn.outcome(obj)
