"""The policy set: everything that decides at one moment, as one value."""

from __future__ import annotations

from dataclasses import field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol, TypeAlias, cast, runtime_checkable

from webhook.api import config
from webhook.api.config import AUDIT_PROCESS, CONFIG, MUTATION_PROCESS, WEBHOOK_PROCESS
from webhook.api.gvk import GroupVersionKind, gvk_of, name_of, namespace_of
from webhook.constraint import wildcard
from webhook.constraint.expansion import Expansion
from webhook.constraint.failure_policy import FAIL, FailurePolicy
from webhook.mutation.drift import Drift
from webhook.mutation.patch import make_patch
from webhook.mutation.snapshot import MutationSnapshot
from webhook.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    from webhook.api.admission import AdmissionRequest
    from webhook.constraint.limits import Limits
    from webhook.constraint.result import Responses
    from webhook.constraint.snapshot import Snapshot
    from webhook.external_data.provider import DataProvider
    from webhook.mutation.mutator import MutationSource, MutatorId
    from webhook.review.subject import Subject

    ResultStage = Callable[["Examination", Responses], Responses]
    """A function from the responses of a review to the responses that are answered."""

MutatedBy: TypeAlias = Literal["", "API server", "webhook"]
"""The foreign system whose policies change objects; empty for none."""

NO_PROVIDERS: Final[Mapping[str, DataProvider]] = MappingProxyType({})


class Examination(Protocol):
    """A value under review with its options, as result stages see it."""

    @property
    def snapshot(self) -> Snapshot:
        """Returns the snapshot of the review."""

    @property
    def value(self) -> Any:
        """Returns the value under review."""

    @property
    def point(self) -> str:
        """Returns the enforcement point."""

    @property
    def limits(self) -> Limits:
        """Returns the limits of the review."""

    @property
    def at(self) -> float:
        """Returns the time of the decision, in seconds since the epoch.

        Replay decides at a recorded time.
        """

    def again(self, value: Any) -> Responses:
        """Reviews another value by the same policies and all stages before the calling one."""


@dataclass(frozen=True, slots=True)
class ChangedObject:
    """An object after the mutating policies of the API server or Kyverno.

    ``by`` are the policies that changed it, ``ignored`` their faults with failurePolicy Ignore, and
    ``faults`` why the request is refused or undecided.
    """

    object: dict[str, Any]
    by: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()
    faults: tuple[str, ...] = ()
    again: Callable[[dict[str, Any]], ChangedObject] | None = None
    """Runs the policies that ask for reinvocation, on the object as mutators left it; None without
    any.
    """
    sources: tuple[MutationSource, ...] = ()
    """The policies of ``by`` that records and metrics list beside mutators."""
    skipped: tuple[tuple[str, str], ...] = ()
    """The policies that were skipped, with reasons."""
    at_fault: str = ""
    """The policy of the first fault."""

    def drift_of(
        self, mutator: MutatorId, before: dict[str, Any], *, is_preview: bool = False
    ) -> Iterator[Drift]:
        """Yields the change of a single policy as drift; nothing if it changed nothing or failed."""
        if self.by and not self.faults:
            paths = tuple(item["path"] for item in make_patch(before, self.object))
            yield Drift(mutator, paths, is_preview)

    @property
    def concerns(self) -> bool:
        """Whether a policy matched the object."""
        return bool(self.sources or self.skipped or self.again)


