"""Applies Kyverno's MutatingPolicies to an object, in the order of their names."""

from __future__ import annotations

import time
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from webhook.admission_policies.parameters import DEFINITIONS
from webhook.api.encoding import is_same_json
from webhook.api.gvk import text
from webhook.api.shapes import object_of
from webhook.cel.errors import TimeUp
from webhook.constraint.plan import PLANS_MAX
from webhook.kyverno.kinds import GROUP
from webhook.kyverno.policy import PolicyQuestion
from webhook.kyverno.world import World, synced_known
from webhook.mutation.mutator import OPERATIONS
from webhook.review.admission_requests import (
    as_given,
    as_requested,
    known_of,
    kyverno_namespace,
    looking,
    request_of,
)
from webhook.review.policy_set import ChangedObject

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from webhook.api.admission import AdmissionRequest
    from webhook.constraint.snapshot import Snapshot
    from webhook.kyverno.mutating_policy import KyvernoMutatingPolicy
    from webhook.kyverno.policy_exception import KyvernoException
    from webhook.review.subject import Subject


class KyvernoChanges:
    """MutatingPolicies and their exceptions."""

    def __init__(
        self, policies: Sequence[KyvernoMutatingPolicy], exceptions: Sequence[KyvernoException]
    ) -> None:
        self.policies = sorted(policies, key=lambda policy: (policy.title, policy.kind))
        self._exceptions = exceptions
        self._concerned: dict[tuple[str, ...], tuple[KyvernoMutatingPolicy, ...]] = {}
        """The policies by the resource of a request."""
        self.matched_keys: set[tuple[str, str]] = set()
        """The policies that some object matched, by kind and name."""

    def __bool__(self) -> bool:
        return bool(self.policies)

    def concerned(self, request: AdmissionRequest) -> tuple[KyvernoMutatingPolicy, ...]:
        """Returns the policies that have a rule for the request's kind."""
        if request.operation not in OPERATIONS:
            return ()
        resource = object_of(request.document.get("resource"))
        named = text(resource, "group"), text(resource, "version"), text(resource, "resource")
        key = (*named, text(request.document, "subResource"))
        if key not in self._concerned:
            if len(self._concerned) >= PLANS_MAX:
                self._concerned.clear()
            concerned = tuple(policy for policy in self.policies if policy.names(request.document))
            self._concerned[key] = concerned
            return concerned
        return self._concerned.get(key, ())

    def change(
        self, subject: Subject, snapshot: Snapshot, look: Callable[[], None] | None = None
    ) -> ChangedObject:
        """Changes a subject's object.

        The result can run the policies with ``reinvocationPolicy`` again.

        ``look`` raises after the deadline; by default that of the subject's limits.
        """
        obj: Any = subject.object
        request = request_of(subject.value)
        if request is None or request.get("operation") not in OPERATIONS:
            return ChangedObject(obj)
        now = time.time() if subject.at is None else subject.at
        known = synced_known(snapshot.inventory, snapshot.namespaces)
        question = PolicyQuestion(
            request,
            kyverno_namespace(request, subject.value, snapshot),
            World(known, int(now * 1e9)),
            self._exceptions,
            look or looking(subject.limits),
        )
        return _Turn(self, question, snapshot).take(obj, self.policies)


class _Turn:
    """One round of policies over an object."""

    def __init__(
        self, changes: KyvernoChanges, question: PolicyQuestion, snapshot: Snapshot
    ) -> None:
        self._changes = changes
        self._question = question
        self._snapshot = snapshot

    def take(self, obj: dict[str, Any], policies: Sequence[KyvernoMutatingPolicy]) -> ChangedObject:
        """Applies policies to an object, and prepares their reinvocation if some ask for it."""
        definitions = tuple(known_of(self._snapshot.inventory, DEFINITIONS))
        given, obj = obj, as_requested(obj, self._question.request)
        by: list[KyvernoMutatingPolicy] = []
        ignored: list[str] = []
        skipped: list[tuple[str, str]] = []
        faults: list[str] = []
        at_fault, invoked = "", []
        for policy in policies:
            name = f"{policy.kind}/{policy.title}"
            try:
                done = policy.change(self._question.about(obj), definitions)
            except TimeUp as error:
                faults.append(f"{name} is not decided: {error}")
                break
            if done.is_about:
                self._changes.matched_keys.add((policy.kind, policy.title))
            if done.result == "error":
                prefix = "is not decided: " if done.missing else ""
                text = f"{name} {prefix}{'; '.join(done.missing) or done.message}"
                if policy.fails:
                    faults.append(text)
                    at_fault = at_fault or _named(policy)
                else:
                    ignored.append(f"failurePolicy Ignore passes over {text}")
                    skipped.append((_named(policy), text))
            elif done.result == "pass" and done.exception is None:
                invoked.append(policy)
                if not is_same_json(done.object, obj):
                    by.append(policy)
                    obj = done.object
        again = [change for change in invoked if change.reinvokes]
        return ChangedObject(
            as_given(obj, given) if by else given,
            tuple(f"{mutator.kind}/{mutator.title}" for mutator in by),
            tuple(ignored),
            tuple(faults),
            partial(self._again, policies=again) if again else None,
            tuple(by),
            tuple(skipped),
            at_fault,
        )

    def _again(
        self, obj: dict[str, Any], policies: Sequence[KyvernoMutatingPolicy]
    ) -> ChangedObject:
        """Runs the policies with ``reinvocationPolicy`` again, on the object as mutators left it."""
        return replace(self.take(obj, policies), again=None)


def _named(policy: KyvernoMutatingPolicy) -> str:
    """Returns a policy's name in logs and records, in the form of a mutator's."""
    return f"{policy.kind}.{GROUP} /{policy.title}"
