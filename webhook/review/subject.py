"""The subject of a review: an object, request or document with the options of the review."""

from __future__ import annotations

from dataclasses import field, replace
from typing import TYPE_CHECKING, Any, Final, Literal

from webhook.api.admission import InvalidReview, read_request, read_review
from webhook.api.gvk import gvk_of, name_of, namespace_of, plural_of
from webhook.constraint import enforcement
from webhook.constraint.limits import UNLIMITED, Limits
from webhook.constraint.placement import namespace_for, namespace_named, request_to_review
from webhook.constraint.review import AugmentedObject, AugmentedReview, Document
from webhook.external_data.exchange import Answering, ProviderAnswers, ReviewMoment, answering
from webhook.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping

    from webhook.mutation.passes import MutationOnError

ConfigProcess = Literal["webhook", "audit"]

REVIEW_GROUP: Final = "admission.k8s.io"
REVIEW_KIND: Final = "AdmissionReview"


# Made for each request: a frozen dataclass takes twice as long.
@dataclass(slots=True)
class Subject:
    """A request, an object or a document, with the options of its review.

    ``excludes``, ``mutates``, ``expands`` and ``releases`` turn stages on: spare excluded
    namespaces, mutate first, review implied objects, spare updates that only let an object go.
    ``process`` is the Config process of the caller. ``reads_namespace`` says that the Namespace
    must be known, and is fetched if the value has none. ``answers`` are the provider responses so
    far, after ``rounds`` rounds; every walk sees the same ``moment``. ``at`` is the time of the
    decision in seconds since the epoch, None for now; replay uses the recorded time.
    """

    value: AugmentedReview | AugmentedObject | Document
    point: str = enforcement.ALL
    limits: Limits = UNLIMITED
    process: ConfigProcess = "webhook"
    excludes: bool = True
    mutates: bool = True
    expands: bool = True
    releases: bool = True
    reads_namespace: bool = False
    on_mutation_error: MutationOnError = "reject"
    on_expansion_error: MutationOnError = "reject"
    answers: ProviderAnswers | None = None
    rounds: int = 0
    moment: ReviewMoment = field(default_factory=ReviewMoment, compare=False)
    at: float | None = None

    @property
    def object(self) -> dict[str, Any] | None:
        """Returns the object, on DELETE the old one; None for a document."""
        return object_of_value(self.value)

    @property
    def known(self) -> Answering:
        """Returns the provider responses so far."""
        return answering({} if self.answers is None else self.answers, self.rounds)

    def with_answers(self, answers: ProviderAnswers) -> Subject:
        """Returns the subject with the responses of one more round of provider requests."""
        return replace(self, answers={**(self.answers or {}), **answers}, rounds=self.rounds + 1)

    @property
    def place(self) -> str:
        """Returns the name of its namespace; empty for none."""
        value = self.value
        if type(value) is AugmentedReview:
            return value.request.namespace
        return namespace_of(value.object) if type(value) is AugmentedObject else ""

    @property
    def counted_place(self) -> str:
        """Returns the namespace that exclusions compare; for a Namespace its own name."""
        obj = self.object
        if obj is not None and gvk_of(obj).group_kind == ("", "Namespace"):
            return name_of(obj)
        return self.place


def object_of_value(value: AugmentedReview | AugmentedObject | Document) -> dict[str, Any] | None:
    """Returns the object of a value, on DELETE the old one; None for a document."""
    if type(value) is AugmentedObject:
        return value.object
    if type(value) is AugmentedReview:
        request = value.request
        return request.old_object if request.operation == "DELETE" else request.object
    return None


def is_admission_review(document: Any) -> bool:
    """Whether a document is an AdmissionReview."""
    if type(document) is not dict or document.get("kind") != REVIEW_KIND:
        return False
    return gvk_of(document).group == REVIEW_GROUP


def value_of(
    document: dict[str, Any],
    namespaces: Mapping[str, Mapping[str, Any]],
    *,
    operation: str = "",
) -> AugmentedReview | AugmentedObject:
    """Returns the value to review: an AdmissionReview's request, or the document as an object.

    ``operation`` is the operation of an object. Raises
    :class:`~webhook.api.admission.InvalidReview` for an AdmissionReview whose request cannot be
    reviewed.
    """
    if not is_admission_review(document):
        return AugmentedObject(document, namespace_for(document, namespaces), operation)
    request = request_to_review(read_review(document))
    if request.object is None and request.old_object is None:
        raise InvalidReview("the request holds neither an object nor an oldObject to review")
    if request.operation == "DELETE" and request.old_object is None:
        raise InvalidReview("the request is a DELETE and holds no oldObject to review")
    known = namespace_named(request.namespace, namespaces) if request.namespace else None
    return AugmentedReview(request, known)


def played(
    obj: dict[str, Any],
    namespace: Mapping[str, Any] | None,
    operation: str,
    old_object: dict[str, Any] | None = None,
    user: Mapping[str, Any] | None = None,
) -> AugmentedReview:
    """Returns a request built from an object, an operation, an old object and a user."""
    gvk = gvk_of(obj)
    deleted = operation == "DELETE"
    kind = {"group": gvk.group, "version": gvk.version, "kind": gvk.kind}
    resource = {"group": gvk.group, "version": gvk.version, "resource": plural_of(gvk.kind)}
    request = {
        "uid": "",
        "kind": kind,
        "resource": resource,
        "requestKind": kind,
        "requestResource": resource,
        "operation": operation,
        "userInfo": dict(user or {}),
        "object": None if deleted else obj,
        "oldObject": (old_object or obj) if deleted else old_object,
        "name": name_of(obj),
        "namespace": namespace_of(obj),
    }
    if not request["namespace"]:
        del request["namespace"]
    if not request["name"]:
        del request["name"]
    # An empty Namespace is unnamed; a review distinguishes it from no Namespace.
    known = None if namespace is None else dict(namespace) or {"metadata": {}}
    return AugmentedReview(request_to_review(read_request(request)), known)


def shown_object(document: dict[str, Any]) -> dict[str, Any]:
    """Returns the object that reports name; for an AdmissionReview its request's object."""
    if not is_admission_review(document):
        return document
    request = document.get("request")
    if type(request) is not dict:
        return document
    for name in ("object", "oldObject"):
        if type(request.get(name)) is dict:
            obj: dict[str, Any] = request[name]
            return obj
    return document
