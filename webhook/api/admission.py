"""AdmissionReview, ``admission.k8s.io/v1`` and ``v1beta1``: requests and responses.

The two versions differ in name only. A request keeps its JSON object
(:attr:`AdmissionRequest.document`) in the shape that Go's encoder would give it. Policies see this
object as ``input.review``.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from webhook.api.encoding import BeyondBounds, DecodeError, decode, encode
from webhook.api.gvk import GroupVersionKind
from webhook.api.json_decoder import decode_in_pieces

VERSIONS: Final = {"admission.k8s.io/v1": "v1", "admission.k8s.io/v1beta1": "v1beta1"}

OPERATIONS: Final = frozenset({"CREATE", "UPDATE", "DELETE", "CONNECT"})


class InvalidReview(ValueError):
    """The body is no AdmissionReview that can be answered; the message names the fault."""


class UndecidableReview(InvalidReview):
    """The AdmissionReview is nested too deeply, is too large, or has too long numbers."""


# A frozen dataclass of as many fields takes 2 µs to make, three times as long as a tuple.
class AdmissionRequest(NamedTuple):
    """One request of an AdmissionReview.

    ``document`` is the JSON of the request in Go's shape; every field below is read from it.
    ``object`` and ``old_object`` are None where null or absent. ``size`` is the size of the
    received review in bytes, 0 if the request was not received. ``stranger`` is the address of a
    client that is known not to be an API server; its user info cannot be trusted.
    ``failure_policy`` is that of the webhook entry, ``fail`` or ``ignore``; empty for an entry of
    all constraints.
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
    size: int = 0
    stranger: str = ""
    failure_policy: str = ""


class AdmissionResponse(NamedTuple):
    """The answer: ``code``, ``reason`` and ``message`` form its ``status``."""

    uid: str
    allowed: bool
    code: int = 200
    reason: str = ""
    message: str = ""
    warnings: tuple[str, ...] = ()
    decision_id: str = ""
    """The decision's id in the decision log, sent as an audit annotation: letters, digits and
    hyphens. Empty if the decision is not recorded."""
    patch: bytes | None = None
    """A JSON Patch of the mutations, in base64; None for no change."""


MEMBERS_MAX: Final = 174_762
"""The most members of one object, two thirds of 2^18: with one more Python makes room for twice as
many in one call, which holds the interpreter for 10 ms. With its managedFields a member takes 19
bytes at least, so etcd's 1.5 MB have room for half as many."""

TEXT_CHARACTERS_MAX: Final = 4 * 1024 * 1024
"""The longest text in a large review, in characters: an API server takes objects of 3 MiB.
Assembling a text is a single call of a millisecond for each MiB, during which all other threads
wait."""


def decode_review(
    body: bytes | bytearray,
    *,
    max_bytes: int | None = None,
    large: list[Any] | None = None,
    rest: Callable[[], None] | None = None,
) -> AdmissionRequest:
    """Returns the request of an AdmissionReview; raises :class:`InvalidReview`.

    With ``large`` other threads run meanwhile, and decoding takes longer; the document's large
    arrays and objects are added to it, the outermost first. ``rest`` is then called between pieces.
    """
    try:
        if large is not None and (max_bytes is None or len(body) <= max_bytes):
            document = decode_in_pieces(
                body,
                text_max=TEXT_CHARACTERS_MAX,
                members_max=MEMBERS_MAX,
                large=large,
                rest=rest,
            )
        else:
            document = decode(body, max_bytes=max_bytes)
    except BeyondBounds as error:
        raise UndecidableReview(str(error)) from None
    except DecodeError as error:
        raise InvalidReview(f"the body is not JSON: {error}") from None
    return read_review(document, len(body))


# The order of Go's encoder: the fields of an AdmissionReview, then the fields of its request, in
# the order of their types.
_BEGINNING: Final = re.compile(
    rb'\{"kind":"AdmissionReview","apiVersion":"(admission\.k8s\.io/v1(?:beta1)?)",'
    rb'"request":\{"uid":"([^"\\]{1,256})"'
)


def origin_of(prefix: bytes | bytearray) -> tuple[str, str] | None:
    """Returns the ``uid`` and ``apiVersion`` at the beginning of an undecoded review.

    Returns None if an API server did not write the review.
    """
    match = _BEGINNING.match(prefix)
    if match is None:
        return None
    return match[2].decode("utf-8", "replace"), match[1].decode()


_USERNAME: Final = re.compile(rb'"userInfo": ?\{"username": ?"([^"\\]{0,1024})"')
_NAMESPACE: Final = re.compile(
    rb'"namespace": ?"([^"\\]{0,253})", ?"operation": ?"[A-Z]{1,16}", ?',
)
"""The part just before the user, in the order of Go's encoder."""


def username_in(prefix: bytes | bytearray) -> str:
    """Reads the user's name from the beginning of an undecoded review; empty if it is not plain.

    Go's encoder writes the name before the object. No text within another text looks like it,
    because its quotes would be escaped.
    """
    match = _USERNAME.search(prefix)
    return "" if match is None else match[1].decode("utf-8", "replace")


def namespace_in(prefix: bytes | bytearray) -> str:
    """Reads the namespace of the request in the same way; empty for cluster-scoped objects."""
    user = _USERNAME.search(prefix)
    if user is None:
        return ""
    begin = prefix.rfind(b'"namespace":', 0, user.start())
    match = None if begin < 0 else _NAMESPACE.fullmatch(prefix, begin, user.start())
    return "" if match is None else match[1].decode("utf-8", "replace")


