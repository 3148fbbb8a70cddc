"""Decides whether the API server sends a policy's requests: all, some or none, and why not."""

from __future__ import annotations

from dataclasses import field, replace
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from webhook.api.builtin_kinds import NEVER_INTERCEPTED
from webhook.api.config import MUTATION_PROCESS, WEBHOOK_PROCESS
from webhook.api.shapes import object_of, objects_of, texts_of
from webhook.constraint import wildcard
from webhook.constraint.failure_policy import ANNOTATION, FAIL
from webhook.values import dataclass
from webhook.webhook_rules.entries import NO_RULE, VALIDATING_PATH, SentRequest, WebhookEntry
from webhook.webhook_rules.kinds import RuleTarget, meets, no_discovery, targets_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from webhook.webhook_rules.kinds import GroupAndKind
    from webhook.webhook_rules.needs import Need

CoverageExtent: TypeAlias = Literal["wholly", "partly", "not at all"]

REASON: Final = "NotAsked"
"""The reason of conditions, and the word on every page, for a policy without any requests."""

SENTENCES_MAX: Final = 3
"""The most gaps in a policy's message: the first ones show the missing rule."""


@dataclass(frozen=True, slots=True)
class CoverageState:
    """The extent of a policy's requests that are sent; ``missing`` has a sentence for each gap.

    ``cautions`` are differences from its failure policy while no replica answers.
    """

    extent: CoverageExtent = "wholly"
    missing: tuple[str, ...] = ()
    cautions: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """Returns the gaps in one text; empty without gaps."""
        more = len(self.missing) - SENTENCES_MAX
        shown = "; ".join(self.missing[:SENTENCES_MAX])
        return f"{shown}; and {more} more" if more > 0 else shown

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes on a policy that gets at least some requests."""
        if self.extent == "not at all":
            return ()
        return (*((f"asked only in part: {self.text}",) if self.missing else ()), *self.cautions)


WHOLLY: Final = CoverageState()

_NO_CONFIGURATIONS: Final = {
    WEBHOOK_PROCESS: "no ValidatingWebhookConfiguration calls /v1/admit of Waddle: apply one",
    MUTATION_PROCESS: "no MutatingWebhookConfiguration calls /v1/mutate of Waddle: apply one",
}


def _no_labels(namespace: str) -> Mapping[str, str] | None:
    del namespace
    return None


@dataclass(frozen=True, slots=True)
class WebhookContext:
    """The facts beside a policy that its coverage depends on.

    ``entries`` are the webhooks that call Waddle, by process. ``generators`` are the kinds from
    which ExpansionTemplates make a kind. ``excluded`` are the namespace patterns that Config
    excludes from a process. ``labels`` returns the labels of a Namespace, ``served`` the targets of
    custom resources.
    """

    entries: Mapping[str, tuple[WebhookEntry, ...]]
    generators: Mapping[GroupAndKind, frozenset[GroupAndKind]] = field(default_factory=dict)
    excluded: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    labels: Callable[[str], Mapping[str, str] | None] = _no_labels
    served: Callable[[str, str], tuple[RuleTarget, ...] | None] = no_discovery


@dataclass(slots=True)
class _Gaps:
    """The requests that are sent, and the gaps."""

    is_any_sent: bool = False
    rules: dict[tuple[RuleTarget, str], list[str]] = field(default_factory=dict)
    """Operations that no rule names, by target and checked configurations."""
    others: dict[str, None] = field(default_factory=dict)
    cautions: dict[str, None] = field(default_factory=dict)

    def asking(self) -> CoverageState:
        missing = [
            *self.others,
            *(
                _missing_rule(target, operations, configurations)
                for (target, configurations), operations in self.rules.items()
            ),
        ]
        cautions = tuple(self.cautions)
        if not missing:
            return CoverageState(cautions=cautions) if cautions else WHOLLY
        extent: CoverageExtent = "partly" if self.is_any_sent else "not at all"
        return CoverageState(extent, tuple(missing), cautions)


def coverage_of(need: Need, around: WebhookContext) -> CoverageState:
    """Returns the extent of a need's requests that are sent."""
    every = around.entries.get(need.process, ())
    entries = tuple(
        target
        for target in every
        if None in (target.failure_policy, need.failure_policy)
        or target.failure_policy == need.failure_policy
    )
    if not entries:
        return CoverageState("not at all", (_no_entry(need, every),))
    gaps = _Gaps()
    _look(need, need.targets, entries, around, gaps)
    for kind in need.kinds:
        of_kind = _Gaps()
        if need.direct:
            _look(need, targets_of(*kind, around.served), entries, around, of_kind)
        is_met = need.direct and not (of_kind.rules or of_kind.others)
        if need.generated and not is_met and _is_generated(need, kind, entries, around):
            gaps.is_any_sent = True
            continue
        if not need.direct:
            of_kind.others[f"no object that the API server sends generates {_shown(kind)}"] = None
        gaps.is_any_sent |= of_kind.is_any_sent
        gaps.rules |= of_kind.rules
        gaps.others |= of_kind.others
        gaps.cautions |= of_kind.cautions
    if need.failure_policy == FAIL:
        gaps.cautions |= dict.fromkeys(
            lock_out for entry in entries for lock_out in entry.lock_outs()
        )
    return gaps.asking()


def _no_entry(need: Need, every: tuple[WebhookEntry, ...]) -> str:
    if not every:
        return _NO_CONFIGURATIONS[need.process]
    names = ", ".join(dict.fromkeys(entry.configuration for entry in every))
    path = f"{VALIDATING_PATH}/{need.failure_policy}"
    return f"no webhook of {names} calls {path}: add one, or one that calls {VALIDATING_PATH}"


def _shown(kind: GroupAndKind) -> str:
    return f"{kind[1]}.{kind[0]}" if kind[0] else kind[1]


