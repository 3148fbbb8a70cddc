"""Runs ``waddle test``: fills a client, and reviews everything that was read."""

from __future__ import annotations

import time
from dataclasses import field
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from webhook.admission_policies.kinds import is_answer
from webhook.api.admission import InvalidReview
from webhook.api.gvk import gvk_of, name_of, namespace_of, text
from webhook.cli.progress import watched
from webhook.cli.terminal import listed
from webhook.constraint import constraint, enforcement, template
from webhook.constraint.description import Description, described
from webhook.constraint.errors import ConstraintFrameworkError, ReviewError
from webhook.constraint.limits import Limits, Observer
from webhook.constraint.targets import admission
from webhook.constraint.targets.known import NAME as JSON
from webhook.exceptions.reading import warnings_in_files
from webhook.exceptions.state import warnings_after_reviews
from webhook.mutation.patch import Operation, make_patch
from webhook.policies.advice import Matched, advice_on_document, unmatched, unsent_kinds
from webhook.policies.directory import CONFIGURATION_GROUPS
from webhook.policies.extensions import Extensions, foreign_warnings
from webhook.policies.validation import is_policy
from webhook.policy_kinds.known import is_beside_policies, is_foreign_policy, kind_of
from webhook.policy_kinds.table import EXCEPTION_KINDS
from webhook.printable import quantity
from webhook.review.loops import review
from webhook.review.policy_set import PolicySet, exclusions_of
from webhook.review.subject import Subject, is_admission_review, shown_object, value_of
from webhook.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from webhook.cli.run_times import RunTimes
    from webhook.cli.sources import Other, Sources
    from webhook.constraint.client import Client
    from webhook.constraint.drivers.rego_trace import RegoTrace
    from webhook.constraint.result import Responses, Result
    from webhook.constraint.review import Document
    from webhook.constraint.targets.documents import DocumentTarget
    from webhook.external_data.exchange import Ask
    from webhook.policies.manifests import Manifest
    from webhook.review.outcome import Found


@dataclass(frozen=True, slots=True)
class CheckedViolation:
    """A violation with its subject: ``subject`` as text, ``value`` as JSON."""

    result: Result
    subject: str
    value: Any
    file: str
    line: int

    @property
    def denies(self) -> bool:
        """Returns whether an action fails the run; others are only shown."""
        return "deny" in self.result.actions


@dataclass(frozen=True, slots=True)
class ShownMutation:
    """The changes of mutators to an object before its review."""

    subject: str
    file: str
    line: int
    mutators: str
    patch: Sequence[Operation]


@dataclass(frozen=True, slots=True)
class CheckOutcome:
    """The findings of a check, and the number of reviewed inputs.

    ``constraints`` are all, as ``Kind/name``.
    """

    violations: Sequence[CheckedViolation]
    constraints: Sequence[str]
    reviewed: int
    documents: bool = False
    """Whether the inputs are documents instead of Kubernetes objects."""
    deny_only: bool = False
    faults: Sequence[str] = ()
    """The objects that could not be reviewed, with reasons."""
    mutated: Sequence[ShownMutation] = ()
    left_out: Sequence[str] = ()
    """The inputs that were left out on purpose, with reasons."""
    descriptions: Mapping[str, Description] = field(default_factory=dict)
    """The descriptions of constraints, by their names."""
    times: Sequence[Mapping[str, Any]] | None = None
    """The evaluation times of each constraint, if requested."""
    traces: Sequence[RegoTrace] = ()
    """The steps of each evaluation in Rego, if requested."""
    excused: Sequence[CheckedViolation] = ()
    """The violations that exceptions excuse."""
    idle: Sequence[str] = ()
    """API server and Kyverno policies without any reviewed object, as ``Kind/name``; a warning has
    the reason."""

    @property
    def shown(self) -> Sequence[CheckedViolation]:
        """Returns the violations to report individually."""
        return (
            [item for item in self.violations if item.denies] if self.deny_only else self.violations
        )

    @property
    def denied(self) -> bool:
        """Returns whether any violation denies."""
        return any(item.denies for item in self.violations)

    @property
    def nothing(self) -> str:
        """Returns why nothing was checked, or an empty text: such a run must not pass."""
        if self.faults:
            return ""
        if self.idle and not self.constraints:
            return f"nothing was checked: no object matches {listed(self.idle)}"
        if not self.constraints:
            return "nothing was checked: there is no constraint"
        if self.reviewed:
            return ""
        if self.left_out:
            return f"nothing was checked: {'; '.join(self.left_out)}"
        noun = "document" if self.documents else "object besides templates and constraints"
        return f"nothing was checked: there is no {noun}"