def read_review(document: Any, size: int = 0) -> AdmissionRequest:
    """Returns the request of a decoded AdmissionReview of ``size`` bytes.

    Raises :class:`InvalidReview`.
    """
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
    return read_request(request, api_version=str(api_version), size=size)


# Fields that Go's encoder always writes, with their empty values (k8s.io/api/admission/v1,
# AdmissionRequest).
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
    request: dict[str, Any],
    *,
    api_version: str = "admission.k8s.io/v1",
    strict: bool = False,
    size: int = 0,
) -> AdmissionRequest:
    """Reads a request; raises :class:`InvalidReview` for a field of a wrong type.

    Fields unknown to Go's type are dropped, as its decoder drops them; with ``strict`` they are
    refused.
    """
    if not request.keys() <= _FIELDS:
        if strict:
            unknown = ", ".join(sorted(request.keys() - _FIELDS))
            raise InvalidReview(f"unknown fields in request: {unknown}")
        request = {name: value for name, value in request.items() if name in _FIELDS}
    if not _ALWAYS.keys() <= request.keys():
        request = _ALWAYS | request
    # The checks are inline: a function call for each field would double the time.
    get = request.get
    kind = field if type(field := get("kind")) is dict else _object("kind", field) or {}
    user = field if type(field := get("userInfo")) is dict else _object("userInfo", field) or {}
    resource = field if type(field := get("resource")) is dict else _object("resource", field) or {}
    return AdmissionRequest(
        request,
        text if type(text := get("uid")) is str else _string("uid", text),
        GroupVersionKind(
            text if type(text := kind.get("group")) is str else _string("kind.group", text),
            text if type(text := kind.get("version")) is str else _string("kind.version", text),
            text if type(text := kind.get("kind")) is str else _string("kind.kind", text),
        ),
        text
        if type(text := resource.get("resource")) is str
        else _string("resource.resource", text),
        text if type(text := get("subResource")) is str else _string("subResource", text),
        text if type(text := get("name")) is str else _string("name", text),
        text if type(text := get("namespace")) is str else _string("namespace", text),
        text if type(text := get("operation")) is str else _string("operation", text),
        text if type(text := user.get("username")) is str else _string("userInfo.username", text),
        _boolean("dryRun", get("dryRun")),
        field if type(field := get("object")) is dict else _object("object", field),
        field if type(field := get("oldObject")) is dict else _object("oldObject", field),
        api_version,
        size,
    )


def _string(name: str, value: object) -> str:
    """Returns the text of a field that may be absent."""
    if value is None:
        return ""
    if type(value) is not str:
        raise InvalidReview(f"request.{name} must be a string, got {_kind(value)}")
    return value


def _boolean(name: str, value: object) -> bool:
    if value is not None and type(value) is not bool:
        raise InvalidReview(f"request.{name} must be a boolean, got {_kind(value)}")
    return bool(value)


def _object(name: str, value: object) -> dict[str, Any] | None:
    if value is not None and type(value) is not dict:
        raise InvalidReview(f"request.{name} must be an object, got {_kind(value)}")
    return value


def _kind(value: object) -> str:
    names = {dict: "an object", list: "an array", str: "a string", bool: "a boolean"}
    return "null" if value is None else names.get(type(value), "a number")


ANNOTATION: Final = "decision-id"
"""Key of the audit annotation; the API server prefixes it with the webhook's name and a slash."""

_PLAIN_ANSWER: Final = (
    b'{"kind":"AdmissionReview","apiVersion":%b,"response":'
    b'{"uid":%b,"allowed":true,"status":{"metadata":{},"code":200}'
)
"""The answer to an allowed request without warnings, patch or annotations."""

_PLAIN_ANNOTATED: Final = (
    f'{_PLAIN_ANSWER.decode()},"auditAnnotations":{{"{ANNOTATION}":"%b"}}'.encode()
)
"""An allowed answer to a recorded admission, with its audit annotation."""


def encode_response(response: AdmissionResponse, api_version: str) -> bytes:
    """Returns the AdmissionReview response in the version of the request."""
    uid, allowed, code, reason, message, warnings, decision_id, patch = response
    if allowed and code == 200 and not (message or reason or warnings):  # As most are.
        if decision_id:
            named = encode(api_version), encode(uid), decision_id.encode()
            beginning = _PLAIN_ANNOTATED % named
        else:
            beginning = _PLAIN_ANSWER % (encode(api_version), encode(uid))
        if patch is None:
            return beginning + b"}}"
        # Base64 is inserted without the encoder, which would inspect each of often 10,000
        # characters.
        return b'%b,"patch":"%b","patchType":"JSONPatch"}}' % (beginning, patch)
    answer: dict[str, Any] = {"uid": uid, "allowed": allowed}
    status: dict[str, Any] = {"metadata": {}}
    if message:
        status["message"] = message
    if reason:
        status["reason"] = reason
    status["code"] = code
    answer["status"] = status
    if decision_id:
        answer["auditAnnotations"] = {ANNOTATION: decision_id}
    if warnings:
        answer["warnings"] = list(warnings)
    encoded = encode({"kind": "AdmissionReview", "apiVersion": api_version, "response": answer})
    if patch is None:
        return encoded
    return b'%b,"patch":"%b","patchType":"JSONPatch"}}' % (encoded[:-2], patch)
