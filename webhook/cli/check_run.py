"""What ``waddle check`` does: policies validated, and their effect on objects and decisions."""

from __future__ import annotations

import time
from dataclasses import field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from webhook import log
from webhook.api import timestamp
from webhook.api.gvk import gvk_of, name_of, namespace_of
from webhook.cli import check_mutators
from webhook.cli.check_mutators import MutationChecked, is_extension, mutated
from webhook.cli.cluster_access import REVIEW_SECONDS
from webhook.cli.sources import CannotTest
from webhook.constraint import constraint, enforcement
from webhook.constraint.errors import ConstraintFrameworkError
from webhook.constraint.limits import Limits
from webhook.constraint.placement import namespace_for
from webhook.constraint.review import AugmentedObject
from webhook.decisions.source import RecordSource
from webhook.policies.effect import Effect, concerned, only
from webhook.policies.replay import recorded_requests, replay
from webhook.policies.validation import is_policy, validate
from webhook.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from webhook.audit.sink import Audited, Identity, SweepEnd, SweepStart
    from webhook.cluster.client import ClusterClient
    from webhook.constraint.client import Client
    from webhook.constraint.result import Result
    from webhook.constraint.snapshot import Snapshot
    from webhook.policies.generated import Agreement
    from webhook.policies.manifests import Manifest
    from webhook.policies.problem import Problem
    from webhook.policies.replay import Replay


@dataclass(slots=True)
class Checked:
    """What a check found; an effect is None where it was not asked for."""

    problems: list[Problem] = field(default_factory=list)
    policies: int = 0
    manifests: Effect | None = None
    """The effect on the manifests that were given beside the policies."""
    cluster: Effect | None = None
    decisions: Replay | None = None
    missing: list[str] = field(default_factory=list)
    """What of the effect could not be found out."""
    mutation: MutationChecked = field(default_factory=MutationChecked)
    generated: Agreement | None = None
    """Whether generated ValidatingAdmissionPolicies say what the webhook says."""

    @property
    def ok(self) -> bool:
        """Whether the policies can be used, by webhook and API server alike."""
        if self.generated is not None and self.generated.differences:
            return False
        return not any(problem.severity == "error" for problem in self.problems)


@dataclass(frozen=True, slots=True)
class BeforeAndAfter:
    """The policies in force, and what they become with those to check."""

    before: Client
    after: Client
    keys: frozenset[tuple[str, str]]
    """The constraints that change, or whose template does."""


def prepare(
    manifests: Sequence[Manifest],
    base: Client,
    budget_seconds: float,
    checked: Checked,
    extensions: Sequence[dict[str, Any]] = (),
) -> BeforeAndAfter:
    """Validate the policies among the manifests on top of those in force.

    ``extensions`` are the mutators and ExpansionTemplates in force.
    """
    documents = [item.document for item in manifests if is_policy(item.document)]
    checked.policies = len(documents)
    after = base.copy()
    checked.mutation, problems = check_mutators.prepare(manifests, extensions)
    checked.problems = validate(after, documents, budget_seconds) + problems
    keys = [item.key for item in (*base.snapshot.constraints, *after.snapshot.constraints)]
    return BeforeAndAfter(base, after, concerned(documents, keys))


def effect_on_manifests(
    policies: BeforeAndAfter, manifests: Iterable[Manifest], checked: Checked
) -> Effect | None:
    """What changes for the objects among the manifests, if any; they are the data, too."""
    objects = []
    for manifest in manifests:
        document = manifest.document
        if is_policy(document) or is_extension(document):
            continue
        try:
            policies.before.add_data(document)
            policies.after.add_data(document)
        except ConstraintFrameworkError as error:
            checked.missing.append(f"{manifest.file}:{manifest.line}: {manifest.title}: {error}")
        else:
            objects.append(document)
    if not objects:
        return None
    before, after = policies.before.snapshot, policies.after.snapshot
    effect = Effect(policies.keys)
    mutations = checked.mutation.extensions.mutations
    for item in objects:
        namespace = namespace_for(item, after.namespaces)
        # As at admission: what is reviewed is what would be stored.
        stored, fault = mutated(mutations, item, after.namespaces, checked.mutation)
        if fault:
            checked.missing.append(fault)
        effect.take(
            _shown(item),
            _results(before, AugmentedObject(item, namespace)),
            _results(after, AugmentedObject(stored, namespace)),
        )
    return effect


