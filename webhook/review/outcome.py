"""The two results of a walk: findings, or the data to fetch first."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from webhook.external_data.exchange import ROUNDS_MAX, ProviderRequest, answering
from webhook.mutation.annotations import names_of
from webhook.mutation.external import Unresolved, unresolved

if TYPE_CHECKING:
    from collections.abc import Callable

    from webhook.constraint.limits import Limits
    from webhook.constraint.result import Responses
    from webhook.constraint.review import AugmentedObject, AugmentedReview
    from webhook.mutation.plan import Mutated


class StoredSubject(NamedTuple):
    """A subject with the object that would be stored as its ``value``.

    ``mutated`` is the result of mutators; ``fault`` is why they could not be applied.
    ``changed_by`` are policies of the API server or Kyverno that changed it, and ``ignored`` their
    faults with failurePolicy Ignore.
    """

    value: AugmentedReview | AugmentedObject | Any
    mutated: Mutated | None = None
    fault: str = ""
    changed_by: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()

    @property
    def names(self) -> str:
        """Returns the names of all policies that changed it."""
        mutator_names = names_of(self.mutated.passes) if self.mutated else ""
        return ", ".join(filter(None, (*self.changed_by, mutator_names)))


class Found(NamedTuple):
    """The findings about a subject.

    ``object`` is the object that was reviewed, after mutators. ``excluded`` is its namespace if
    Config excludes it, and then nothing was evaluated; ``released`` is whether the update only lets
    the object go. If ``unmutated`` or ``unexpanded`` has a reason, the findings are incomplete.
    """

    responses: Responses
    object: dict[str, Any] | None = None
    mutated: Mutated | None = None
    excluded: str | None = None
    unmutated: str = ""
    unexpanded: str = ""
    implied: tuple[dict[str, Any], ...] = ()
    """The objects that ExpansionTemplates generated."""
    released: bool = False
    stored: StoredSubject | None = None
    """The object after all mutation; None if mutation was not requested."""

    @property
    def mutators(self) -> str:
        """Returns the names of all policies that changed the object."""
        return "" if self.stored is None else self.stored.names

    @property
    def remarks(self) -> tuple[str, ...]:
        """Returns the policies' remarks, which do not change the verdict."""
        ignored = () if self.stored is None else self.stored.ignored
        return (*ignored, *map(str, self.responses.remarks))

    @property
    def unresolved(self) -> tuple[Unresolved, ...]:
        """Returns the fields of the object for which no provider gave a value."""
        if self.mutated is None:
            return ()
        return unresolved(self.mutated, answering(self.responses.answers or {}, ROUNDS_MAX))

    @property
    def faults(self) -> tuple[str, ...]:
        """Returns why the findings are incomplete."""
        return tuple(filter(None, (self.unmutated, self.unexpanded)))


Continuation: TypeAlias = "Callable[[Limits, int], Found | Needs]"
"""Continues a walk by new limits, after so many rounds of provider requests."""


class Needs(NamedTuple):
    """The data that a walk needs before it can continue.

    A Namespace, provider responses, or more time.

    The provider requests of one value are independent and can be sent at once. ``again`` continues
    with the responses at the fourth stage; None if an earlier stage made the requests.
    """

    namespace: str = ""
    time: bool = False
    requests: tuple[ProviderRequest, ...] = ()
    again: Continuation | None = None
