"""The target ``admission.k8s.gatekeeper.sh``: admission requests, and objects outside one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from webhook.api.encoding import encode
from webhook.api.gvk import gvk_of, name_of, namespace_of
from webhook.api.names import OURS
from webhook.constraint.errors import InvalidData, ReviewError
from webhook.constraint.match import MatchSubject, View, compile_match, namespace_of_subject
from webhook.constraint.placement import DEFAULT
from webhook.constraint.review import AugmentedObject, AugmentedReview, Document, Review
from webhook.constraint.selector_validation import validate_selectors
from webhook.constraint.targets.match_schema import MATCH_SCHEMA

if TYPE_CHECKING:
    from collections.abc import Collection, Hashable, Mapping

    from webhook.api.gvk import GroupVersionKind
    from webhook.constraint.review import ReviewSource
    from webhook.constraint.target import CompiledMatch

NAME: Final = "admission.k8s.gatekeeper.sh"


class AdmissionTarget:
    """Reviews :class:`AugmentedReview` and :class:`AugmentedObject`."""

    @property
    def name(self) -> str:
        """The target's name in templates."""
        return NAME

    def match_schema(self) -> dict[str, Any]:
        """Returns the schema of ``spec.match``."""
        return MATCH_SCHEMA

    def spec_schema(self) -> Mapping[str, Any]:
        """Returns no further fields."""
        return {}

    def validate_constraint(self, constraint: Mapping[str, Any]) -> None:
        """Checks the selectors beyond their schema."""
        validate_selectors(constraint)

    def compile_match(self, match: Mapping[str, Any]) -> CompiledMatch:
        """Compiles ``spec.match``."""
        return compile_match(match)

    def key_of(self, value: Any) -> Hashable | None:
        """Returns group and kind of a request's or an object's review; None if it has none.

        As in :meth:`handle_review`, on DELETE the old object also stands for the object.
        """
        if type(value) is AugmentedReview:
            request = value.request
            old = request.old_object
            obj = old if request.operation == "DELETE" else request.object
        elif type(value) is AugmentedObject:
            obj, old = value.object, None
        else:
            return None
        if obj is None:
            return None
        group, _, kind = gvk = gvk_of(obj)
        if old is not None and old is not obj and gvk_of(old).group_kind != gvk.group_kind:
            return None
        return (group, kind) if kind else None

    def handle_review(self, value: Any, namespaces: Mapping[str, Any]) -> Review | None:
        """Returns the review of a request or an object.

        On DELETE the old object also stands for the object. The Namespace is the given one, else
        the known one of the review's namespace; without one, policies see ``{}`` (the frameworks'
        driver passes OPA an empty map).
        """
        if type(value) is AugmentedReview:
            request = value.request
            document = dict(request.document)
            namespace = value.namespace or namespaces.get(request.namespace)
            document["namespaceObject"] = _seen(namespace)
            operation: str | None = request.operation
            size, gvk = request.size, None
        elif type(value) is AugmentedObject or (type(value) is Document and value.target == NAME):
            if type(value) is Document:  # another target recognised it as a Kubernetes object
                value = AugmentedObject(value.value)
            gvk = gvk_of(value.object)
            document = _request_of(value, gvk)
            namespace = value.namespace
            document["namespaceObject"] = _seen(namespace)
            if namespace is None:
                namespace = namespaces.get(document.get("namespace", ""))
            operation, size = value.operation, value.size
        else:
            return None
        if operation == "DELETE":
            if document["oldObject"] is None:
                raise ReviewError("oldObject cannot be nil for DELETE operations")
            document["object"] = document["oldObject"]
        return _review(document, namespace, value.source, operation, size, gvk)

    def is_spared(self, review: Review, namespaces: Collection[str]) -> bool:
        """Whether a review is about a policy, a spared namespace or an object in one."""
        document = review.document
        kind = document["kind"]
        if kind.get("group", "").endswith((".gatekeeper.sh", OURS)):
            return True
        namespace = document.get("namespace", "")
        if (kind.get("group", ""), kind.get("kind")) == ("", "Namespace"):
            namespace = document.get("name", "")
        return namespace in namespaces

    def process_data(self, obj: Mapping[str, Any]) -> tuple[str, ...] | None:
        """Returns the path ``cluster/…`` or ``namespace/…``; raises :class:`InvalidData`."""
        gvk, name, namespace = gvk_of(obj), name_of(obj), namespace_of(obj)
        if not gvk.version:
            raise InvalidData(f"invalid request object: resource {name} has no version")
        if not gvk.kind:
            raise InvalidData(f"invalid request object: resource {name} has no kind")
        if namespace:
            return "namespace", namespace, gvk.group_version, gvk.kind, name
        return "cluster", gvk.group_version, gvk.kind, name


