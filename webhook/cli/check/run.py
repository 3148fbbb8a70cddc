"""Runs ``waddle check``: validates policies, and finds their effect on objects and decisions.

:func:`prepare` validates the policies and returns the policies in force before and after them. The
``effect_on_`` functions review the same objects by both, and compare the violations. All of them
write into one :class:`PolicyCheck`, which :mod:`webhook.cli.check.report` prints.
"""

from __future__ import annotations

import time
from dataclasses import field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from webhook import log
from webhook.admission_policies.kinds import POLICY
from webhook.api import timestamp
from webhook.api.admission import InvalidReview
from webhook.api.config import CONFIG
from webhook.api.gvk import GroupVersionKind, name_of, shown_name
from webhook.api.shapes import object_of
from webhook.audit.sink import Audited, AuditSink, SweepEnd
from webhook.cli.check import mutators as check_mutators
from webhook.cli.check.mutators import MutationChecked, take_change
from webhook.cli.cluster_access import REVIEW_SECONDS
from webhook.cli.sources import CannotTest
from webhook.constraint import enforcement
from webhook.constraint.errors import ConstraintFrameworkError
from webhook.constraint.limits import Limits
from webhook.decisions.source import RecordSource
from webhook.kyverno.kinds import is_kyverno, why_not_run
from webhook.policies.advice import Matched
from webhook.policies.effect import Effect, concerned, only, stored
from webhook.policies.problem import Problem
from webhook.policies.provider_calls import PROVIDER, advice_on_providers
from webhook.policies.replay import Replay, ReplayDifference, recorded_requests, replay
from webhook.policies.validation import is_policy, validate
from webhook.policy_kinds.known import is_extension, is_foreign_policy
from webhook.printable import quantity
from webhook.review.admission_requests import title_of
from webhook.review.loops import review
from webhook.review.policy_set import Exclusions, PolicySet, exclusions_of
from webhook.review.subject import Subject, is_admission_review, shown_object, value_of
from webhook.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from webhook.cluster.client import ClusterClient
    from webhook.constraint.client import Client
    from webhook.constraint.review import Document
    from webhook.external_data.exchange import Ask
    from webhook.policies.generated import Agreement
    from webhook.policies.manifests import Manifest
    from webhook.policies.recorded_answers import RecordedAnswers
    from webhook.reads.read_set import PolicyReads


@dataclass(slots=True)
class PolicyCheck:
    """The result of a check; an effect is None if no flag requests it."""

    problems: list[Problem] = field(default_factory=list)
    policies: int = 0
    places: dict[tuple[str, str], str] = field(default_factory=dict)
    """File and line of each manifest, by kind and name."""
    policy_keys: set[tuple[str, str]] = field(default_factory=set)
    """The kind and name of each policy."""
    manifests: Effect | None = None
    """The effect on the manifests given beside the policies."""
    cluster: Effect | None = None
    decisions: Replay | None = None
    missing: list[str] = field(default_factory=list)
    """Lines about unknown parts of the effect, with the reasons."""
    unread: int = 0
    """Documents that were not reviewed, or not with all that they imply."""
    mutation: MutationChecked = field(default_factory=MutationChecked)
    after: Client | None = None
    """The policies in force together with the checked ones."""
    reads: dict[str, PolicyReads] | None = None
    """The reads of each policy, by kind and name."""
    generated: Agreement | None = None
    """How generated ValidatingAdmissionPolicies compare with the webhook."""

    @property
    def unusable(self) -> set[tuple[str, str]]:
        """The kind and name of each policy, mutator or the like with an error."""
        errors = {item.key for item in self.problems if item.severity == "error"}
        return errors & (self.policy_keys | self.mutation.extension_keys)

    @property
    def ok(self) -> bool:
        """Whether webhook and API server can use the policies."""
        if self.generated is not None and self.generated.differences:
            return False
        return not any(problem.severity == "error" for problem in self.problems)


@dataclass(frozen=True, slots=True)
class BeforeAndAfter:
    """The policies in force, before and after the checked ones."""

    before: Client
    after: Client
    keys: frozenset[tuple[str, str]]
    """The changed constraints, and those whose template changes."""
    mutation: MutationChecked
    exclusions: Exclusions
    """The exclusions of Configs among the manifests."""
    exceptions: tuple[str, ...] = ()
    """The titles of the checked exceptions."""

    def set_before(self) -> PolicySet:
        """Returns all policies in force now."""
        return self.mutation.in_force.policy_set(self.before.snapshot)

    def set_after(self) -> PolicySet:
        """Returns all policies in force together with the checked ones."""
        return self.mutation.extensions.policy_set(self.after.snapshot, self.exclusions)