_REPORTED_AT_LOADING: Final = frozenset({"parse", "compile", "template", "constraint"})
"""Causes of refusals while policies are loaded: reported once, not for each object."""

_UNREAD: Final = (
    "reading: a file could not be read. Its mutators or policies are missing in the results"
)


def review_objects(
    client: Client, sources: Sources, printed: list[str], ask: Ask, times: RunTimes | None = None
) -> CheckOutcome:
    """Reviews every object, policies included, with all of them as data.

    Unusable or unreviewable objects are the outcome's faults, and the others are reviewed by the
    other policies. ``ask`` answers for providers.
    """
    faults = _add_policies(client, sources)
    faults += _add_each(
        [item for item in sources.manifests if _is_data(item.document)],
        client.add_data,
        lambda manifest: f'adding data of GVK "{manifest.gvk}"',
    )
    extensions = Extensions()
    faults += [
        f"auditing objects: {fault}"
        for fault in extensions.load(
            item for item in sources.manifests if is_beside_policies(item.gvk)
        )
    ]
    policies = extensions.policy_set(
        client.snapshot, exclusions_of(item.document for item in sources.manifests)
    )
    sources.warnings.extend(_warnings_of_manifests(sources, faults))
    reviewing = _Reviewing(policies, sources, printed, ask, times)
    objects = [item for item in sources.manifests if not is_answer(item.document)]
    for manifest in watched(objects, "objects"):
        reviewing.judge(manifest)
    # Policies are objects, too, but only policies about policies review them.
    findings = reviewing.findings
    violating = {id(item.manifest.document) for item in findings}
    reviewed = sum(
        id(item.document) in violating
        or not (is_policy(item.document) or is_beside_policies(item.gvk))
        for item in sources.manifests
    )
    reviewing.advise()
    sources.warnings.extend(_warnings_of_exceptions(extensions, client))
    return CheckOutcome(
        _ordered([item.violation for item in findings]),
        [*_constraints(client), *reviewing.foreign],
        reviewed - len(reviewing.excluded),
        faults=[
            *faults,
            *sources.faults,
            *([_UNREAD] if sources.faults else []),
            *reviewing.faults,
        ],
        mutated=reviewing.mutated,
        excused=reviewing.excused,
        left_out=_left_out(sources, reviewing.excluded),
        idle=[f"{kind}/{name}" for kind, name, _ in policies.foreign.loose()],
        descriptions=_descriptions(client),
        times=None if times is None else times.entries(client.snapshot),
    )


def _warnings_of_manifests(sources: Sources, faults: Sequence[str]) -> list[str]:
    """Returns the warnings about exceptions that can be used as they are written."""
    return [
        f"WARNING - {item.title}: {warning}"
        for item in sources.manifests
        if kind_of(item.gvk) in EXCEPTION_KINDS
        and not any(f"{item.title}: " in text for text in faults)
        for warning in warnings_in_files(item.document, time.time())
    ]


def _warnings_of_exceptions(extensions: Extensions, client: Client) -> Iterator[str]:
    """Warns of exceptions that excuse less than they state, after all reviews."""
    if extensions.excusing is not None:
        broken = (constraint for constraint, _ in client.snapshot.broken)
        known = {
            constraint.key: constraint for constraint in (*client.snapshot.constraints, *broken)
        }
        for item, warning in warnings_after_reviews(extensions.excusing, known):
            yield f"WARNING - {item.excuse.title}: {warning}"


def _is_data(document: dict[str, Any]) -> bool:
    """Whether policies may read an object as data."""
    return not (is_admission_review(document) or is_answer(document))


class _Finding(NamedTuple):
    violation: CheckedViolation
    manifest: Manifest


