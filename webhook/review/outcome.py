"""What a walk answers: what was found, or what it needs first."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from webhook.constraint.result import Responses
    from webhook.mutation.plan import Mutated


class Found(NamedTuple):
    """What the policies say of a subject.

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

    @property
    def faults(self) -> tuple[str, ...]:
        """Why what was found is not all that there is, by mutators and expansions."""
        return tuple(filter(None, (self.unmutated, self.unexpanded)))


class Needs(NamedTuple):
    """What has to be fetched before a walk can go on: a Namespace, or more time elsewhere."""

    namespace: str = ""
    time: bool = False
