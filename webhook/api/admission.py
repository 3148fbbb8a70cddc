"""AdmissionReview, ``admission.k8s.io/v1`` and ``v1beta1``, both ways.

The two versions differ in name only. A request keeps the JSON object it came in
(:attr:`AdmissionRequest.document`), brought to the shape that Go's encoder would
give it: that is what policies see as ``input.review``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from webhook.api.encoding import DecodeError, decode, encode
from webhook.api.gvk import GroupVersionKind

MAX_BODY_BYTES: Final = 7 * 1024 * 1024
"""etcd holds 1.5 MB; twice that as JSON, for object and oldObject, and 1 MB for the rest:
controller-runtime's limit of an admission body."""

VERSIONS: Final = {"admission.k8s.io/v1": "v1", "admission.k8s.io/v1beta1": "v1beta1"}

OPERATIONS: Final = frozenset({"CREATE", "UPDATE", "DELETE", "CONNECT"})


class InvalidReview(ValueError):  # noqa: N818  # named by what it is, as InvalidTemplate is
    """The body is no AdmissionReview that can be answered; the message says what is wrong."""


@dataclass(frozen=True, slots=True)
class AdmissionRequest:
    """One request, as an AdmissionReview carries it.

    ``document`` is the JSON of the request in Go's shape; every field below is
    read from it. ``object`` and ``old_object`` are None where null or absent.
    """

    document: dict[str, Any]
    uid: str
    kind: GroupVersionKind
    resource: str
    sub_resource: str
    name: str
    namespace: str
    operation: str
    username: str
    dry_run: bool
    object: dict[str, Any] | None
    old_object: dict[str, Any] | None
    api_version: str = "admission.k8s.io/v1"


@dataclass(frozen=True, slots=True)
class AdmissionResponse:
    """The answer: ``code``, ``reason`` and ``message`` form its ``status``."""

    uid: str
    allowed: bool
    code: int = 200
    reason: str = ""
    message: str = ""
    warnings: tuple[str, ...] = ()
    audit_annotations: dict[str, str] | None = None


def decode_review(body: bytes, *, max_bytes: int = MAX_BODY_BYTES) -> AdmissionRequest:
    """The request of an AdmissionReview; raises :class:`InvalidReview`."""
    try:
        document = decode(body, max_bytes=max_bytes)
    except DecodeError as error:
        raise InvalidReview(f"the body is not JSON: {error}") from None
    return read_review(document)


def read_review(document: Any) -> AdmissionRequest:
    """The request of a decoded AdmissionReview; raises :class:`InvalidReview`."""
    if type(document) is not dict:
        raise InvalidReview(f"an AdmissionReview must be an object, got {_kind(document)}")
    api_version = document.get("apiVersion")
    known = type(api_version) is str and api_version in VERSIONS
    if document.get("kind") != "AdmissionReview" or not known:
        raise InvalidReview(
            "expected an AdmissionReview of admission.k8s.io/v1 or v1beta1, "
            f"got kind {document.get('kind')!r} of apiVersion {api_version!r}"
        )
    request = document.get("request")
    if type(request) is not dict:
        raise InvalidReview(f"request must be an object, got {_kind(request)}")
    return read_request(request, api_version=str(api_version))


# The fields of Go's AdmissionRequest, those that its encoder always writes with what it
# writes for an empty one (k8s.io/api/admission/v1, AdmissionRequest).
_ALWAYS: Final[dict[str, Any]] = {
    "uid": "",
    "kind": {"group": "", "version": "", "kind": ""},
    "resource": {"group": "", "version": "", "resource": ""},
    "operation": "",
    "userInfo": {},
    "object": None,
    "oldObject": None,
    "options": None,
}
_SOMETIMES: Final = frozenset(
    {
        "subResource",
        "requestKind",
        "requestResource",
        "requestSubResource",
        "name",
        "namespace",
        "dryRun",
    }
)
_FIELDS: Final = _SOMETIMES | _ALWAYS.keys()


def read_request(
    request: dict[str, Any], *, api_version: str = "admission.k8s.io/v1", strict: bool = False
) -> AdmissionRequest:
    """Read a request; raises :class:`InvalidReview` where a field has a wrong type.

    Fields that Go's type does not have are dropped, as its decoder drops them;
    when ``strict`` they are refused.
    """
    if not request.keys() <= _FIELDS:
        if strict:
            unknown = ", ".join(sorted(request.keys() - _FIELDS))
            raise InvalidReview(f"unknown fields in request: {unknown}")
        request = {name: value for name, value in request.items() if name in _FIELDS}
    if not _ALWAYS.keys() <= request.keys():
        request = _ALWAYS | request
    user = _object(request, "userInfo") or {}
    return AdmissionRequest(
        document=request,
        uid=_string(request, "uid"),
        kind=_group_version_kind(request),
        resource=_string(_object(request, "resource") or {}, "resource", "resource."),
        sub_resource=_string(request, "subResource"),
        name=_string(request, "name"),
        namespace=_string(request, "namespace"),
        operation=_string(request, "operation"),
        username=_string(user, "username", "userInfo."),
        dry_run=_boolean(request, "dryRun"),
        object=_object(request, "object"),
        old_object=_object(request, "oldObject"),
        api_version=api_version,
    )


def _group_version_kind(request: dict[str, Any]) -> GroupVersionKind:
    kind = _object(request, "kind") or {}
    return GroupVersionKind(
        _string(kind, "group", "kind."),
        _string(kind, "version", "kind."),
        _string(kind, "kind", "kind."),
    )


def _string(owner: dict[str, Any], name: str, prefix: str = "") -> str:
    value = owner.get(name)
    if value is None:
        return ""
    if type(value) is not str:
        raise InvalidReview(f"request.{prefix}{name} must be a string, got {_kind(value)}")
    return value


def _boolean(owner: dict[str, Any], name: str) -> bool:
    value = owner.get(name)
    if value is not None and type(value) is not bool:
        raise InvalidReview(f"request.{name} must be a boolean, got {_kind(value)}")
    return bool(value)


def _object(owner: dict[str, Any], name: str) -> dict[str, Any] | None:
    value = owner.get(name)
    if value is not None and type(value) is not dict:
        raise InvalidReview(f"request.{name} must be an object, got {_kind(value)}")
    return value


def _kind(value: object) -> str:
    names = {dict: "an object", list: "an array", str: "a string", bool: "a boolean"}
    return "null" if value is None else names.get(type(value), "a number")


def encode_response(response: AdmissionResponse, api_version: str) -> bytes:
    """The AdmissionReview that answers, in the version that asked."""
    answer: dict[str, Any] = {"uid": response.uid, "allowed": response.allowed}
    status: dict[str, Any] = {"metadata": {}}
    if response.message:
        status["message"] = response.message
    if response.reason:
        status["reason"] = response.reason
    status["code"] = response.code
    answer["status"] = status
    if response.audit_annotations:
        answer["auditAnnotations"] = response.audit_annotations
    if response.warnings:
        answer["warnings"] = list(response.warnings)
    return encode({"kind": "AdmissionReview", "apiVersion": api_version, "response": answer})