class _Reviewing:
    """Reviews objects of files by all policies, and collects the results."""

    def __init__(
        self,
        policies: PolicySet,
        sources: Sources,
        printed: list[str],
        ask: Ask,
        times: RunTimes | None,
    ) -> None:
        self._policies = policies
        self._ask = ask
        self._times = times
        self._warnings = sources.warnings
        self._printed = printed
        self._matched = Matched()
        self._matched_alone = Matched()
        """Matches of objects outside AdmissionReviews."""
        self._seen: set[tuple[str, str]] = set()
        self._foreign = policies.foreign
        self._manifests = [item for item in sources.manifests if is_foreign_policy(item.gvk)]
        self.findings: list[_Finding] = []
        self.faults: list[str] = []
        self.mutated: list[ShownMutation] = []
        self.excluded: list[str] = []
        self.excused: list[CheckedViolation] = []

    @property
    def foreign(self) -> Sequence[str]:
        """Returns the API server and Kyverno policies that review objects, as ``Kind/name``."""
        return ["/".join(key) for key in self._foreign.keys]

    def judge(self, manifest: Manifest) -> None:
        """Reviews one object as it would be stored, and its implied objects."""
        document = manifest.document
        try:
            value = value_of(document, self._policies.snapshot.namespaces)
        except InvalidReview as error:
            self.faults.append(
                f"reading: {manifest.file}:{manifest.line}: AdmissionReview: {error}"
            )
            return
        is_request = is_admission_review(document)
        matched = self._matched if is_request else self._matched_alone
        observer: Observer = matched
        if self._times is not None:
            self._times.beside, observer = matched, self._times
        limits = Limits(print_=lambda _, line: self._printed.append(line), observer=observer)
        subject = Subject(value, point=enforcement.COMMAND_LINE, limits=limits)
        reviewed = review(self._policies, subject, ask=self._ask)
        obj = reviewed.object or document
        self._seen.update(map(_kind, [obj, *reviewed.implied]))
        if reviewed.excluded is not None:
            if not is_policy(document):
                self.excluded.append(_subject(obj))
            return
        self._take(manifest, reviewed, obj)
        matched.take(reviewed.responses)

    def _take(self, manifest: Manifest, reviewed: Found, obj: dict[str, Any]) -> None:
        before = shown_object(manifest.document)
        if reviewed.mutators and (patch := make_patch(before, obj)):
            self.mutated.append(
                ShownMutation(
                    _subject(obj),
                    manifest.file,
                    manifest.line,
                    reviewed.mutators,
                    patch,
                )
            )
        name = name_of(obj)
        warned = [*map(str, reviewed.unresolved), *reviewed.remarks]
        self._warnings += [f"WARNING - {_subject(obj)}: {text}" for text in warned]
        place = f"{manifest.file}:{manifest.line}: "
        if reviewed.unmutated:
            self.faults.append(f"{place}{reviewed.unmutated}")
        if reviewed.unexpanded:
            self.faults.append(
                f"{place}auditing objects: expanding resource {name}: error expanding resource {name}: "
                f"{reviewed.unexpanded}"
            )
        shown = f"{gvk_of(obj)} {namespace_of(obj)}/{name}"
        self.faults += _undecided(reviewed.responses, shown, self._warnings)
        subject = _subject(obj), obj, manifest.file, manifest.line
        responses = reviewed.responses
        self.excused += [CheckedViolation(result, *subject) for result in responses.excused]
        self.findings += [
            _Finding(CheckedViolation(result, *subject), manifest) for result in responses.results
        ]

    def advise(self) -> None:
        """Warns of policies that passed without any reviewed object."""
        snapshot = self._policies.snapshot
        unmet = self._matched.missing(snapshot, admission.NAME)
        missing = [constraint for constraint in unmet if constraint.key not in self._matched_alone]
        warned = [f"WARNING - {text}" for text in unmatched(missing, self._seen)]
        if missing:
            counted = f"{len(missing)} of {quantity(len(snapshot.constraints), 'constraint')}"
            names = listed(["/".join(constraint.key) for constraint in missing])
            warned.append(f"{counted} matched no object: {names}")
        warned += [f"WARNING - {kind}" for kind in unsent_kinds(snapshot, self._matched_alone)]
        texts = foreign_warnings(self._policies, self._manifests)
        warned += [f"WARNING - {text}" for text in texts]
        warned += [
            f"WARNING - {'/'.join(key)} matched no object"
            for key in self._foreign.keys
            if key not in self._foreign.matched_keys
        ]
        self._warnings += [text for text in warned if text not in self._warnings]


def _left_out(sources: Sources, excluded: Sequence[str]) -> list[str]:
    """Returns the unreviewed inputs with reasons, for the last line."""
    lines = []
    if sources.left_out:
        lines.append(f"samples of test suites: {listed(sources.left_out)}")
    if sources.skipped:
        lines.append(f"not a Kubernetes object: {listed(sources.skipped)}")
    if excluded:
        lines.append(f"in a namespace that a Config excludes: {listed(excluded)}")
    return lines


def _constraints(client: Client) -> list[str]:
    return ["/".join(constraint.key) for constraint in client.snapshot.constraints]


def _descriptions(client: Client) -> dict[str, Description]:
    return {"/".join(key): description for key, description in described(client.snapshot).items()}


def _kind(obj: Mapping[str, Any]) -> tuple[str, str]:
    return gvk_of(obj).group_kind


def _subject(obj: dict[str, Any]) -> str:
    """Returns the object as gator shows it: ``<apiVersion>/<Kind> [ns/]name``."""
    namespace = namespace_of(obj)
    name = f"{namespace}/{name_of(obj)}" if namespace else name_of(obj)
    return f"{text(obj, 'apiVersion')}/{text(obj, 'kind')} {name}"


