"""The revision of policies in force, and whether there is one."""

from __future__ import annotations

import threading
import time
from dataclasses import field, replace
from typing import TYPE_CHECKING, Any, TypeAlias

from webhook.constraint.breaker import Guard
from webhook.mutation.fights import Fights
from webhook.values import dataclass

if TYPE_CHECKING:
    from webhook.api.gvk import GroupVersionKind
    from webhook.constraint.client import Client
    from webhook.constraint.expansion import Expansion
    from webhook.constraint.result import Excuse, Responses
    from webhook.constraint.snapshot import Snapshot
    from webhook.mutation.snapshot import MutationSnapshot
    from webhook.review.policy_set import PolicySet, ResultStage

ExceptionKey: TypeAlias = tuple[str, str, str]
"""Kind, namespace and name of an exception; no namespace for one of the cluster."""


class ExceptionUses:
    """The times at which exceptions were last used. Any thread notes, one thread takes."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._used: dict[ExceptionKey, float] = {}

    def note(self, responses: Responses) -> None:
        """Notes the time of use of the exceptions that excused something in these responses."""
        excuses: list[Excuse] = []
        for result in (*responses.excused, *responses.results):
            if result.excuse is not None:
                excuses += result.excuse.needed
        if not excuses:
            return
        now = time.time()
        with self._lock:
            for excuse in excuses:
                self._used[excuse.kind, excuse.namespace, excuse.name] = now

    def take(self) -> dict[ExceptionKey, float]:
        """Returns the uses since the last call, in seconds since the epoch."""
        if not self._used:
            return {}
        with self._lock:
            taken, self._used = self._used, {}
        return taken


@dataclass(frozen=True, slots=True)
class NamespaceAnswer:
    """The API server's answer about a Namespace.

    The object, None if it does not exist, or an error.
    """

    document: dict[str, Any] | None
    fault: str = ""


@dataclass(frozen=True, slots=True)
class Revision:
    """Policies and data of one moment; ``policies`` is the set that every review gets."""

    policies: PolicySet
    checks: Client
    synced: frozenset[GroupVersionKind] = frozenset()
    """The kinds that policies read whose objects are all in the snapshot."""
    unsynced: frozenset[GroupVersionKind] = frozenset()
    """The kinds that policies read whose objects are not all in the snapshot yet."""

    # Parts of the set, so that an admission finds each in one step.
    snapshot: Snapshot = field(init=False)
    mutations: MutationSnapshot = field(init=False)
    expansion: Expansion = field(init=False)

    def __post_init__(self) -> None:
        for name in ("snapshot", "mutations", "expansion"):
            object.__setattr__(self, name, getattr(self.policies, name))


@dataclass(slots=True)
class Serving:
    """Holds the revision in force, replaced by assignment; None until the first load.

    The loader writes it and the admission thread reads it once for each request, so neither waits
    for the other.
    """

    revision: Revision | None = None
    guard: Guard = field(default_factory=Guard)
    """The constraints' circuit breakers, which outlive revisions."""
    fights: Fights = field(default_factory=Fights)
    """The mutators whose changes other writers keep undoing; outlives revisions."""
    uses: ExceptionUses = field(default_factory=ExceptionUses)
    """The times at which exceptions were used; outlives revisions."""
    admission_policies: ResultStage | None = None
    """The API server's own policies, used by audit and reports but not by admissions."""
    awaits_admission_policies: bool = False
    """Whether these policies have not been read for the first time yet."""
    _audited: tuple[Revision, ResultStage, PolicySet] | None = None

    def audited(self, revision: Revision) -> PolicySet:
        """Returns the policy set of audit and reports.

        The one in force with the API server's own policies.
        """
        stage = self.admission_policies
        if stage is None:
            return revision.policies
        known = self._audited
        if known is None or known[0] is not revision or known[1] is not stage:
            policies = revision.policies
            changed = replace(policies, stages=(*policies.stages, stage))
            known = self._audited = (revision, stage, changed)
        return known[2]