def subject_of(
    value: AugmentedReview | AugmentedObject, view: View, namespaces: Mapping[str, Any]
) -> MatchSubject:
    """Returns the input of matchers for one object, with its Namespace."""
    if isinstance(value, AugmentedReview):
        place = value.request.namespace
        namespace = value.namespace or namespaces.get(place)
    else:
        place = namespace_of(value.object)
        given = value.namespace
        namespace = namespaces.get(place) if given is None else given
    return MatchSubject((view,), namespace, value.source, request_namespace=place)


def _request_of(value: AugmentedObject, gvk: GroupVersionKind) -> dict[str, Any]:
    """Returns the request that would carry this object, as Go encodes it."""
    obj, operation = value.object, value.operation
    deleted = operation == "DELETE"
    group, version, kind = gvk
    document: dict[str, Any] = {
        "uid": "",
        "kind": {"group": group, "version": version, "kind": kind},
        "resource": (
            {"group": group, "version": version, "resource": value.resource}
            if value.resource
            else {"group": "", "version": "", "resource": ""}
        ),
        "operation": operation,
        "userInfo": {},
        "object": None if deleted else obj,
        "oldObject": obj if deleted else None,
        "options": None,
    }
    metadata = obj.get("metadata")
    if type(metadata) is dict:
        if (name := metadata.get("name")) and type(name) is str:
            document["name"] = name
        if (namespace := metadata.get("namespace")) and type(namespace) is str:
            document["namespace"] = namespace
    return document


def _seen(namespace: Mapping[str, Any] | None) -> Mapping[str, Any]:
    """Returns the Namespace that policies see; empty without its manifest, as in gator."""
    return {} if namespace is None or namespace is DEFAULT else namespace


def _review(
    document: dict[str, Any],
    namespace: Mapping[str, Any] | None,
    source: ReviewSource,
    operation: str | None,
    size: int,
    gvk: GroupVersionKind | None,
) -> Review:
    """Returns a review; ``gvk`` is the object's kind, if known."""
    obj, old = document["object"], document["oldObject"]
    named = document.get("namespace") or ""
    if obj is not None and (old is None or old is obj):
        gvk = gvk_of(obj) if gvk is None else gvk
        if gvk.kind:  # As nearly always.
            subject = MatchSubject((View(obj, gvk),), namespace, source, request_namespace=named)
            place = namespace_of_subject(subject)
            return Review(NAME, document, (gvk.group, gvk.kind), operation, subject, place, size)
    views: list[View] = []
    fault = ""
    if obj is not None:
        fault = _add_view(views, obj, "object", gvk)
    if old is not None and old is not obj:
        fault = fault or _add_view(views, old, "oldObject", None)
    if not views and not fault:
        fault = "invalid request object: neither object nor old object are defined"
    key = None
    if not fault:
        first, last = views[0], views[-1]
        if first.kind == last.kind and first.group == last.group:
            key = (first.group, first.kind)
    subject = MatchSubject(tuple(views), namespace, source, fault, named)
    return Review(NAME, document, key, operation, subject, namespace_of_subject(subject), size)


SHOWN_CHARACTERS: Final = 256
"""The most characters of an object in a message that each constraint may repeat."""


def _shown(value: dict[str, Any], characters: int = SHOWN_CHARACTERS) -> str:
    """Returns an object's fields without values, which may be secret.

    About this many ``characters``.
    """
    parts: list[str] = []
    for name, inner in value.items():
        if characters <= 0:
            parts.append("…")
            break
        part = f"{encode(name[:characters]).decode()}:"
        characters -= len(part) + 1
        parts.append(part + (_shown(inner, characters) if type(inner) is dict else "…"))
    return f"{{{','.join(parts)}}}"


def _add_view(
    views: list[View], obj: dict[str, Any], field: str, gvk: GroupVersionKind | None
) -> str:
    """Adds the view of an object; returns why that fails, else ``""``.

    The API machinery decodes no object without a kind.
    """
    gvk = gvk_of(obj) if gvk is None else gvk
    if not gvk.kind:
        return f"invalid request object: failed to unmarshal gkReview {field} {_shown(obj)}"
    views.append(View(obj, gvk))
    return ""
