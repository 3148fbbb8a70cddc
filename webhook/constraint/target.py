"""The seam to a kind of thing under review: admission requests, or any JSON document."""

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

    ``selects`` says whether reviews of a key of the index may match at all.
    ``residual`` decides for reviews of a selected key, and is None where there
    is nothing left to decide; ``residual_key`` is equal for equal residuals.
    ``full`` decides for reviews without a key. ``in_place`` says whether reviews
    of a place (a namespace) may match at all, and is None where any may; with
    ``is_settled_by_place`` a place that it lets in leaves nothing to decide for ``residual``.
    """

    selects: Callable[[Hashable], bool]
    residual: Matcher | None
    residual_key: str
    full: Matcher
    in_place: Callable[[str], bool] | None = None
    is_settled_by_place: bool = False
    audited: CompiledMatch | None = None
    """What it is for the audit, where ``processes`` make it another; None where it is this."""


class Target(Protocol):
    """A kind of thing under review. Immutable."""

    @property
    def name(self) -> str:
        """The name that a template's ``spec.targets[].target`` gives."""

    def match_schema(self) -> dict[str, Any]:
        """The OpenAPI schema of ``spec.match``."""

    def spec_schema(self) -> Mapping[str, Any]:
        """The schemas of what else stands in ``spec``, by name, and says nothing to the framework."""

    def validate_constraint(self, constraint: Mapping[str, Any]) -> None:
        """Check what the schema cannot.

        Raises :class:`~webhook.constraint.errors.InvalidConstraint`.
        """

    def compile_match(self, match: Mapping[str, Any]) -> CompiledMatch:
        """Compile ``spec.match``; raises :class:`~webhook.constraint.errors.InvalidConstraint`."""

    def handle_review(self, value: Any, namespaces: Mapping[str, Any]) -> Review | None:
        """Bring a thing into this target's form; None for what is no business of it.

        ``namespaces`` are the known Namespaces by name. Raises
        :class:`~webhook.constraint.errors.ReviewError`.
        """

    def is_spared(self, review: Review, namespaces: Collection[str]) -> bool:
        """Whether no fault of a policy may refuse this: what a repair needs.

        ``namespaces`` are those to be spared.
        """

    def process_data(self, obj: Mapping[str, Any]) -> tuple[str, ...] | None:
        """Where in ``data.inventory`` an object lives; None for what cannot be data.

        Raises :class:`~webhook.constraint.errors.InvalidData`.
        """
