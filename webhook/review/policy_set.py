"""All that decides at one moment, as one value."""

from __future__ import annotations

from dataclasses import field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol, TypeAlias, cast, runtime_checkable

from webhook.api import config
from webhook.api.config import AUDIT_PROCESS, CONFIG, MUTATION_PROCESS, WEBHOOK_PROCESS
from webhook.api.gvk import gvk_of
from webhook.constraint import wildcard
from webhook.constraint.expansion import Expansion
from webhook.constraint.failure_policy import FAIL
from webhook.mutation.drift import Drift
from webhook.mutation.patch import make_patch
from webhook.mutation.snapshot import MutationSnapshot
from webhook.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    from webhook.api.admission import AdmissionRequest
    from webhook.api.gvk import GroupVersionKind
    from webhook.constraint.failure_policy import FailurePolicy
    from webhook.constraint.limits import Limits
    from webhook.constraint.result import Responses
    from webhook.constraint.snapshot import Snapshot
    from webhook.external_data.provider import DataProvider
    from webhook.mutation.mutator import MutatingParty, MutatorId
    from webhook.review.subject import Subject

    ResultStage = Callable[["Examination", Responses], Responses]
    """Makes of what was found of a thing what is to be answered."""

MutatedBy: TypeAlias = Literal["", "API server", "webhook"]
"""The party that changes objects by policies of others."""

NO_PROVIDERS: Final[Mapping[str, DataProvider]] = MappingProxyType({})


class Examination(Protocol):
    """A thing under review with its options, as stages see it."""

    @property
    def snapshot(self) -> Snapshot:
        """The policies that it was reviewed by."""

    @property
    def value(self) -> Any:
        """Return the thing under review."""

    @property
    def point(self) -> str:
        """The enforcement point that asked."""

    @property
    def limits(self) -> Limits:
        """Return the limits of the review."""

    @property
    def at(self) -> float:
        """When it is decided, in seconds since the epoch: replay decides by another time than now."""

    def again(self, value: Any) -> Responses:
        """Review another thing in its place, by all stages before the one that asks."""


@dataclass(frozen=True, slots=True)
class ChangedObject:
    """An object after the mutating policies of others.

    ``by`` are those that changed it, ``ignored`` what they are told to pass over, and
    ``faults`` why the request is refused, or not decided.
    """

    object: dict[str, Any]
    by: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()
    faults: tuple[str, ...] = ()
    again: Callable[[dict[str, Any]], ChangedObject] | None = None
    """Asks those once more that want it, of what others made of it; None where none does."""
    parties: tuple[MutatingParty, ...] = ()
    """The policies among ``by`` that records and metrics name as they name mutators."""
    skipped: tuple[tuple[str, str], ...] = ()
    """The policies that are passed over, named as mutators are, with why."""
    at_fault: str = ""
    """The first of ``faults``, named likewise."""

    def drift_of(
        self, mutator: MutatorId, before: dict[str, Any], *, is_preview: bool = False
    ) -> Iterator[Drift]:
        """Yields the change of one policy; nothing where it changes nothing, or is at fault."""
        if self.by and not self.faults:
            paths = tuple(item["path"] for item in make_patch(before, self.object))
            yield Drift(mutator, paths, is_preview)

    @property
    def concerns(self) -> bool:
        """Whether a policy was about the object."""
        return bool(self.parties or self.skipped or self.again)