def prepare(
    manifests: Sequence[Manifest],
    base: Client,
    budget_seconds: float,
    checked: PolicyCheck,
    extensions: Sequence[dict[str, Any]] = (),
    configs: Sequence[Mapping[str, Any]] = (),
) -> BeforeAndAfter:
    """Validate the policies among the manifests on top of those in force.

    ``base`` has the templates and constraints in force, ``extensions`` are the mutators and
    ExpansionTemplates in force. ``configs`` are the Configs in force; they count where the
    manifests have none.
    """
    documents = [item.document for item in manifests if is_policy(item.document)]
    foreign_keys = {
        item.key
        for item in manifests
        if is_extension(item.document) and is_foreign_policy(item.gvk)
    }
    checked.policy_keys = foreign_keys.union(
        item.key for item in manifests if is_policy(item.document)
    )
    checked.policies = len(checked.policy_keys)
    checked.places = {
        key: item.place
        for item in manifests
        for key in (item.key, (item.gvk.kind, title_of(item.document)))
    }
    after = checked.after = base.copy()
    checked.mutation, problems = check_mutators.prepare(manifests, extensions)
    checked.places |= checked.mutation.places
    checked.problems = validate(after, documents, budget_seconds) + problems
    _check_kyverno(manifests, checked)
    checked.problems += check_mutators.problems_of_exceptions(
        checked.mutation.extensions, manifests, after.snapshot.constraints
    )
    keys = [item.key for item in (*base.snapshot.constraints, *after.snapshot.constraints)]
    config_objects = [
        item.document for item in manifests if item.gvk.group_kind == CONFIG.group_kind
    ]
    exclusions = exclusions_of(config_objects or configs)
    named = concerned((item.document for item in manifests), keys)
    exceptions = check_mutators.exceptions_in(checked.mutation.extensions, manifests)
    titles = tuple(item.excuse.title for item in exceptions)
    both = BeforeAndAfter(base, after, named, checked.mutation, exclusions, titles)
    foreign = both.set_after().foreign
    return replace(both, keys=named.union(foreign.keys, foreign.document_keys))


def check_foreign(policies: BeforeAndAfter, checked: PolicyCheck) -> None:
    """Warns of API server policies with no effect, or an unexpected one.

    Call it once the data is complete: their parameters are objects in it.
    """
    after = policies.set_after()
    reviewed = set(after.foreign.document_keys) & after.foreign.matched_keys
    checked.problems += [
        Problem(kind, name, "warning", "binding", text)
        for kind, name, text in after.foreign.warnings(after.snapshot.inventory)
        if (kind, name) not in reviewed
    ]


def kinds_of_parameters(policies: BeforeAndAfter) -> Sequence[GroupVersionKind]:
    """Returns the kinds whose objects are parameters of the API server's own policies."""
    return policies.set_after().foreign.kinds_of_parameters


def _check_kyverno(manifests: Sequence[Manifest], checked: PolicyCheck) -> None:
    """Warns of each policy of Kyverno that Waddle does not evaluate."""
    for item in manifests:
        if why := why_not_run(item.document):
            text = f"not evaluated: {why}"
            checked.problems.append(Problem(*item.key, "warning", "kyverno", text))


def derive_reads(checked: PolicyCheck) -> dict[str, PolicyReads]:
    """Returns the inputs of each policy to check, by ``KIND/NAME``.

    A broken policy has no entry.
    """
    from webhook.constraint.drivers.reads import dependencies_of  # noqa: PLC0415  # see check

    reads: dict[str, PolicyReads] = {}
    for entry in checked.after.snapshot.entries if checked.after is not None else ():
        template = entry.template
        keys: list[tuple[str, str, Any]] = [("ConstraintTemplate", template.name, None)]
        keys += [(item.kind, item.name, item.parameters or {}) for item in entry.constraints]
        for kind, name, parameters in keys:
            if (kind, name) not in checked.policy_keys:
                continue
            if (read := dependencies_of(template, parameters)) is not None:
                reads[f"{kind}/{name}"] = read
    return reads


def check_providers(
    policies: BeforeAndAfter,
    manifests: Sequence[Manifest],
    answered: Collection[str],
    checked: PolicyCheck,
) -> None:
    """Warns of providers in policies that neither the manifests nor ``answered`` name."""
    known = {name_of(item.document) for item in manifests if item.gvk.group_kind == PROVIDER}
    extensions = [item.document for item in manifests if is_extension(item.document)]
    checked.problems += advice_on_providers(
        policies.after.snapshot.templates, extensions, known.union(answered)
    )


