"""Manifests with the mutators and ExpansionTemplates among them applied."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from webhook.api.admission import InvalidReview
from webhook.api.encoding import decode, encode
from webhook.api.gvk import name_of
from webhook.cli.formats.document import as_json, as_yaml
from webhook.cli.sources import CannotTest
from webhook.constraint.limits import Limits
from webhook.constraint.snapshot import Snapshot
from webhook.mutation.annotations import names_of
from webhook.policies.extensions import Extensions
from webhook.policy_kinds.table import EXPANSION_TEMPLATES, MUTATORS
from webhook.review.expanding import expand_value
from webhook.review.mutating import EXTENSION_SECONDS, mutate, named
from webhook.review.policy_set import PolicySet
from webhook.review.subject import Subject, object_of_value, shown_object, value_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from webhook.constraint.expansion import Expansion
    from webhook.mutation.snapshot import MutationSnapshot
    from webhook.policies.manifests import Manifest

DEFAULT_NAMESPACE: Final[dict[str, Any]] = {
    "apiVersion": "v1",
    "kind": "Namespace",
    "metadata": {"name": "default"},
}


def read_mutations(manifests: Sequence[Manifest]) -> MutationSnapshot:
    """The mutators among manifests; raises :class:`~webhook.cli.sources.CannotTest`."""
    return _loaded([item for item in manifests if item.gvk.group == MUTATORS[0].group]).mutations


def read_expansion(manifests: Sequence[Manifest]) -> Expansion:
    """The ExpansionTemplates among manifests; raises :class:`~webhook.cli.sources.CannotTest`."""
    return _loaded(
        [item for item in manifests if item.gvk.group == EXPANSION_TEMPLATES.group]
    ).expansion


def _loaded(manifests: list[Manifest]) -> Extensions:
    extensions = Extensions()
    if faults := extensions.load(manifests):
        raise CannotTest(*map(str, faults))
    return extensions


def is_object(manifest: Manifest) -> bool:
    """Whether a manifest is something to mutate: no policy of any kind."""
    return not manifest.gvk.group.endswith(".gatekeeper.sh")


def as_manifests(objects: Sequence[dict[str, Any]], output: str) -> str:
    """YAML documents, or with ``json`` one array, without a newline at the end."""
    # Values that several objects share are written out in each.
    copies = decode(encode(list(objects)))
    return as_json(copies) if output == "json" else "\n---\n".join(map(as_yaml, copies))


def namespaces_of(manifests: Sequence[Manifest]) -> dict[str, Mapping[str, Any]]:
    """The Namespaces by name, with one called default."""
    by_name: dict[str, Mapping[str, Any]] = {"default": DEFAULT_NAMESPACE}
    for item in manifests:
        if item.gvk.group_kind == ("", "Namespace"):
            by_name[name_of(item.document)] = item.document
    return by_name


class MutatedObject(NamedTuple):
    """An object, what mutators made of it, and the policies that did."""

    before: dict[str, Any]
    after: dict[str, Any]
    mutators: str


class Extending:
    """Applies mutators and ExpansionTemplates to manifests, one by one.

    An AdmissionReview stands for the object of the request that it holds.
    """

    def __init__(
        self,
        mutations: MutationSnapshot,
        expansion: Expansion,
        namespaces: Mapping[str, Mapping[str, Any]],
        seconds: float = EXTENSION_SECONDS,
    ) -> None:
        """``seconds`` are for each object."""
        self._seconds = seconds
        self._policies = PolicySet(
            Snapshot(targets={}, namespaces=namespaces), mutations, expansion
        )

    def mutate(self, document: dict[str, Any]) -> MutatedObject:
        """What mutators make of a manifest's object; raises :class:`CannotTest`."""
        value, mutated, fault = self._mutated(document)
        before = shown_object(document)
        after = object_of_value(value) or before
        if fault:
            raise CannotTest(fault)
        return MutatedObject(before, after, "" if mutated is None else names_of(mutated.passes))

    def implied(self, document: dict[str, Any]) -> list[dict[str, Any]]:
        """What a manifest's object implies, mutated; raises :class:`CannotTest`."""
        value, _, fault = self._mutated(document)
        if fault:
            raise CannotTest(fault)
        made, fault = expand_value(self._policies, self._subject(value), value)
        if fault:
            raise CannotTest(f"expanding {shown(shown_object(document))}: {fault}")
        return [one.object for _, one in made]

    def _mutated(self, document: dict[str, Any]) -> tuple[Any, Any, str]:
        try:
            value = value_of(document, self._policies.snapshot.namespaces)
        except InvalidReview as error:
            raise CannotTest(f"reading: AdmissionReview: {error}") from None
        return mutate(self._policies, self._subject(value))

    def _subject(self, value: Any) -> Subject:
        return Subject(value, limits=Limits(time.monotonic() + self._seconds))


def shown(obj: Mapping[str, Any]) -> str:
    """Kind, namespace and name of an object, for messages."""
    return named(obj)