@runtime_checkable
class ForeignStage(Protocol):
    """A stage that reviews by policies of others, the API server's or Kyverno's, as doors see it."""

    @property
    def keys(self) -> Sequence[tuple[str, str]]:
        """The policies that something is reviewed by: kind and name."""

    @property
    def document_keys(self) -> Sequence[tuple[str, str]]:
        """The policies that documents are reviewed by, which are no objects: kind and name."""

    @property
    def matched_keys(self) -> Collection[tuple[str, str]]:
        """Returns the policies, as kind and name, that matched something."""

    @property
    def enforced(self) -> Sequence[Mapping[str, Any]]:
        """The policies that who answers admissions has to be asked about."""

    @property
    def kinds_of_parameters(self) -> Sequence[GroupVersionKind]:
        """The kinds that policies have as parameters."""

    def concerns(self, gvk: GroupVersionKind) -> bool:
        """Whether an audit has to look at objects of a kind for it."""

    def loose(self) -> Iterator[tuple[str, str, str]]:
        """Kind and name of what nothing is reviewed by, and why."""

    def warnings(self, inventory: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
        """Kind and name of what has no effect, or probably not the one that is meant, and why."""

    def may_change(self, gvk: GroupVersionKind) -> bool:
        """Whether one that mutates is about updates of objects of a kind."""

    def drifts(self, subject: Subject, snapshot: Snapshot) -> Iterator[Drift]:
        """Yields what each mutating policy alone would change in an object that is written again."""


@runtime_checkable
class MutatingStage(Protocol):
    """A stage of others' policies that change objects before mutators do."""

    @property
    def mutates(self) -> MutatedBy:
        """Returns the policies that change objects; empty where none does."""

    def change(
        self, subject: Subject, snapshot: Snapshot, look: Callable[[], None] | None = None
    ) -> ChangedObject:
        """Applies the mutating policies to a subject's object, which is about to be stored.

        ``look`` raises where the time is up; without one the subject's limits say when.
        """


class WebhookMutations(MutatingStage, Protocol):
    """One whose policies the mutating webhook applies, as it applies mutators."""

    @property
    def mutating_policies(self) -> Sequence[MutatingParty]:
        """Returns the policies that change objects."""

    def concerned(self, request: AdmissionRequest) -> Sequence[MutatingParty]:
        """Returns the policies with a rule for the request's kind."""


def nothing_excluded(namespace: str) -> bool:
    """The exclusion of who has no Config."""
    del namespace
    return False


@dataclass(frozen=True, slots=True)
class Exclusions:
    """Whether Config takes a namespace out of a process."""

    webhook: Callable[[str], bool] = nothing_excluded
    audit: Callable[[str], bool] = nothing_excluded
    mutation: Callable[[str], bool] = nothing_excluded


@dataclass(frozen=True, slots=True)
class ForeignPolicies:
    """The stages of policies that are not Waddle's own."""

    stages: tuple[ForeignStage, ...]

    @property
    def keys(self) -> list[tuple[str, str]]:
        """The policies that something is reviewed by: kind and name, in order."""
        return sorted(key for stage in self.stages for key in stage.keys)

    @property
    def document_keys(self) -> list[tuple[str, str]]:
        """The policies that documents are reviewed by, which are no objects, in order."""
        return sorted(key for stage in self.stages for key in stage.document_keys)

    @property
    def matched_keys(self) -> frozenset[tuple[str, str]]:
        """Returns the policies, as kind and name, that matched something."""
        return frozenset(key for stage in self.stages for key in stage.matched_keys)

    @property
    def enforced(self) -> list[Mapping[str, Any]]:
        """The policies that who answers admissions has to be asked about."""
        return [document for stage in self.stages for document in stage.enforced]

    @property
    def kinds_of_parameters(self) -> list[GroupVersionKind]:
        """The kinds of the parameters of all of them."""
        return [kind for stage in self.stages for kind in stage.kinds_of_parameters]

    def concerns(self, gvk: GroupVersionKind) -> bool:
        """Whether an audit has to look at objects of a kind for one of them."""
        return any(stage.concerns(gvk) for stage in self.stages)

    def loose(self) -> Iterator[tuple[str, str, str]]:
        """Kind and name of what nothing is reviewed by, and why."""
        for stage in self.stages:
            yield from stage.loose()

    def warnings(self, inventory: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
        """Kind and name of what has no effect, or probably not the one that is meant, and why."""
        for stage in self.stages:
            yield from stage.warnings(inventory)

    def may_change(self, gvk: GroupVersionKind) -> bool:
        """Whether one that mutates is about updates of objects of a kind."""
        return any(stage.may_change(gvk) for stage in self.stages)


@dataclass(frozen=True, slots=True)
class PolicySet:
    """Templates, constraints and data (the snapshot), mutators, expansions, Config's exclusions."""

    snapshot: Snapshot
    mutations: MutationSnapshot = field(default_factory=MutationSnapshot)
    expansion: Expansion = field(default_factory=Expansion)
    exclusions: Exclusions = field(default_factory=Exclusions)
    providers: Mapping[str, DataProvider] = field(default_factory=lambda: NO_PROVIDERS)
    """The providers of external data, by name."""
    stages: tuple[ResultStage, ...] = ()
    """The stages that results pass through: groups of policies, exceptions."""
    foreign: ForeignPolicies = field(init=False, repr=False, compare=False)
    """The policies of others: the API server's own, and Kyverno's."""
    mutating: MutatingStage | None = field(init=False, repr=False, compare=False)
    """The stage of the API server's own mutating policies, where files have some."""

    def __post_init__(self) -> None:
        """Finds the stages of others' policies, once: a look at a protocol takes some microseconds."""
        stages: tuple[object, ...] = self.stages
        foreign = tuple(one for one in stages if isinstance(one, ForeignStage))
        changing = (one for one in stages if isinstance(one, MutatingStage))
        own = next((one for one in changing if one.mutates == "API server"), None)
        object.__setattr__(self, "foreign", ForeignPolicies(foreign))
        object.__setattr__(self, "mutating", own)

    def part(self, failure_policy: FailurePolicy) -> PolicySet:
        """Return the part that one failure policy decides alone; others' policies all fail open."""
        part, stages = self.snapshot.part(failure_policy), self.stages
        if failure_policy == FAIL and any(self.foreign.stages):
            foreign: tuple[object, ...] = self.foreign.stages
            stages = tuple(one for one in stages if one not in foreign)
        if part is self.snapshot and stages is self.stages:
            return self
        return replace(self, snapshot=part, stages=stages)

    @property
    def in_webhook(self) -> WebhookMutations | None:
        """The stage of Kyverno's mutating policies, where there are some."""
        for one in self.stages:
            # Asked at each admission: to look whether it has all of a protocol takes longer.
            if getattr(one, "mutates", "") == "webhook":
                return cast("WebhookMutations", one)
        return None

    @property
    def mutates(self) -> bool:
        """Whether something of it changes objects."""
        return bool(self.mutations) or any((self.mutating, self.in_webhook))

    def is_same(self, other: PolicySet) -> bool:
        """Whether all of it is what it was: a change of anything makes another value."""
        return self.stages == other.stages and all(
            getattr(self, name) is getattr(other, name)
            for name in ("snapshot", "mutations", "expansion", "exclusions", "providers")
        )


def exclusions_of(documents: Iterable[Mapping[str, Any]]) -> Exclusions:
    """Return the exclusions of the Configs among some objects."""
    configs = [item for item in documents if gvk_of(item).group_kind == CONFIG.group_kind]
    return Exclusions(
        *(
            wildcard.any_of(_excluded_namespaces(configs, process))
            for process in (WEBHOOK_PROCESS, AUDIT_PROCESS, MUTATION_PROCESS)
        )
    )


def _excluded_namespaces(configs: Iterable[Mapping[str, Any]], process: str) -> tuple[str, ...]:
    """The patterns of namespaces that Configs exclude from a process."""
    patterns: list[str] = []
    for document in configs:
        patterns += config.excluded_namespaces(document, process)
    return tuple(dict.fromkeys(patterns))