def effect_on_manifests(
    policies: BeforeAndAfter,
    manifests: Iterable[Manifest],
    checked: PolicyCheck,
    ask: Ask,
    documents: Sequence[Document] = (),
) -> Effect | None:
    """Reviews the objects among the manifests by both sets of policies; None without objects.

    The objects are the referential data, too. ``ask`` calls providers. ``documents`` are no
    objects: Kyverno's policies of mode JSON review them.
    """
    objects = _known_objects(policies, manifests, checked)
    if not (objects or documents):
        return None
    before, after = policies.set_before(), policies.set_after()
    effect, matched = Effect(policies.keys, policies.exceptions), Matched()
    foreign = frozenset(after.foreign.keys)
    for item in objects:
        try:
            value = value_of(item.document, after.snapshot.namespaces)
        except InvalidReview as error:
            checked.missing.append(f"{item.file}:{item.line}: AdmissionReview: {error}")
            checked.unread += 1
            continue
        # Mutated first, as at admission: constraints review the object to be stored.
        subject = Subject(value, point=enforcement.AUDIT, limits=Limits(_deadline()))
        old = review(before, subject, ask=ask)
        subject = replace(subject, limits=Limits(_deadline(), observer=matched))
        outcome = review(after, subject, ask=ask)
        matched.take(outcome.responses)
        obj = shown_object(item.document)
        take_change(checked.mutation, obj, outcome)
        shown, new = f"{item.file}:{item.line}: {shown_name(obj)}", outcome.responses
        checked.missing += [f"{shown}: {line}" for line in outcome.unresolved]
        checked.missing += [f"{shown}: {line}" for line in outcome.remarks]
        checked.missing += [f"{shown}: {fault}" for fault in outcome.faults]
        checked.unread += bool(outcome.unexpanded)
        checked.missing += [f"{shown}: {fault}" for fault in new.faults]
        checked.missing += [
            f"{shown}: not decided: {undecided}"
            for undecided in new.undecided
            if undecided.constraint.key in foreign
        ]
        if outcome.excluded is not None:
            checked.missing.append(f"{shown}: a Config excludes its namespace")
        effect.take(shown, old.responses.results, new.results, new.excused)
    for document in documents:
        _take_document(before, after, document, effect, checked, ask)
    _report_defaults(after, objects, checked)
    for key, change in effect.constraints.items():
        change.matched = key in matched or key in after.foreign.matched_keys
    return effect


def _known_objects(
    policies: BeforeAndAfter, manifests: Iterable[Manifest], checked: PolicyCheck
) -> list[Manifest]:
    """Returns the manifests that are no policies; all of them except requests become data."""
    objects = []
    for manifest in manifests:
        document = manifest.document
        if is_policy(document) or is_extension(document) or is_kyverno(document):
            continue
        try:
            if not is_admission_review(document):
                policies.before.add_data(document)
                policies.after.add_data(document)
        except ConstraintFrameworkError as error:
            checked.missing.append(f"{manifest.file}:{manifest.line}: {manifest.title}: {error}")
            checked.unread += 1
        else:
            objects.append(manifest)
    return objects


def _take_document(
    before: PolicySet,
    after: PolicySet,
    document: Document,
    effect: Effect,
    checked: PolicyCheck,
    ask: Ask,
) -> None:
    """Reviews a document that is no object by both sets of policies."""
    subject = Subject(document, point=enforcement.AUDIT, limits=Limits(_deadline()))
    old, new = (review(policy_set, subject, ask=ask).responses for policy_set in (before, after))
    checked.missing += [f"{document.name}: not decided: {fault}" for fault in new.undecided]
    effect.take(document.name, old.results, new.results, new.excused)


def _report_defaults(after: PolicySet, objects: Iterable[Manifest], checked: PolicyCheck) -> None:
    """Notes that the API server sets defaults before its own policies see an object."""
    count = sum(kind == POLICY for kind, _ in after.foreign.matched_keys)
    if count and not all(is_admission_review(item.document) for item in objects):
        policies = quantity(count, POLICY, "ValidatingAdmissionPolicies")
        checked.missing.append(
            f"{policies} reviewed manifests without the API server's defaults; objects in a "
            "cluster have these"
        )


def _deadline() -> float:
    return time.monotonic() + REVIEW_SECONDS


class RecordedDecisions:
    """The records of a file, a sidecar's queue, or ``-``: standard input.

    Iterating raises :class:`CannotTest` where they cannot be read. A second pass over standard
    input needs :meth:`keep` before the first.
    """

    def __init__(self, source: str) -> None:
        self._source = source
        self._kept: list[dict[str, Any]] | None = None
        self.unreadable = 0
        """Lines that are no records; counted by an iteration to the end."""

    def keep(self) -> None:
        """Keeps the records of standard input, which can be read only once."""
        if self._source == "-":
            self._kept = list(self)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        try:
            if self._kept is not None:
                yield from self._kept
                return
            source = RecordSource(Path(self._source))
            yield from source
            self.unreadable = source.unreadable
        except OSError as error:
            raise CannotTest(f"reading decisions: {self._source}: {error.strerror}") from None


