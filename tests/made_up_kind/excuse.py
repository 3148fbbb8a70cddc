"""An Excuse: a namespace of which nothing is said, whatever is in it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from webhook.api.gvk import name_of
from webhook.api.pod_status import StatusKind
from webhook.constraint.errors import ConstraintFrameworkError
from webhook.policy_kinds.kind import PolicyKind
from webhook.policy_kinds.table import collected
from webhook.review.subject import object_of_value

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from webhook.constraint.result import Responses
    from webhook.review.policy_set import Examination, ResultStage


class InvalidExcuse(ConstraintFrameworkError):
    """An Excuse that cannot be used."""


def read_excuse(document: Mapping[str, Any]) -> str:
    """The namespace that it excuses."""
    place = document.get("spec", {}).get("namespace")
    if type(place) is not str or not place:
        raise InvalidExcuse(f"Excuse {name_of(document)} has no spec.namespace")
    return place


def excusing(places: Iterable[str]) -> ResultStage:
    """Passes over what was found in these namespaces."""
    excused = frozenset(places)

    def excuse(examined: Examination, responses: Responses) -> Responses:
        obj: dict[str, Any] = object_of_value(examined.value) or {}
        place = obj["metadata"].get("namespace", "")
        return responses._replace(results=()) if place in excused else responses

    return excuse


EXCUSES = PolicyKind(
    "extension",
    "excuses.example.com",
    "Excuse",
    ("v1",),
    "excuses",
    StatusKind(
        "ExcusePodStatus", "excusepodstatuses", "excuseUID", "excuse-name", counted_as="excuse"
    ),
    collected("excuse", read_excuse, excusing),
    read_excuse,
)
