"""The two answers of a walk: what was found, or what it needs first."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from webhook.external_data.exchange import ROUNDS_MAX, answering
from webhook.mutation.annotations import names_of
from webhook.mutation.external import unresolved

if TYPE_CHECKING:
    from webhook.constraint.result import Responses
    from webhook.constraint.review import AugmentedObject, AugmentedReview
    from webhook.external_data.exchange import ProviderRequest
    from webhook.mutation.external import Unresolved
    from webhook.mutation.plan import Mutated


class StoredSubject(NamedTuple):
    """A subject with the object that would be stored as its ``value``.

    ``mutated`` is what mutators did, ``fault`` why they could not. ``changed_by`` are policies of the
    API server's own that changed it, too, and ``ignored`` what these are told to pass over.
    """

    value: AugmentedReview | AugmentedObject | Any
    mutated: Mutated | None = None
    fault: str = ""
    changed_by: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()

    @property
    def names(self) -> str:
        """Everyone who changed it."""
        mutator_names = names_of(self.mutated.passes) if self.mutated else ""
        return ", ".join(filter(None, (*self.changed_by, mutator_names)))


class Found(NamedTuple):
    """The findings of the policies about a subject.

    ``object`` is what was reviewed: as mutators left it. ``excluded`` is the namespace by which
    Config spares it, so that nothing was asked; ``released`` says that it is only let go. ``unmutated`` and ``unexpanded`` say why mutators
    could not be applied, or what it implies could not be told: then what was found is not all.
    """

    responses: Responses
    object: dict[str, Any] | None = None
    mutated: Mutated | None = None
    excluded: str | None = None
    unmutated: str = ""
    unexpanded: str = ""
    implied: tuple[dict[str, Any], ...] = ()
    """The objects that it implies."""
    released: bool = False
    stored: StoredSubject | None = None
    """The object as mutators and the API server's own policies leave it; None where none was
    asked."""

    @property
    def mutators(self) -> str:
        """Everyone who changed it."""
        return "" if self.stored is None else self.stored.names

    @property
    def remarks(self) -> tuple[str, ...]:
        """Return the remarks of policies beside their verdicts."""
        ignored = () if self.stored is None else self.stored.ignored
        return (*ignored, *map(str, self.responses.remarks))

    @property
    def unresolved(self) -> tuple[Unresolved, ...]:
        """The fields of the object for which no provider gave a value."""
        if self.mutated is None:
            return ()
        return unresolved(self.mutated, answering(self.responses.answers or {}, ROUNDS_MAX))

    @property
    def faults(self) -> tuple[str, ...]:
        """Why what was found is not all that there is, by mutators and expansions."""
        return tuple(filter(None, (self.unmutated, self.unexpanded)))


class Needs(NamedTuple):
    """The things to fetch before a walk can go on, or that it needs more time elsewhere.

    It is a Namespace, or answers of providers: requests are asked at once, beside each other.
    """

    namespace: str = ""
    time: bool = False
    requests: tuple[ProviderRequest, ...] = ()