def effect_on_decisions(
    policies: BeforeAndAfter, records: RecordedDecisions, checked: PolicyCheck, ask: Ask
) -> None:
    """Review each request that was recorded with its object again, by the policies to check."""
    replayed = replay(records, policies.set_after(), ask, policies.keys)
    checked.decisions = replayed
    replayed.differences = {
        key: replayed.differences.get(key, ReplayDifference()) for key in sorted(policies.keys)
    }
    if records.unreadable:
        checked.missing.append(
            f"skipped, not records of version 1: {quantity(records.unreadable, 'line')}"
        )
    if not replayed.replayed:
        checked.missing.append(
            "no recorded decision has its object: record them with includeObjects"
        )


def compare_generated(
    policies: BeforeAndAfter,
    manifests: Iterable[Manifest],
    records: RecordedDecisions | None,
    mode: str,
    checked: PolicyCheck,
) -> None:
    """Compares the webhook with generated policies on samples, the manifests and recorded requests."""
    from webhook.generation.plan import Options  # noqa: PLC0415  # imports CEL, so only on demand
    from webhook.policies.generated import agreement  # noqa: PLC0415  # likewise

    requests = [
        request
        for item in manifests
        if (request := _request_of(item.document))
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
        policies.mutation.extensions.exceptions,
    )


def _request_of(document: dict[str, Any]) -> dict[str, Any]:
    """Returns the request of an AdmissionReview, or a request that creates the object.

    May be empty.
    """
    from webhook.policies.generated import request_of  # noqa: PLC0415  # see compare_generated

    if is_admission_review(document):
        return object_of(document.get("request"))
    return request_of(document)


# --- a cluster ------------------------------------------------------------------------------------


class _Comparison(AuditSink):
    """A sink of an audit by the policies to check; also reviews each object by those in force."""

    def __init__(self, effect: Effect, before: PolicySet, checked: PolicyCheck, ask: Ask) -> None:
        self._ask = ask
        self._effect = effect
        self._before = before
        self._checked = checked

    async def audited(self, audited: Audited) -> None:
        """Compares the results of both sets of policies for an object."""
        if audited.excluded:
            return
        namespaces = audited.snapshot.namespaces
        namespace = namespaces.get(audited.identity.namespace)
        subject = stored(audited.object, namespace, _deadline())
        before = review(self._before, subject, ask=self._ask)
        shown = shown_name(audited.object)
        after = audited.responses
        self._effect.take(shown, before.responses.results, after.results, after.excused)
        for drift in audited.drifts:
            if (effect := self._checked.mutation.cluster.get(drift.mutator)) is not None:
                effect.take(shown, drift)

    async def end(self, end: SweepEnd) -> None:
        """Records the gaps of the sweep."""
        missing = self._checked.missing
        missing += [
            f"the list is incomplete: {gvk}: {why}" for gvk, why in sorted(end.failed.items())
        ]
        missing += [f"no right to list: {gvk}" for gvk in sorted(end.unreadable)]
        missing += [f"{kind}/{name} gave no verdict" for kind, name in sorted(end.undecided)]


async def effect_on_cluster(
    client: ClusterClient,
    policies: BeforeAndAfter,
    checked: PolicyCheck,
    page_objects: int,
    ask: RecordedAnswers,
) -> Effect:
    """Review the cluster's objects by both sets of policies, listed page by page as an audit does it.

    ``ask`` answers for providers. Raises :class:`~webhook.cluster.errors.ApiError` and
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
    for client_of_policies in (policies.before, policies.after):
        only(client_of_policies, policies.keys)
    before, after = policies.set_before(), policies.set_after()
    effect = Effect(policies.keys, policies.exceptions)
    logger = log.Log(_nowhere).logger("check")
    sweep = Sweep(
        timestamp.now(),
        Scope(after, reports_drift=bool(checked.mutation.cluster)),
        ListSource(client, page_objects),
        Namespaces(client, after.snapshot.namespaces),
        _Comparison(effect, before, checked, ask),
        logger,
        limits=lambda: Limits(_deadline()),
        ask=ask.ask,
    )
    await sweep.run()
    checked.missing += [
        f"{item.kind}/{item.name} matches every kind. Its effect on kinds that no other "
        "policy names is not known"
        for item in checked.mutation.everywhere
    ]
    return effect


def _nowhere(_: bytes) -> None:
    """Drops a line of the sweep's log: :meth:`_Comparison.end` records the gaps."""
