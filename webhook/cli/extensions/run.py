"""Manifests with the mutators and ExpansionTemplates among them applied."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, NoReturn, TypeVar

from webhook.admission_policies.kinds import MUTATING_BINDING, MUTATING_POLICY
from webhook.api.admission import InvalidReview
from webhook.api.encoding import decode, encode
from webhook.api.gvk import name_of
from webhook.cli.formats.document import as_json, as_stream
from webhook.cli.sources import CannotTest, Sources, read_sources
from webhook.cli.terminal import complain
from webhook.constraint.errors import ConstraintFrameworkError
from webhook.constraint.limits import Limits
from webhook.constraint.snapshot import Snapshot
from webhook.external_data.exchange import has_no_provider, without_providers
from webhook.kyverno.kinds import MUTATING_KINDS, is_old_mutating
from webhook.mutation.external import Unresolved, unresolved
from webhook.policies.advice import left_out
from webhook.policies.extensions import Extensions, foreign_warnings, inventory_of
from webhook.policy_kinds.known import is_foreign_policy, kind_of
from webhook.policy_kinds.table import CONFIGS, EXPANSION_TEMPLATES, MUTATORS
from webhook.review.expanding import expand_value
from webhook.review.loops import answered
from webhook.review.mutating import EXTENSION_SECONDS, mutate, named
from webhook.review.policy_set import exclusions_of
from webhook.review.subject import Subject, object_of_value, shown_object, value_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from webhook.external_data.exchange import (
        AnswersSoFar,
        Ask,
        ProviderAnswers,
        ProviderRequest,
    )
    from webhook.policies.manifests import Manifest
    from webhook.policy_kinds.kind import PolicyKind
    from webhook.review.outcome import StoredSubject
    from webhook.review.policy_set import PolicySet

T = TypeVar("T")

NOTHING_PRINTED: Final = (
    "nothing is printed, because the output would be incomplete: correct what is named above, "
    "or leave out its files"
)

_MUTATING: Final = frozenset({MUTATING_POLICY, *MUTATING_KINDS})
"""The kinds of foreign policies that change objects, as mutators do."""


def read_expanding(manifests: Sequence[Manifest]) -> PolicySet:
    """Reads mutators and ExpansionTemplates; raises :class:`~webhook.cli.sources.CannotTest`."""
    groups = {MUTATORS[0].group, EXPANSION_TEMPLATES.group}
    snapshot = Snapshot(targets={}, namespaces=namespaces_of(manifests))
    return _loaded([item for item in manifests if item.gvk.group in groups]).policy_set(snapshot)


def read_mutating(manifests: Sequence[Manifest]) -> PolicySet:
    """Reads all policies that change objects with their inputs.

    These are mutators, API server and Kyverno policies. Raises
    :class:`~webhook.cli.sources.CannotTest`.
    """
    mutators = [item for item in manifests if item.gvk.group == MUTATORS[0].group]
    mutators += [item for item in manifests if is_foreign_policy(item.gvk)]
    mutators += [item for item in manifests if kind_of(item.gvk) is CONFIGS]
    old = left_out(item for item in manifests if is_old_mutating(item.document))
    try:
        inventory = inventory_of(manifests)
    except ConstraintFrameworkError as error:
        raise CannotTest(*old, str(error)) from None
    snapshot = Snapshot(targets={}, namespaces=namespaces_of(manifests), inventory=inventory)
    return _loaded(mutators, *old).policy_set(
        snapshot, exclusions_of(item.document for item in manifests)
    )


def advice_on_mutating(policies: PolicySet, manifests: Sequence[Manifest]) -> list[str]:
    """Returns a line for each field of foreign policies without the expected effect.

    These are the API server's and Kyverno's policies.
    """
    kinds = {*_MUTATING, MUTATING_BINDING}
    return [f"WARNING - {text}" for text in foreign_warnings(policies, manifests, kinds)]


def _loaded(manifests: list[Manifest], *others: str) -> Extensions:
    """Raises :class:`~webhook.cli.sources.CannotTest` for unusable policies, and ``others``."""
    extensions = Extensions()
    if faults := [*others, *map(str, extensions.load(manifests))]:
        raise CannotTest(*faults)
    return extensions


def read_files(
    filenames: Sequence[str], read: Callable[[Sequence[Manifest]], PolicySet]
) -> tuple[Sources, PolicySet]:
    """Reads files, and the policies among them by ``read``; prints warnings.

    Raises :class:`~webhook.cli.sources.CannotTest` with the faults of all files and policies, if
    a policy is unusable.
    """
    sources = read_sources([Path(name) for name in filenames], any_value=False, keep_going=True)
    for warning in sources.warnings:
        complain(warning)
    try:
        return sources, read(sources.manifests)
    except CannotTest as error:
        refuse([*sources.faults, *error.lines])


def refuse(faults: Sequence[str]) -> NoReturn:
    """Raises :class:`~webhook.cli.sources.CannotTest` in place of an output with a part missing.

    Its reader would take it for whole: in a pipe, ``kubectl apply`` sees no exit code.
    """
    raise CannotTest(*faults, NOTHING_PRINTED)


def untouched(manifests: Sequence[Manifest], named: str, kind: PolicyKind) -> str:
    """Returns why no object was processed: this must not pass for a good result."""
    is_mutator = kind.group == MUTATORS[0].group
    if any(
        item.gvk.group == kind.group
        or (is_mutator and is_foreign_policy(item.gvk) and item.gvk.kind in _MUTATING)
        for item in manifests
    ):
        return f"no {named} of the files matches an object in them"
    return f"the files have no {named}"


def is_object(manifest: Manifest) -> bool:
    """Returns whether a manifest is an object to mutate: no policy of any kind."""
    return not (manifest.gvk.group.endswith(".gatekeeper.sh") or is_foreign_policy(manifest.gvk))


def as_manifests(objects: Sequence[dict[str, Any]], output: str) -> str:
    """Returns YAML documents, or with ``json`` an array, without a newline at the end."""
    # Values that several objects share are written out in each.
    copies = decode(encode(list(objects)))
    return as_json(copies) if output == "json" else as_stream(copies)


def namespaces_of(manifests: Sequence[Manifest]) -> dict[str, Mapping[str, Any]]:
    """Returns the Namespaces by name."""
    return {
        name_of(item.document): item.document
        for item in manifests
        if item.gvk.group_kind == ("", "Namespace")
    }


class MutatedObject(NamedTuple):
    """An object, its mutated form, its policies, and calls without a provider's answer."""

    before: dict[str, Any]
    after: dict[str, Any]
    mutators: str
    unresolved: tuple[Unresolved, ...] = ()
    ignored: tuple[str, ...] = ()

    @property
    def warnings(self) -> list[str]:
        """Returns warnings of fields for which no provider gave a value."""
        texts = [*map(str, self.unresolved), *self.ignored]
        return [f"WARNING - {named(self.before)}: {text}" for text in texts]