def review_documents(
    client: Client,
    sources: Sources,
    printed: list[str],
    target: DocumentTarget,
    ask: Ask,
    times: RunTimes | None = None,
) -> CheckOutcome:
    """Review every document that a target finds in the files, by the templates for it.

    A file in which it finds none for being of another shape is among the outcome's faults, and
    the others are reviewed, by the policies that can be used.
    """
    findings = []
    faults = [*_add_policies(client, sources), *sources.faults]
    reviewed: list[tuple[Document, Other]] = []
    for item in sources.documents:
        try:
            split = list(target.documents(item.document.value, item.document.name))
        except ReviewError as error:
            faults.append(f"reading: {error}")
            continue
        reviewed += [(document, item) for document in split]
    extensions = Extensions()
    foreign_policies = [item for item in sources.manifests if is_foreign_policy(item.gvk)]
    faults += [f"auditing documents: {fault}" for fault in extensions.load(foreign_policies)]
    policies = extensions.policy_set(client.snapshot)
    foreign = policies.foreign
    sources.warnings.extend(
        (
            f"WARNING - {'/'.join(key)}: it reviews no document, since spec.evaluation.mode is "
            "not JSON"
        )
        for key in foreign.keys
    )
    limits = Limits(print_=lambda _, line: printed.append(line), observer=times)
    for document, item in watched(reviewed, "documents"):
        subject = Subject(document, point=enforcement.COMMAND_LINE, limits=limits)
        responses = review(policies, subject, ask=ask).responses
        faults += _undecided(responses, document.name, sources.warnings)
        findings += [
            CheckedViolation(result, document.name, document.value, item.file, item.line)
            for result in responses.results
        ]
    named = foreign.document_keys if target.name == JSON else ()
    return CheckOutcome(
        _ordered(findings),
        [*_constraints(client), *("/".join(key) for key in named)],
        len(reviewed),
        documents=True,
        faults=faults,
        left_out=_left_out(sources, ()),
        descriptions=_descriptions(client),
        times=None if times is None else times.entries(client.snapshot),
    )


def _add_policies(client: Client, sources: Sources) -> list[str]:
    """Adds templates and constraints; returns faults, one a line."""
    manifests = sources.manifests
    constraints = sorted(
        (item for item in manifests if constraint.is_constraint(item.gvk)),
        key=lambda item: constraint.rank(item.gvk),
    )
    faults = _add_each(
        [item for item in manifests if item.gvk.group_kind == (template.GROUP, template.KIND)],
        client.add_template,
        lambda manifest: f'adding template "{name_of(manifest.document)}"',
    ) + _add_each(
        constraints,
        client.add_constraint,
        lambda manifest: f'adding constraint "{name_of(manifest.document)}"',
    )
    sources.warnings.extend(
        f"WARNING - {problem}"
        for item in manifests
        if item.gvk.group in CONFIGURATION_GROUPS
        for problem in advice_on_document(item.document)
    )
    known = {loaded.key for loaded in client.snapshot.constraints}
    # A cluster refuses such a constraint, so a pipeline must not pass by it.
    return faults + [
        f'{item.place}: auditing objects: adding constraint "{name_of(item.document)}": {why}'
        for item in constraints
        if (item.gvk.kind, name_of(item.document)) in known
        and (why := enforcement.fault_of(item.document))
    ]


def _add_each(
    manifests: Sequence[Manifest],
    add: Callable[[dict[str, Any]], bool],
    title: Callable[[Manifest], str],
) -> list[str]:
    """Adds manifests; returns all refusals with file and line, where gator stops at the first."""
    lines = []
    for manifest in manifests:
        try:
            add(manifest.document)
        except ConstraintFrameworkError as error:
            lines.append(f"{manifest.place}: auditing objects: {title(manifest)}: {error}")
    return lines


def _undecided(responses: Responses, shown: str, warnings: list[str]) -> list[str]:
    """Returns the undecided denying constraints; warning ones give a warning."""
    faults = [f"auditing objects: reviewing {shown}: {fault}" for fault in responses.faults]
    for item in responses.undecided:
        if item.cause in _REPORTED_AT_LOADING:
            continue
        if item.answer == "reject":
            faults.append(f"auditing objects: reviewing {shown}: not decided: {item}")
            continue
        warned = f"WARNING - {shown}: not decided: {item}"
        if item.answer == "warn" and warned not in warnings:
            warnings.append(warned)
    return faults


def _ordered(findings: list[CheckedViolation]) -> list[CheckedViolation]:
    """By enforcement action and message, as gator orders them over all objects."""
    return sorted(findings, key=lambda item: (item.result.enforcement_action, item.result.msg))
