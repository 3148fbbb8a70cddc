"""A compiled exception: its objects, its effect, and its period."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, Any, Final

from webhook.api import names
from webhook.constraint.errors import ConstraintFrameworkError
from webhook.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from webhook.constraint.limits import Limits
    from webhook.constraint.match import MatchSubject, View
    from webhook.constraint.result import Excuse, Result
    from webhook.exceptions.parts import Parts

GROUP: Final = "waddle.dev"
API_VERSION: Final = "v1alpha1"
KIND: Final = "PolicyException"
CLUSTER_KIND: Final = "ClusterPolicyException"
KINDS: Final = (KIND, CLUSTER_KIND)

GROUP_KIND: Final = names.CONSTRAINT_GROUP
"""The kind of constraint groups, which have no template; their group is :data:`GROUP`."""

ANY: Final = "*"
"""The name that stands for every constraint of a kind."""

GENERATED_BEGINNING_MAX: Final = 58
"""The longest beginning of a generated name: 63 without 5 random letters (apiserver's names)."""

SOON_SECONDS: Final = 3600.0
"""The lead time of an exception: the API server's own policy is withdrawn this long before the
exception begins, as the API server's caches take time."""


class InvalidException(ConstraintFrameworkError):
    """An exception is unusable; the text says why."""


@dataclass(frozen=True, slots=True)
class SubjectTests:
    """The users and groups whose requests an exception covers."""

    user: Callable[[str], bool]
    group: Callable[[str], bool]

    def includes(self, info: Mapping[str, Any]) -> bool:
        """Returns whether a user is among the subjects."""
        groups = info.get("groups") or ()
        return self.user(info.get("username") or "") or any(map(self.group, groups))


@dataclass(frozen=True, slots=True)
class PolicyException:
    """A compiled exception.

    ``namespace`` is its own; empty for a ClusterPolicyException. ``constraints`` are kinds with
    names; the name :data:`ANY` means every constraint of a kind. An index finds it by the only
    namespace and name that it matches, ``place`` and ``object_name``, or by ``name_beginning``;
    other patterns are in ``name_pattern``. ``matches`` tests the rest of its match; None for an
    empty rest.
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
    conditions: Callable[[dict[str, Any], Limits], bool] | None = field(default=None, repr=False)
    """Raises :class:`~webhook.cel.errors.EvaluationError` if it cannot be decided, or not in time."""
    generation: int = field(default=0, repr=False)
    """The generation of the object; 0 in files."""

    @property
    def namespace(self) -> str:
        """Returns its own namespace."""
        return self.excuse.namespace

    def is_soon(self, now: float) -> bool:
        """Whether it is in force, or will be within :data:`SOON_SECONDS`."""
        return self.begins - SOON_SECONDS <= now < self.ends

    def names(self, kind: str, name: str) -> bool:
        """Whether it names a constraint."""
        return (kind, name) in self.constraints or (kind, ANY) in self.constraints
