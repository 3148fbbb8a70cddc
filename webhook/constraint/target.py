"""A target: a kind of value under review, with its matching and its form for policies.

A template names its target. ``admission.k8s.gatekeeper.sh`` reviews admission requests and objects;
document targets review JSON. As in OPA's frameworks, a target defines ``spec.match`` and turns a
value into the ``input.review`` of policies.
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

    The index of a snapshot groups reviews by key (group and kind). A match has up to three steps,
    so that most constraints are decided once for a key or a namespace:

    1. ``selects``: whether reviews with this key may match at all.
    2. ``admits_namespace``: whether reviews of this namespace may match; None if all may. With
       ``is_decided_by_namespace`` a namespace that may match does match.
    3. ``residual``: the other criteria, None without any. ``residual_key`` is equal for equal ones.

    ``full`` is the whole match, for reviews without a key.
    """

    selects: Callable[[Hashable], bool]
    residual: Matcher | None
    residual_key: str
    full: Matcher
    admits_namespace: Callable[[str], bool] | None = None
    is_decided_by_namespace: bool = False
    audited: CompiledMatch | None = None
    """The match of the audit, if ``processes`` make it differ; None if it is the same."""


class Target(Protocol):
    """A kind of value under review. Immutable."""

    @property
    def name(self) -> str:
        """The name that a template's ``spec.targets[].target`` gives."""

    def match_schema(self) -> dict[str, Any]:
        """Returns the OpenAPI schema of ``spec.match``."""

    def spec_schema(self) -> Mapping[str, Any]:
        """Returns the schemas of further fields of ``spec``, by name, that only this target reads."""

    def validate_constraint(self, constraint: Mapping[str, Any]) -> None:
        """Checks a constraint beyond its schema.

        Raises :class:`~webhook.constraint.errors.InvalidConstraint`.
        """

    def compile_match(self, match: Mapping[str, Any]) -> CompiledMatch:
        """Compiles ``spec.match``; raises :class:`~webhook.constraint.errors.InvalidConstraint`."""

    def key_of(self, value: Any) -> Hashable | None:
        """Returns the key of a value's review, where it is known without making the review."""

    def handle_review(self, value: Any, namespaces: Mapping[str, Any]) -> Review | None:
        """Returns the review of a value; None for a value of another target.

        ``namespaces`` are the known Namespaces by name. Raises
        :class:`~webhook.constraint.errors.ReviewError`.
        """

    def is_spared(self, review: Review, namespaces: Collection[str]) -> bool:
        """Whether a policy fault must not refuse this review, because repairs need it.

        ``namespaces`` are the namespaces that are spared.
        """

    def process_data(self, obj: Mapping[str, Any]) -> tuple[str, ...] | None:
        """Returns the path of an object in ``data.inventory``; None if it cannot be data.

        Raises :class:`~webhook.constraint.errors.InvalidData`.
        """
