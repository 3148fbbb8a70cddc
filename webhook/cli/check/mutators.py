"""The part of ``waddle check`` about mutators, ExpansionTemplates, and mutated objects."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import field, replace
from typing import TYPE_CHECKING, Any, Final

from webhook.admission_policies.kinds import MUTATING_POLICY
from webhook.api.gvk import name_of, namespace_of
from webhook.cli.extensions import run as extension_run
from webhook.constraint.constraint import Constraint, is_constraint
from webhook.exceptions.permission import closed_by
from webhook.exceptions.reading import warnings_in_files
from webhook.exceptions.state import UNKNOWN, missing_constraints
from webhook.kyverno.kinds import MUTATING_KINDS
from webhook.mutation import mutator
from webhook.mutation.drift import Drift, is_about_everything
from webhook.mutation.patch import Operation, make_patch
from webhook.mutation.reading import is_mutator
from webhook.policies.advice import advice_on_document
from webhook.policies.directory import CONFIGURATION_GROUPS
from webhook.policies.effect import EXAMPLES_MAX, Example
from webhook.policies.extensions import IN_FORCE, Extensions, on_top
from webhook.policies.problem import Problem, Severity
from webhook.policy_kinds.known import effectless, is_extension, is_foreign_policy, kind_of
from webhook.policy_kinds.table import EXCEPTION_KINDS
from webhook.review.admission_requests import title_of
from webhook.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from webhook.constraint.result import Excuse
    from webhook.exceptions.exception import PolicyException
    from webhook.mutation.mutator import MutatorId
    from webhook.policies.manifests import Manifest
    from webhook.review.outcome import Found


@dataclass(frozen=True, slots=True)
class MutatedManifest:
    """A manifest as mutators change it."""

    object: str
    mutators: str
    patch: Sequence[Operation]

    def document(self) -> dict[str, Any]:
        """As JSON."""
        return {"object": self.object, "mutators": self.mutators, "patch": list(self.patch)}


@dataclass(slots=True)
class MutatorEffect:
    """The changes of one mutator to existing objects."""

    objects: int = 0
    examples: list[Example] = field(default_factory=list)

    def take(self, shown: str, drift: Drift) -> None:
        """Counts an object; ``shown`` is its name."""
        self.objects += 1
        if len(self.examples) < EXAMPLES_MAX:
            self.examples.append(Example(shown, str(drift)))

    def document(self) -> dict[str, Any]:
        """As JSON."""
        return {
            "objects": self.objects,
            "examples": [
                {"object": example.object, "message": example.message} for example in self.examples
            ],
        }


@dataclass(slots=True)
class MutationChecked:
    """The result of a check of mutators and ExpansionTemplates."""

    extensions: Extensions = field(default_factory=Extensions)
    """The new mutators and ExpansionTemplates, with those in force."""
    in_force: Extensions = field(default_factory=Extensions)
    kinds: Counter[str] = field(default_factory=Counter)
    """The number of checked mutators, ExpansionTemplates and the like of each kind."""
    changes: list[MutatedManifest] = field(default_factory=list)
    """Changes of the manifests given beside them."""
    places: dict[tuple[str, str], str] = field(default_factory=dict)
    """File and line of each fault of an extension, by kind and name."""
    extension_keys: frozenset[tuple[str, str]] = frozenset()
    """The kind and name of each mutator, ExpansionTemplate, exception, group and the like."""
    cluster: dict[MutatorId, MutatorEffect] = field(default_factory=dict)
    """Changes of a cluster's objects, by each checked mutator."""

    @property
    def everywhere(self) -> list[MutatorId]:
        """Returns the checked mutators that name no kind: no kind is listed for them."""
        known = self.extensions.mutations
        mutators = (*known.mutators, *known.previewed)
        return [
            item.id for item in mutators if item.id in self.cluster and is_about_everything(item)
        ]


def prepare(
    manifests: Sequence[Manifest], in_force: Sequence[dict[str, Any]]
) -> tuple[MutationChecked, list[Problem]]:
    """Validates extensions on top of those in force; returns them with their faults."""
    by_identity = {item.identity: item for item in manifests if is_extension(item.document)}
    counted = [item for item in by_identity.values() if not is_foreign_policy(item.gvk)]
    checked = MutationChecked(
        kinds=Counter(item.gvk.kind for item in counted),
        extension_keys=frozenset(
            (item.gvk.kind, title_of(item.document)) if _namespace_of(item) else item.key
            for item in counted
        ),
    )
    faults = checked.extensions.load(on_top(list(by_identity.values()), in_force))
    checked.in_force.load(on_top((), in_force))
    titles = {item.title: item for item in by_identity.values()}
    problems = []
    for fault in faults:
        if fault.file != IN_FORCE and (manifest := titles.get(fault.title)) is not None:
            problems.append(_problem(manifest, "error", "invalid", fault.message))
            checked.places[problems[-1].key] = f"{fault.file}:{fault.line}"
    problems += [
        Problem(*item.key, "error", "invalid", fault)
        for item in manifests
        if not is_extension(item.document)
        for fault in effectless(item.document)
    ]
    problems += [
        replace(problem, namespace=_namespace_of(item))
        for item in manifests
        if item.gvk.group in CONFIGURATION_GROUPS and not is_constraint(item.gvk)
        for problem in advice_on_document(item.document)
    ]
    problems += [
        _problem(item, "warning", "exception", warning)
        for item in by_identity.values()
        if kind_of(item.gvk) in EXCEPTION_KINDS
        and item.title not in {broken.title for broken in faults}
        for warning in warnings_in_files(item.document, time.time())
    ]
    checked.cluster |= _effects_of_policies(by_identity.values())
    for item in by_identity.values():
        if is_mutator(item.document):
            key = mutator.MutatorId(item.gvk.kind, name_of(item.document))
            checked.cluster[key] = MutatorEffect()
            problems += _mutator_warnings(checked.extensions, key, item.document)
    return checked, problems