@runtime_checkable
class ForeignStage(Protocol):
    """A stage that reviews by foreign policies: the API server's, or Kyverno's."""

    @property
    def keys(self) -> Sequence[tuple[str, str]]:
        """The keys (kind and name) of the policies that review objects."""

    @property
    def document_keys(self) -> Sequence[tuple[str, str]]:
        """The keys (kind and name) of the policies that review documents."""

    @property
    def matched_keys(self) -> Collection[tuple[str, str]]:
        """The keys (kind and name) of the policies that have matched so far."""

    @property
    def enforced(self) -> Sequence[Mapping[str, Any]]:
        """The documents of policies that the webhook enforces."""

    @property
    def kinds_of_parameters(self) -> Sequence[GroupVersionKind]:
        """The kinds of parameters that policies name."""

    def concerns(self, gvk: GroupVersionKind) -> bool:
        """Whether an audit must list objects of this kind for these policies."""

    def reads_more(self, gvk: GroupVersionKind) -> bool:
        """Whether an audit's verdict on such an object may change while it and its Namespace stay."""

    def loose(self) -> Iterator[tuple[str, str, str]]:
        """Yields kind, name and reason of each policy or binding without effect."""

    def warnings(self, inventory: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
        """Yields kind, name and reason of each policy with no or an unintended effect."""

    def may_change(self, gvk: GroupVersionKind) -> bool:
        """Whether a mutating policy matches updates of objects of this kind."""

    def drifts(self, subject: Subject, snapshot: Snapshot) -> Iterator[Drift]:
        """Yields the change that each mutating policy alone would make on an update of the object."""


@runtime_checkable
class MutatingStage(Protocol):
    """A stage of foreign policies that change objects before mutators do."""

    @property
    def mutates(self) -> MutatedBy:
        """Returns the foreign system, empty if it has no mutating policies."""

    def change(
        self, subject: Subject, snapshot: Snapshot, look: Callable[[], None] | None = None
    ) -> ChangedObject:
        """Applies the mutating policies to a subject's object.

        ``look`` raises after the deadline; by default that of the subject's limits.
        """


class WebhookMutations(MutatingStage, Protocol):
    """A mutating stage whose policies this webhook applies itself, as it applies mutators."""

    @property
    def mutating_policies(self) -> Sequence[MutationSource]:
        """The policies that this stage applies, in their order."""

    def concerned(self, request: AdmissionRequest) -> Sequence[MutationSource]:
        """Returns the policies with a rule for the request's kind."""


nothing_excluded: Final = wildcard.no_name
"""The exclusion where Config excludes no namespace."""


@dataclass(frozen=True, slots=True)
class Exclusions:
    """Whether Config excludes a namespace from a process."""

    webhook: Callable[[str], bool] = nothing_excluded
    audit: Callable[[str], bool] = nothing_excluded
    mutation: Callable[[str], bool] = nothing_excluded


@dataclass(frozen=True, slots=True)
class ForeignPolicies:
    """The stages of all foreign policies."""

    stages: tuple[ForeignStage, ...]

    @property
    def keys(self) -> list[tuple[str, str]]:
        """The sorted keys (kind and name) of the policies that review objects."""
        return sorted(key for stage in self.stages for key in stage.keys)

    @property
    def document_keys(self) -> list[tuple[str, str]]:
        """The sorted keys (kind and name) of the policies that review documents."""
        return sorted(key for stage in self.stages for key in stage.document_keys)

    @property
    def matched_keys(self) -> frozenset[tuple[str, str]]:
        """The keys (kind and name) of the policies that have matched so far."""
        return frozenset(key for stage in self.stages for key in stage.matched_keys)

    @property
    def enforced(self) -> list[Mapping[str, Any]]:
        """The documents of policies that the webhook enforces."""
        return [document for stage in self.stages for document in stage.enforced]

    @property
    def kinds_of_parameters(self) -> list[GroupVersionKind]:
        """The kinds of parameters of all stages."""
        return [kind for stage in self.stages for kind in stage.kinds_of_parameters]

    def concerns(self, gvk: GroupVersionKind) -> bool:
        """Whether an audit must list objects of this kind for one of the stages."""
        return any(stage.concerns(gvk) for stage in self.stages)

    def reads_more(self, gvk: GroupVersionKind) -> bool:
        """Whether an audit's verdict on such an object may change while it and its Namespace stay."""
        return any(stage.reads_more(gvk) for stage in self.stages)

    def loose(self) -> Iterator[tuple[str, str, str]]:
        """Yields kind, name and reason of each policy or binding without effect."""
        for stage in self.stages:
            yield from stage.loose()

    def warnings(self, inventory: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
        """Yields kind, name and reason of each policy with no or an unintended effect."""
        for stage in self.stages:
            yield from stage.warnings(inventory)

    def may_change(self, gvk: GroupVersionKind) -> bool:
        """Whether a mutating policy matches updates of objects of this kind."""
        return any(stage.may_change(gvk) for stage in self.stages)


@dataclass(frozen=True, slots=True)
class PolicySet:
    """The snapshot (templates, constraints and data), mutators, expansions and Config's exclusions."""

    snapshot: Snapshot
    mutations: MutationSnapshot = field(default_factory=MutationSnapshot)
    expansion: Expansion = field(default_factory=Expansion)
    exclusions: Exclusions = field(default_factory=Exclusions)
    providers: Mapping[str, DataProvider] = field(default_factory=lambda: NO_PROVIDERS)
    """The providers of external data, by name."""
    stages: tuple[ResultStage, ...] = ()
    """The functions that results pass through: groups of policies, exceptions."""
    foreign: ForeignPolicies = field(init=False, repr=False, compare=False)
    """The foreign policies: the API server's and Kyverno's."""
    mutating: MutatingStage | None = field(init=False, repr=False, compare=False)
    """The stage of the API server's mutating policies, where files have some."""

    def __post_init__(self) -> None:
        """Finds the stages of foreign policies once, because a protocol check takes microseconds."""
        stages: tuple[object, ...] = self.stages
        foreign = tuple(stage for stage in stages if isinstance(stage, ForeignStage))
        changing = (stage for stage in stages if isinstance(stage, MutatingStage))
        native = next((stage for stage in changing if stage.mutates == "API server"), None)
        object.__setattr__(self, "foreign", ForeignPolicies(foreign))
        object.__setattr__(self, "mutating", native)

    def part(self, failure_policy: FailurePolicy) -> PolicySet:
        """Returns the policies with this failure policy; foreign policies belong to Ignore."""
        part, stages = self.snapshot.part(failure_policy), self.stages
        if failure_policy == FAIL and any(self.foreign.stages):
            foreign: tuple[object, ...] = self.foreign.stages
            stages = tuple(stage for stage in stages if stage not in foreign)
        if part is self.snapshot and stages is self.stages:
            return self
        return replace(self, snapshot=part, stages=stages)

    @property
    def in_webhook(self) -> WebhookMutations | None:
        """The stage of Kyverno's mutating policies, if there are any."""
        for stage in self.stages:
            # Asked at each admission: to look whether it has all of a protocol takes longer.
            if getattr(stage, "mutates", "") == "webhook":
                return cast("WebhookMutations", stage)
        return None

    @property
    def mutates(self) -> bool:
        """Whether any policy of the set changes objects."""
        return bool(self.mutations) or any((self.mutating, self.in_webhook))

    def is_same(self, other: PolicySet) -> bool:
        """Whether two sets are the same; every change of a policy makes another value."""
        return self.stages == other.stages and all(
            getattr(self, name) is getattr(other, name)
            for name in ("snapshot", "mutations", "expansion", "exclusions", "providers")
        )


def exclusions_of(documents: Iterable[Mapping[str, Any]]) -> Exclusions:
    """Returns the exclusions of the Configs among the documents.

    Of several definitions of a Config the last one counts; one of another name has no effect.
    """
    configs = {
        namespace_of(item): item
        for item in documents
        if gvk_of(item).group_kind == CONFIG.group_kind and name_of(item) == config.CONFIG_NAME
    }.values()
    return Exclusions(
        *(
            wildcard.any_of(_excluded_namespaces(configs, process))
            for process in (WEBHOOK_PROCESS, AUDIT_PROCESS, MUTATION_PROCESS)
        )
    )


def _excluded_namespaces(configs: Iterable[Mapping[str, Any]], process: str) -> tuple[str, ...]:
    """Returns the patterns of namespaces that Configs exclude from a process."""
    patterns: list[str] = []
    for document in configs:
        patterns += config.excluded_namespaces(document, process)
    return tuple(dict.fromkeys(patterns))