def _is_generated(
    need: Need,
    kind: GroupAndKind,
    entries: tuple[WebhookEntry, ...],
    around: WebhookContext,
) -> bool:
    """Whether the API server sends a kind that ExpansionTemplates turn into this one."""
    known, waiting = {kind}, [kind]
    while waiting:
        reached = waiting.pop()
        for whole, sources in around.generators.items():
            if not meets(whole, reached):
                continue
            for source in sources - known:
                known.add(source)
                waiting.append(source)
                gaps = _Gaps()
                targets = targets_of(*source, around.served)
                _look(need, targets, entries, around, gaps, is_source=True)
                if gaps.is_any_sent:
                    return True
    return False


def _look(  # the resources, their context, and the record
    need: Need,
    targets: tuple[RuleTarget, ...],
    entries: tuple[WebhookEntry, ...],
    around: WebhookContext,
    gaps: _Gaps,
    *,
    is_source: bool = False,
) -> None:
    """Records sent and unsent requests of some resources."""
    for target in _scoped(need, targets):
        if target.kind in NEVER_INTERCEPTED:
            message = (
                f"API servers ask no webhook about {_shown(target.kind)}, whatever its rules say"
            )
            gaps.others[message] = None
            continue
        operations = need.covered_operations(target.operations)
        if not operations:
            named = ", ".join(sorted(need.operations))
            gaps.others[f"there is no {named} of {target}"] = None
        for place in _places(need, target):
            excluded = around.excluded.get(need.process, ())
            if place and wildcard.any_of(excluded)(place):
                gaps.others[f"Config excludes namespace {place} from the {need.process}"] = None
                continue
            # A policy without operations matches deletions, too.
            offered = operations if need.operations else target.operations
            for operation in offered:
                request = SentRequest(
                    target,
                    operation,
                    place,
                    around.labels(place) if place else None,
                    # Labels of a generator's object do not determine the labels of the implied
                    # object.
                    None if is_source else need.object_selector,
                    need.namespace_selector,
                )
                is_needed = operation in operations and not target.is_beside
                fails = need.failure_policy == FAIL
                _note(request, entries, gaps, is_needed=is_needed, fails_closed=fails)


def _scoped(need: Need, targets: tuple[RuleTarget, ...]) -> Iterator[RuleTarget]:
    """Yields the targets in a policy's scope; both scopes if a target's is unknown.

    Both are needed only if the policy names namespaces or selects them; neither excludes
    cluster-scoped objects.
    """
    scope = {"Cluster": False, "Namespaced": True}.get(need.scope)
    for target in targets:
        if target.namespaced is not None:
            if scope in (None, target.namespaced):
                yield target
        elif scope is not None:
            yield replace(target, namespaced=scope)
        elif need.places or need.namespace_selector:
            yield replace(target, namespaced=True)
            yield replace(target, namespaced=False, is_beside=True)
        else:
            yield target


def _places(need: Need, target: RuleTarget) -> tuple[str, ...]:
    if target.namespaced is False or not need.places:
        return ("",)
    return need.places


def _note(
    request: SentRequest,
    entries: tuple[WebhookEntry, ...],
    gaps: _Gaps,
    *,
    is_needed: bool,
    fails_closed: bool,
) -> None:
    why, open_ones = NO_RULE, []
    for entry in entries:
        withheld = entry.withholds(request)
        if withheld is None:
            gaps.is_any_sent = True
            if not fails_closed or entry.fails_closed:
                return
            open_ones.append(entry)
        else:
            why = max(why, withheld, key=lambda reason: reason.rank)
    if open_ones:
        gaps.cautions[_open_text(open_ones[0])] = None
        return
    if not is_needed:
        return
    if why is NO_RULE:
        names = ", ".join(dict.fromkeys(entry.configuration for entry in entries))
        operations = gaps.rules.setdefault((request.target, names), [])
        if request.operation not in operations:
            operations.append(request.operation)
    else:
        gaps.others[why.reason] = None


def _open_text(entry: WebhookEntry) -> str:
    return (
        f"{ANNOTATION} says {FAIL}, and requests are let in while no replica answers {entry}: have "
        f"one with failurePolicy Fail call {VALIDATING_PATH}/{FAIL}"
    )


def _missing_rule(target: RuleTarget, operations: list[str], configurations: str) -> str:
    listed = ", ".join(operations)
    group = '""' if not target.group else target.group
    return (
        f"no rule of {configurations} sends {listed} of {target}: add one with apiGroups [{group}], "
        f"resources [{target.resource}] and operations [{listed}]"
    )


def generators_of(
    templates: Iterable[Mapping[str, Any]],
) -> dict[GroupAndKind, frozenset[GroupAndKind]]:
    """Returns the kinds that ExpansionTemplates expand, by the kind that they generate."""
    generators: dict[GroupAndKind, frozenset[GroupAndKind]] = {}
    for document in templates:
        spec = object_of(document.get("spec"))
        generated = object_of(spec.get("generatedGVK"))
        key = str(generated.get("group") or ""), str(generated.get("kind") or "")
        sources = frozenset(
            (group, kind)
            for target in objects_of(spec.get("applyTo"))
            for group in texts_of(target.get("groups"))
            for kind in texts_of(target.get("kinds"))
        )
        generators[key] = generators.get(key, frozenset()) | sources
    return generators


def operations_of(template: Mapping[str, Any] | None) -> frozenset[str]:
    """Returns the operations in a ConstraintTemplate; empty if it matches all of them."""
    targets = objects_of(object_of((template or {}).get("spec")).get("targets"))
    sets = [frozenset(texts_of(target.get("operations"))) for target in targets]
    return frozenset().union(*sets) if sets and all(sets) else frozenset()
