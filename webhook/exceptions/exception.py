"""A compiled exception: its objects, its effect, and its period."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, Any, Final

from webhook.api import names
from webhook.constraint.errors import ConstraintFrameworkError
from webhook.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from webhook.constraint.match import MatchSubject, View
    from webhook.constraint.result import Excuse, Result
    from webhook.exceptions.parts import Parts

GROUP: Final = "waddle.dev"
API_VERSION: Final = "v1alpha1"
KIND: Final = "PolicyException"
CLUSTER_KIND: Final = "ClusterPolicyException"
KINDS: Final = (KIND, CLUSTER_KIND)

GROUP_KIND: Final = names.CONSTRAINT_GROUP
"""The kind of constraint that is no template's, in :data:`GROUP`, too."""

ANY: Final = "*"
"""The name of every constraint of a kind."""

ANNOTATION: Final = "waddle.dev/exceptions"
"""On a constraint: which exceptions it allows."""

SOON_SECONDS: Final = 3600.0
"""An exception that begins within this is prepared for: what the API server enforces by itself is
withdrawn first, which takes as long as its caches do."""


class InvalidException(ConstraintFrameworkError):
    """An exception that cannot be used."""


@dataclass(frozen=True, slots=True)
class SubjectTests:
    """The requests that an exception is for, by their users and groups."""

    user: Callable[[str], bool]
    group: Callable[[str], bool]

    def includes(self, info: Mapping[str, Any]) -> bool:
        """Returns whether a user is among the subjects."""
        groups = info.get("groups") or ()
        return self.user(info.get("username") or "") or any(map(self.group, groups))


@dataclass(frozen=True, slots=True)
class PolicyException:
    """One exception, compiled.

    ``namespace`` is its own, empty for one of the cluster. ``constraints`` are kinds with names, of
    which :data:`ANY` is every one. It is found by the only namespace and name that its match
    selects, ``place`` and ``object_name``, or by how names begin; ``name_pattern`` is a pattern by
    which it is not found. ``matches`` asks for the rest, None for nothing.
    """

    excuse: Excuse
    constraints: tuple[tuple[str, str], ...]
    begins: float
    ends: float
    matches: Callable[[View, MatchSubject], bool] | None = field(default=None, repr=False)
    place: str | None = None
    object_name: str = ""
    name_beginning: str = ""
    name_pattern: str = ""
    subjects: SubjectTests | None = field(default=None, repr=False)
    violation: Callable[[Result], bool] | None = field(default=None, repr=False)
    parts: Parts | None = field(default=None, repr=False)
    conditions: Callable[[dict[str, Any]], bool] | None = field(default=None, repr=False)
    """Raises :class:`~webhook.cel.errors.EvaluationError` if it cannot be decided."""

    @property
    def namespace(self) -> str:
        """Its own."""
        return self.excuse.namespace

    def is_soon(self, now: float) -> bool:
        """Whether it is in force, or will be within :data:`SOON_SECONDS`."""
        return self.begins - SOON_SECONDS <= now < self.ends

    def names(self, kind: str, name: str) -> bool:
        """Whether it is for a constraint."""
        return (kind, name) in self.constraints or (kind, ANY) in self.constraints