def _namespace_of(item: Manifest) -> str:
    """Returns the namespace of an exception; empty for others, which have none."""
    return namespace_of(item.document) if kind_of(item.gvk) in EXCEPTION_KINDS else ""


def _problem(item: Manifest, severity: Severity, code: str, message: str) -> Problem:
    return Problem(*item.key, severity, code, message, _namespace_of(item))


def _of(excuse: Excuse, severity: Severity, code: str, message: str) -> Problem:
    return Problem(excuse.kind, excuse.name, severity, code, message, excuse.namespace)


def _mutator_warnings(
    extensions: Extensions, key: mutator.MutatorId, document: Mapping[str, Any]
) -> Iterator[Problem]:
    """Yields the warnings about a mutator: a conflict, probable mistakes, an empty name."""
    if parties := extensions.mutations.would_conflict.get(key):
        names = ", ".join(f"{party.kind}/{party.name}" for party in parties if party != key)
        message = f"it is in preview; once enforced it conflicts with {names}"
        yield Problem(*key, "warning", "conflict", message)
    for warning in extensions.warnings_of(key):
        yield Problem(*key, "warning", "update", warning)
    if _is_named_after_nobody(document):
        yield Problem(*key, "warning", "empty-name", _NO_NAME)


def _effects_of_policies(items: Iterable[Manifest]) -> dict[MutatorId, MutatorEffect]:
    """Returns an empty effect for each mutating policy of the API server's own, or of Kyverno's."""
    return {
        mutator.MutatorId(item.gvk.kind, title_of(item.document)): MutatorEffect()
        for item in items
        if item.gvk.kind == MUTATING_POLICY or item.gvk.kind in MUTATING_KINDS
    }


def exceptions_in(extensions: Extensions, manifests: Sequence[Manifest]) -> list[PolicyException]:
    """Returns the exceptions in force that are among the manifests."""
    in_files = {
        (item.gvk.kind, namespace_of(item.document), name_of(item.document)) for item in manifests
    }
    return [
        item
        for item in extensions.exceptions
        if (item.excuse.kind, item.excuse.namespace, item.excuse.name) in in_files
    ]


def problems_of_exceptions(
    extensions: Extensions, manifests: Sequence[Manifest], constraints: Iterable[Constraint]
) -> list[Problem]:
    """Return the constraints' faults with exceptions among the manifests, in admission's words."""
    known = {constraint.key: constraint for constraint in constraints}
    problems = []
    for item in exceptions_in(extensions, manifests):
        excuse = item.excuse
        named = [known[key] for key in item.constraints if key in known]
        if (fault := closed_by(item, named)) is not None:
            problems.append(_of(excuse, "error", "invalid", fault.message))
        if missing := missing_constraints(item, known):
            message = f"there is no constraint {', '.join(missing)}"
            problems.append(_of(excuse, "warning", "exception", message))
    return problems


def faults_of_conditions(extensions: Extensions, manifests: Sequence[Manifest]) -> list[Problem]:
    """Returns the errors of exceptions' conditions among the manifests, after all reviews."""
    excusing = extensions.excusing
    faults = {} if excusing is None else excusing.condition_faults
    return [
        _of(item.excuse, "warning", "exception", f"{UNKNOWN}{fault}")
        for item in exceptions_in(extensions, manifests)
        if (fault := faults.get(item.excuse.title)) is not None
    ]


_NO_NAME: Final = (
    "it assigns metadata.name, which is still empty when a ReplicaSet or Job creates a "
    "Pod (generateName): it assigns an empty string"
)


def _is_named_after_nobody(document: Mapping[str, Any]) -> bool:
    """Returns whether a mutator of Pods reads the name, which a Pod may not have yet."""
    value: Any = document
    for name in ("spec", "parameters", "assign", "fromMetadata", "field"):
        value = value.get(name) if isinstance(value, dict) else None
    if value != "name":
        return False
    entries = document["spec"].get("applyTo")
    if not isinstance(entries, list):
        return True
    return any("Pod" in (entry.get("kinds") or ()) for entry in entries if isinstance(entry, dict))


def take_change(checked: MutationChecked, before: dict[str, Any], outcome: Found) -> None:
    """Keeps the changes of mutators to an object."""
    if outcome.stored is None or outcome.object is None:
        return
    if patch := make_patch(before, outcome.object):
        shown = extension_run.shown(before)
        checked.changes.append(MutatedManifest(shown, outcome.mutators, patch))