class Extending:
    """Applies mutators and ExpansionTemplates to manifests, one by one.

    An AdmissionReview is replaced by the object of its request.
    """

    def __init__(
        self,
        policies: PolicySet,
        seconds: float = EXTENSION_SECONDS,
        *,
        ask: Ask | None = None,
    ) -> None:
        """``seconds`` is the time for each object; ``ask`` answers for providers."""
        self._ask_provider = ask or without_providers
        self._seconds = seconds
        self._policies = policies

    def mutate(self, document: dict[str, Any]) -> MutatedObject:
        """Mutates a manifest's object; raises :class:`CannotTest`."""
        stored, unanswered = self._mutated(document)
        before = shown_object(document)
        after = object_of_value(stored.value) or before
        if stored.fault:
            raise CannotTest(stored.fault)
        return MutatedObject(before, after, stored.names, unanswered, stored.ignored)

    def implied(self, document: dict[str, Any]) -> list[dict[str, Any]]:
        """Returns the mutated objects that a manifest's object implies; raises :class:`CannotTest`."""
        stored, _ = self._mutated(document)
        value = stored.value
        if stored.fault:
            raise CannotTest(stored.fault)
        resultants, fault = answered(
            lambda answers: expand_value(self._policies, self._subject(value, answers), value),
            self._ask,
        )
        if fault:
            raise CannotTest(f"expanding {shown(shown_object(document))}: {fault}")
        return [resultant.object for _, resultant in resultants]

    def _mutated(self, document: dict[str, Any]) -> tuple[StoredSubject, tuple[Unresolved, ...]]:
        try:
            value = value_of(document, self._policies.snapshot.namespaces)
        except InvalidReview as error:
            raise CannotTest(f"reading: AdmissionReview: {error}") from None

        def attempt(answers: AnswersSoFar) -> tuple[StoredSubject, tuple[Unresolved, ...]]:
            subject = self._subject(value, answers)
            stored = mutate(self._policies, subject)
            mutated = stored.mutated
            return stored, () if mutated is None else unresolved(mutated, subject.known)

        return answered(attempt, self._ask)

    def _ask(self, requests: tuple[ProviderRequest, ...]) -> ProviderAnswers:
        """Answers; raises for a provider without answers here: its mutators cannot be applied."""
        answers = self._ask_provider(requests)
        for response in answers.values():
            if has_no_provider(response):
                raise CannotTest(response.system_error)
        return answers

    def _subject(self, value: Any, answers: AnswersSoFar) -> Subject:
        limits = Limits(time.monotonic() + self._seconds)
        return Subject(
            value,
            limits=limits,
            answers=answers.answers,
            rounds=answers.rounds,
            moment=answers.moment,
        )


def at_each(
    act: Callable[[dict[str, Any]], T], manifests: Sequence[Manifest]
) -> tuple[list[T], list[str]]:
    """Returns what a function makes of each manifest's object.

    The second list has the faults of objects, each line with the manifest's file and line.
    """
    results, faults = [], []
    for item in manifests:
        try:
            results.append(act(item.document))
        except CannotTest as error:
            faults += [f"{item.place}: {line}" for line in error.lines]
    return results, faults


def shown(obj: Mapping[str, Any]) -> str:
    """Kind, namespace and name of an object, for messages."""
    return named(obj)
