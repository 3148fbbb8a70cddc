"""The parts of a policy set beside templates and constraints: a class for each way of combining."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from webhook.admission_policies import kinds as admission_policy_kinds
from webhook.api.gvk import gvk_of
from webhook.constraint.expansion import KIND as EXPANSION_TEMPLATE
from webhook.constraint.expansion import Expansion, ExpansionSet, read_expansion_template
from webhook.exceptions.exception import KIND as EXCEPTION
from webhook.exceptions.exception import PolicyException
from webhook.exceptions.reading import read_exception
from webhook.exceptions.stage import Excusing
from webhook.external_data.provider import DataProvider, providers_by_name, read_provider
from webhook.kyverno import kinds as kyverno_kinds
from webhook.mutation.errors import InvalidMutator
from webhook.mutation.mutator import Mutator, MutatorId
from webhook.mutation.reading import empty_location_fault, read_mutator, with_defaults
from webhook.mutation.registry import Mutators
from webhook.mutation.schema import message
from webhook.policy_kinds.kind import ExtensionKey, ExtensionStanding, Part, extension_key
from webhook.review.policy_set import Exclusions, PolicySet

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping

    from webhook.constraint.snapshot import Snapshot
    from webhook.mutation.snapshot import MutationSnapshot

CONFLICT: Final = "ErrConflictingSchema"
"""The type of a conflict in a status."""

T = TypeVar("T")


class MutatorPart:
    """Mutators; all apply whose schemas do not conflict."""

    def __init__(self) -> None:
        self._mutators = Mutators()

    @property
    def value(self) -> MutationSnapshot:
        """Returns the mutators in force."""
        return self._mutators.snapshot

    @property
    def keys(self) -> Collection[ExtensionKey]:
        """Returns all keys, including those in a conflict."""
        return self._mutators.ids

    @property
    def count(self) -> int:
        """Returns the number of applied mutators."""
        return len(self.value.mutators)

    def put(self, document: Mapping[str, Any]) -> None:
        """Puts a mutator in force."""
        self._mutators.add(with_defaults(document))

    def remove(self, key: ExtensionKey) -> None:
        """Removes a mutator from force."""
        self._mutators.remove(MutatorId(*key))

    def is_applied(self, key: ExtensionKey) -> bool:
        """Whether a mutator is in force and in no conflict."""
        mutator = MutatorId(*key)
        return mutator in self._mutators and mutator not in self.value.conflicts

    def shared_faults(self) -> dict[ExtensionKey, str]:
        """Returns the conflicts, and those with previewed mutators."""
        snapshot = self.value
        return {
            (item.kind, item.name): message(parties)
            for faults in (snapshot.conflicts, snapshot.would_conflict)
            for item, parties in faults.items()
        }

    def standing(self, key: ExtensionKey, shared: str) -> ExtensionStanding:
        """Returns the standing of a mutator, with Gatekeeper's type for a conflict."""
        return ExtensionStanding(
            {"message": shared, "type": CONFLICT} if shared else None,
            self._mutators.warnings_of(MutatorId(*key)),
            is_preview=MutatorId(*key) in self._mutators.previews,
        )


class ExpansionPart:
    """ExpansionTemplates; all are in force that form no cycle."""

    def __init__(self) -> None:
        self._expansions = ExpansionSet()

    @property
    def value(self) -> Expansion:
        """Returns the ExpansionTemplates in force."""
        return self._expansions.expansion

    @property
    def keys(self) -> Collection[ExtensionKey]:
        """Returns all keys, including those in a cycle."""
        return {(EXPANSION_TEMPLATE, name) for name in self._expansions.names}

    @property
    def count(self) -> int:
        """Returns the number of templates in force."""
        return len(self.value.names)

    def put(self, document: Mapping[str, Any]) -> None:
        """Puts an ExpansionTemplate in force."""
        self._expansions.add(read_expansion_template(document))

    def remove(self, key: ExtensionKey) -> None:
        """Removes an ExpansionTemplate from force."""
        self._expansions.remove(key[1])

    def is_applied(self, key: ExtensionKey) -> bool:
        """Whether a template is in force and in no cycle."""
        return key[1] in self._expansions.names - self._expansions.faults.keys()

    def shared_faults(self) -> dict[ExtensionKey, str]:
        """Returns the cycles."""
        return {
            (EXPANSION_TEMPLATE, name): why for name, why in sorted(self._expansions.faults.items())
        }

    def standing(self, key: ExtensionKey, shared: str) -> ExtensionStanding:
        """Returns the standing without a type, as an ExpansionTemplate's status has none."""
        del key
        return ExtensionStanding({"message": shared} if shared else None)


class CollectedPart(Generic[T]):
    """Independent objects: each is read, and all are combined into one value."""

    def __init__(
        self,
        read: Callable[[Mapping[str, Any]], T],
        fold: Callable[[Iterable[T]], Any],
        key: Callable[[Mapping[str, Any]], ExtensionKey] = extension_key,
    ) -> None:
        """``fold`` makes the policy set's value from the read objects, in the order of names."""
        self._key = key
        self._read = read
        self._fold = fold
        self._objects: dict[ExtensionKey, T] = {}
        self._value: Any = None

    @property
    def value(self) -> Any:
        """Returns the value of all objects; None without objects."""
        if self._value is None and self._objects:
            self._value = self._fold(self._objects[key] for key in sorted(self._objects))
        return self._value

    @property
    def keys(self) -> Collection[ExtensionKey]:
        """Returns the keys of all objects."""
        return self._objects.keys()

    @property
    def count(self) -> int:
        """Returns the number of all objects."""
        return len(self._objects)

    def put(self, document: Mapping[str, Any]) -> None:
        """Puts a generation of an object in force."""
        self._objects[self._key(document)] = self._read(document)
        self._value = None

    def remove(self, key: ExtensionKey) -> None:
        """Removes an object from force."""
        if self._objects.pop(key, None) is not None:
            self._value = None

    def is_applied(self, key: ExtensionKey) -> bool:
        """Returns whether it is present."""
        return key in self._objects

    def shared_faults(self) -> dict[ExtensionKey, str]:
        """Returns no faults, as the objects are independent."""
        return {}

    def standing(self, key: ExtensionKey, shared: str) -> ExtensionStanding:
        """Returns the standing of an independent object."""
        del key, shared
        return ExtensionStanding()


