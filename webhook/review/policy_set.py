"""All that decides at one moment, as one value."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING

from webhook.api import config
from webhook.api.config import AUDIT_PROCESS, CONFIG, MUTATION_PROCESS, WEBHOOK_PROCESS
from webhook.api.gvk import gvk_of
from webhook.constraint import wildcard
from webhook.constraint.expansion import Expansion
from webhook.mutation.snapshot import MutationSnapshot
from webhook.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any

    from webhook.constraint.result import Responses
    from webhook.constraint.snapshot import Snapshot

    ResultStage = Callable[[Snapshot, Any, Responses], Responses]
    """Makes of what was found of a thing what is to be answered."""


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
class PolicySet:
    """Templates, constraints and data (the snapshot), mutators, expansions, Config's exclusions."""

    snapshot: Snapshot
    mutations: MutationSnapshot = field(default_factory=MutationSnapshot)
    expansion: Expansion = field(default_factory=Expansion)
    exclusions: Exclusions = field(default_factory=Exclusions)
    stages: tuple[ResultStage, ...] = ()
    """What further policies make of what was found: groups of policies, excuses."""

    def is_same(self, other: PolicySet) -> bool:
        """Whether all of it is what it was: a change of anything makes another value."""
        return self.stages == other.stages and all(
            getattr(self, name) is getattr(other, name)
            for name in ("snapshot", "mutations", "expansion", "exclusions")
        )


def exclusions_of(documents: Iterable[Mapping[str, Any]]) -> Exclusions:
    """What the Configs among some objects exclude."""
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
