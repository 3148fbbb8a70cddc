"""A target: how one kind of thing under review is matched and put to policies.

A template names its target. ``admission.k8s.gatekeeper.sh`` reviews admission requests and objects;
the targets of documents review JSON. As in OPA's frameworks, a target says what ``spec.match`` means
and turns a thing into the ``input.review`` that policies read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from webhook.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Hashable, Mapping

    from webhook.constraint.review import Review

    Matcher: TypeAlias = Callable[[Review], bool]
    """Whether a review matches; raises :class:`~webhook.constraint.errors.MatchError`."""


@dataclass(frozen=True, slots=True)
class CompiledMatch:
    """A constraint's ``spec.match``, compiled once when the constraint is added.

    The index of a snapshot has reviews by a key (group and kind). A match is decided in up to three
    steps, so that most constraints are settled once for a key or a namespace:

    1. ``selects``: whether reviews with this key may match at all.
    2. ``in_place``: whether reviews of this namespace may; None where any may. With
       ``is_settled_by_place`` a namespace that may match does match.
    3. ``residual``: the rest, None where nothing is left. ``residual_key`` is equal for equal rests.

    ``full`` is the whole match, for reviews without a key.
    """

    selects: Callable[[Hashable], bool]
    residual: Matcher | None
    residual_key: str
    full: Matcher
    in_place: Callable[[str], bool] | None = None
    is_settled_by_place: bool = False
    audited: CompiledMatch | None = None
    """The match at the audit, where ``processes`` make it differ; None where it is this one."""


class Target(Protocol):
    """A kind of thing under review. Immutable."""

    @property
    def name(self) -> str:
        """The name that a template's ``spec.targets[].target`` gives."""

    def match_schema(self) -> dict[str, Any]:
        """The OpenAPI schema of ``spec.match``."""

    def spec_schema(self) -> Mapping[str, Any]:
        """The schemas of further fields of ``spec``, by name, that only this target reads."""

    def validate_constraint(self, constraint: Mapping[str, Any]) -> None:
        """Check what a schema cannot express.

        Raises :class:`~webhook.constraint.errors.InvalidConstraint`.
        """

    def compile_match(self, match: Mapping[str, Any]) -> CompiledMatch:
        """Compile ``spec.match``; raises :class:`~webhook.constraint.errors.InvalidConstraint`."""

    def handle_review(self, value: Any, namespaces: Mapping[str, Any]) -> Review | None:
        """Return the review of a thing; None for a thing of another target.

        ``namespaces`` are the known Namespaces by name. Raises
        :class:`~webhook.constraint.errors.ReviewError`.
        """

    def is_spared(self, review: Review, namespaces: Collection[str]) -> bool:
        """Whether a faulty policy must not refuse this: an administrator needs it for the repair.

        ``namespaces`` are the namespaces to spare.
        """

    def process_data(self, obj: Mapping[str, Any]) -> tuple[str, ...] | None:
        """Return the path of an object in ``data.inventory``; None for what cannot be data.

        Raises :class:`~webhook.constraint.errors.InvalidData`.
        """