class ProviderPart(CollectedPart[DataProvider]):
    """Providers, by name."""

    def __init__(self) -> None:
        super().__init__(read_provider, providers_by_name)

    def standing(self, key: ExtensionKey, shared: str) -> ExtensionStanding:
        """Returns the standing of a Provider, with its probable mistakes."""
        del shared
        known = self._objects.get(key)
        return ExtensionStanding(warnings=() if known is None else known.warnings)


def admission_policy_part() -> CollectedPart[Any]:
    """Returns the part of API server policies and their bindings."""
    return CollectedPart(read_admission_policy, _admission_policies)


def read_admission_policy(document: Mapping[str, Any]) -> Any:
    """Reads an API server policy, a binding, or a SubjectAccessReview with an answer."""
    # Imported here, as they load CEL, which commands without such policies do not need.
    from webhook.admission_policies import authorizer, reading  # noqa: PLC0415

    readers: dict[str, Callable[[Mapping[str, Any]], Any]] = {
        admission_policy_kinds.POLICY: reading.read_policy,
        admission_policy_kinds.BINDING: reading.read_binding,
        admission_policy_kinds.MUTATING_POLICY: reading.read_mutating_policy,
        admission_policy_kinds.MUTATING_BINDING: reading.read_mutating_binding,
        admission_policy_kinds.ANSWER: authorizer.read_answer,
    }
    return readers[gvk_of(document).kind](document)


def _admission_policies(items: Iterable[Any]) -> Any:
    from webhook.review.admission_policies import AdmissionPolicies  # noqa: PLC0415  # loads CEL

    return AdmissionPolicies(items)


class KyvernoPart(CollectedPart[Any]):
    """Kyverno's policies and PolicyExceptions. A refused exception excuses nothing.

    Policies that are not ``enforced`` apply to audits and reports, but not to admissions.
    """

    def __init__(self, *, enforced: bool = True) -> None:
        fold = partial(_kyverno_policies, enforced=enforced)
        super().__init__(read_kyverno_policy, fold, _key_of_kyverno)

    def put(self, document: Mapping[str, Any]) -> None:
        """Puts a generation in force; removes the earlier one of a refused exception."""
        if gvk_of(document).kind == kyverno_kinds.EXCEPTION:
            self.remove(_key_of_kyverno(document))
        super().put(document)


def read_kyverno_policy(document: Mapping[str, Any]) -> Any:
    """Reads a policy or an exception."""
    from webhook.kyverno.validating_policy import read_kyverno  # noqa: PLC0415  # loads CEL

    return read_kyverno(dict(document))


def _kyverno_policies(items: Iterable[Any], *, enforced: bool) -> Any:
    from webhook.review.kyverno_policies import KyvernoPolicies  # noqa: PLC0415  # loads CEL

    return KyvernoPolicies(items, enforced=enforced)


def _key_of_kyverno(document: Mapping[str, Any]) -> ExtensionKey:
    is_namespaced = gvk_of(document).kind not in kyverno_kinds.CLUSTER_KINDS
    kind, name = extension_key(document, namespaced=is_namespaced)
    return kyverno_kinds.KNOWN_AS.get(kind, kind), name


class ExceptionPart(CollectedPart[PolicyException]):
    """Exceptions of both kinds. A refused one excuses nothing, whatever it did before.

    A refused policy's earlier generation stays in force, so that no object gets past it. For
    exceptions that would let objects past, and newly started replicas would not know it.
    """

    def __init__(self) -> None:
        super().__init__(read_exception, Excusing, _key_of_exception)

    def put(self, document: Mapping[str, Any]) -> None:
        """Puts a generation in force; removes the earlier one if it is refused."""
        self.remove(_key_of_exception(document))
        super().put(document)


def _key_of_exception(document: Mapping[str, Any]) -> ExtensionKey:
    return extension_key(document, namespaced=gvk_of(document).kind == EXCEPTION)


def read_new_mutator(document: Mapping[str, Any]) -> Mutator:
    """Reads a new mutator; refuses one with an empty location, too."""
    mutator = read_mutator(with_defaults(document))
    if fault := empty_location_fault(mutator):
        raise InvalidMutator(fault)
    return mutator


def warnings_of_mutator(document: Mapping[str, Any]) -> tuple[str, ...]:
    """Returns the probable mistakes of a mutator at its admission."""
    return read_new_mutator(document).warnings


def policy_set(snapshot: Snapshot, exclusions: Exclusions, values: Mapping[Part, Any]) -> PolicySet:
    """Returns all deciding policies; ``values`` are the extensions' values by part."""
    filled = {
        part.fills: value
        for part, value in values.items()
        if part.fills != "stages" and value is not None
    }
    stages = tuple(
        value for part, value in values.items() if part.fills == "stages" and value is not None
    )
    return PolicySet(snapshot, exclusions=exclusions, stages=stages, **filled)