def _results(snapshot: Snapshot, subject: AugmentedObject) -> tuple[Result, ...]:
    responses = snapshot.review(
        subject, enforcement_point=enforcement.AUDIT, limits=Limits(_deadline())
    )
    return tuple(responses.results)


def _deadline() -> float:
    return time.monotonic() + REVIEW_SECONDS


def _shown(document: Mapping[str, Any]) -> str:
    place = namespace_of(document)
    name = f"{place}/{name_of(document)}" if place else name_of(document)
    return f"{gvk_of(document).kind} {name}"


class RecordedDecisions:
    """Decisions of a file of records, a sidecar's queue, or ``-``: standard input.

    They can be gone through more than once; raises :class:`CannotTest` where they cannot be read.
    """

    def __init__(self, source: str) -> None:
        self._source = source
        self._kept: list[dict[str, Any]] | None = None

    def keep(self) -> None:
        """Keep what can be read only once."""
        if self._source == "-":
            self._kept = list(self)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        try:
            yield from RecordSource(Path(self._source)) if self._kept is None else self._kept
        except OSError as error:
            raise CannotTest(f"reading decisions: {self._source}: {error.strerror}") from None


def effect_on_decisions(
    policies: BeforeAndAfter, records: RecordedDecisions, checked: Checked
) -> None:
    """Review again what was recorded with its object, by the policies to come."""
    replayed = checked.decisions = replay(records, policies.after.snapshot)
    # What other policies once said, and are not here to say again, is no effect of these.
    changes = [
        replace(
            change,
            added=tuple(item for item in change.added if item[:2] in policies.keys),
            removed=tuple(item for item in change.removed if item[:2] in policies.keys),
        )
        for change in replayed.changes
    ]
    replayed.changes = [change for change in changes if change.added or change.removed]
    if not checked.decisions.replayed:
        checked.missing.append("no decision was recorded with its object (includeObjects)")


def compare_generated(
    policies: BeforeAndAfter,
    manifests: Iterable[Manifest],
    records: RecordedDecisions | None,
    mode: str,
    checked: Checked,
) -> None:
    """Ask webhook and generated policies about samples, the manifests and recorded decisions."""
    from webhook.generation.plan import Options  # noqa: PLC0415  # CEL is brought by who asks for it
    from webhook.policies.generated import agreement, request_of  # noqa: PLC0415  # likewise

    requests = [
        request_of(item.document)
        for item in manifests
        if not is_policy(item.document) and not is_extension(item.document)
    ]
    if records is not None:
        requests += recorded_requests(records)
    checked.generated = agreement(
        policies.after,
        policies.keys,
        requests,
        Options(alone=mode == "constraint"),
        REVIEW_SECONDS,
    )


# --- a cluster ------------------------------------------------------------------------------------


async def read_extensions(client: ClusterClient) -> list[dict[str, Any]]:
    """The mutators and ExpansionTemplates of a cluster; raises as :func:`read_policies`."""
    from webhook.cli.cluster_access import EXTENSIONS, list_objects  # noqa: PLC0415  # see check

    return [item for kind in EXTENSIONS for item in await list_objects(client, kind)]


async def read_policies(client: ClusterClient, policies: Client) -> Client:
    """The client with what is in force in a cluster, as far as it can be used.

    Raises :class:`~webhook.cluster.errors.ApiError` and
    :class:`~webhook.cluster.errors.ApiUnreachable`.
    """
    from webhook.cli.cluster_access import TEMPLATES, list_objects  # noqa: PLC0415  # see check
    from webhook.cluster.discovery import Discovery  # noqa: PLC0415  # see check

    _add(await list_objects(client, TEMPLATES), policies.add_template)
    for resource in await Discovery(client).kinds(constraint.GROUP, "v1beta1"):
        _add(await list_objects(client, resource), policies.add_constraint)
    return policies


def _add(documents: Iterable[Mapping[str, Any]], add: Any) -> None:
    """Add what can be; what is broken in the cluster already is not what is checked."""
    for document in documents:
        try:
            add(document)
        except ConstraintFrameworkError:
            continue


class _Comparison:
    """A sink that reviews each object by the policies in force as well."""

    def __init__(self, effect: Effect, before: Snapshot, checked: Checked) -> None:
        self._effect = effect
        self._before = before
        self._checked = checked

    async def start(self, start: SweepStart) -> None:
        """Nothing is known yet."""

    async def audited(self, audited: Audited) -> None:
        """Compare one object."""
        if audited.excluded:
            return
        namespaces = audited.snapshot.namespaces
        namespace = namespaces.get(audited.identity.namespace)
        subject = AugmentedObject(audited.object, namespace)
        after = audited.responses.results
        shown = _shown(audited.object)
        self._effect.take(shown, _results(self._before, subject), after)
        for drift in audited.drifts:
            if (effect := self._checked.mutation.cluster.get(drift.mutator)) is not None:
                effect.take(shown, drift)

    async def gone(self, identity: Identity) -> None:
        """Nothing: a sweep does not tell of it."""

    async def end(self, end: SweepEnd) -> None:
        """Say what could not be looked at."""
        missing = self._checked.missing
        missing += [f"not wholly listed: {gvk}: {why}" for gvk, why in sorted(end.failed.items())]
        missing += [f"no right to list: {gvk}" for gvk in sorted(end.unreadable)]
        missing += [f"no verdict by {kind}/{name}" for kind, name in sorted(end.undecided)]


async def effect_on_cluster(
    client: ClusterClient, policies: BeforeAndAfter, checked: Checked, page_objects: int
) -> Effect:
    """What changes for what is in the cluster, listed page by page as an audit does it.

    Raises :class:`~webhook.cluster.errors.ApiError` and
    :class:`~webhook.cluster.errors.ApiUnreachable`.
    """
    from webhook.audit.namespaces import Namespaces  # noqa: PLC0415  # see check
    from webhook.audit.scope import Scope  # noqa: PLC0415  # see check
    from webhook.audit.source import ListSource  # noqa: PLC0415  # see check
    from webhook.audit.sweep import Sweep  # noqa: PLC0415  # see check
    from webhook.cli.cluster_access import list_objects  # noqa: PLC0415  # see check
    from webhook.cluster.kinds import NAMESPACES  # noqa: PLC0415  # see check

    for namespace in await list_objects(client, NAMESPACES):
        policies.before.set_namespace(name_of(namespace), namespace)
        policies.after.set_namespace(name_of(namespace), namespace)
    before, after = only(policies.before, policies.keys), only(policies.after, policies.keys)
    effect = Effect(policies.keys)
    logger = log.Log(_nowhere).logger("check")
    sweep = Sweep(
        timestamp.now(),
        Scope(
            after,
            mutations=checked.mutation.extensions.mutations,
            tells_drift=bool(checked.mutation.cluster),
        ),
        ListSource(client, page_objects),
        Namespaces(client, after.namespaces),
        _Comparison(effect, before, checked),
        logger,
        limits=lambda: Limits(_deadline()),
    )
    await sweep.run()
    checked.missing += [
        f"{item.kind}/{item.name} is about every kind: of kinds that nothing else is about it is "
        "not known what it would change"
        for item in checked.mutation.everywhere
    ]
    return effect


def _nowhere(line: bytes) -> None:
    """The log of a sweep whose end says all that is missing."""
    del line
