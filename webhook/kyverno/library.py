"""Kyverno's pure CEL functions: images, digests, JSON, YAML, certificates, users.

The source is kyverno/sdk, extensions/cel/libs. Some functions have two names: since 1.18 also one
with their library's prefix. ``random`` is refused: a decision must be reproducible.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
import zlib
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, Final

from webhook.api import yaml_reader
from webhook.cel.check.environment import Overload, functions, read_overloads
from webhook.cel.check.types import DYN, STRING, Type, list_of
from webhook.cel.errors import EvaluationError
from webhook.cel.library.regex import charged_pattern
from webhook.cel.library.registry import form
from webhook.cel.run.values import NOTHING, NativeFields, Opaque, Optional
from webhook.golang.strings import from_utf8, utf8
from webhook.kyverno import extensions, world
from webhook.kyverno.images import ImageReference, read_reference
from webhook.kyverno.json_texts import JSON
from webhook.kyverno.json_texts import OVERLOADS as _OF_JSON
from webhook.rego.errors import BuiltinError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from webhook.cel.run.meter import Meter

_INVALID: Final = "given regex is invalid: "
IMAGE: Final = "kyverno.image"
YAML: Final = "kyverno.yaml"

_OVERLOADS: Final = """
parse .(kyverno.yaml, string) dyn
image,parseImageReference (string) kyverno.image
isImage (string) bool
registry,repository,identifier,identifierWithSeparator,tag,digest .(kyverno.image) string
containsDigest .(kyverno.image) bool
md5,sha1,sha256,hash.md5,hash.sha1,hash.sha256 (string) string
listObjToMap,transform.listObjToMap (list(dyn), list(dyn), string, string) map(string, dyn)
math.round (double, int) double
x509.decode (string) dyn
gzip.decompress (bytes) string
regex.replace (string, string, string) string
regex.replace (string, string, string, int) string
regex.extract (string, string) optional_type(string)
regex.extractAll (string, string) list(string)
"""

_EXCEPTION: Final = Type("libs.Exception", message=True)
_SERVICE_ACCOUNT: Final = Type("user.ServiceAccount", message=True)
MESSAGES: Final = {
    _SERVICE_ACCOUNT.name: {"Name": STRING, "Namespace": STRING},
    _EXCEPTION.name: {"allowedImages": list_of(STRING), "allowedValues": list_of(STRING)},
}
"""The fields of Kyverno's own types."""

_OF_USERS: Final = {
    name: (Overload(member=False, args=(STRING,), result=_SERVICE_ACCOUNT, free=()),)
    for name in ("parseServiceAccount", "user.parseServiceAccount")
}

VARIABLES: Final = {
    **world.VARIABLES,
    "json": Type(JSON),
    "yaml": Type(YAML),
    "images": DYN,
    "exceptions": _EXCEPTION,
}
VALUES: Final = {"json": Opaque(JSON, "json", "json"), "yaml": Opaque(YAML, "yaml", "yaml")}
"""The values of the variables that need no access to the cluster."""


def allowed_values(images: Sequence[str], values: Sequence[str]) -> Opaque:
    """Returns the value of the variable ``exceptions``."""
    return Opaque(
        _EXCEPTION.name,
        NativeFields(allowedImages=list(images), allowedValues=list(values)),
    )


BYTES_MAX: Final = 1_000_000
"""The size of decompressed data at most, in bytes: about the largest document of Kubernetes."""

REFUSED: Final = {
    "random": "random() gives another value each time, and a decision must be the same each time",
    "post": "resource.Post() would write to the cluster, and a review writes nothing",
    "Post": "resource.Post() would write to the cluster, and a review writes nothing",
    "hasExt": "proto.hasExt() is for messages of protobuf, and objects are none",
    "getExt": "proto.getExt() is for messages of protobuf, and objects are none",
    "compress": "gzip.compress() is not built: its bytes are those of Go's compressor",
}
"""Functions of Kyverno that policies may not use here, and the reasons."""


@lru_cache(maxsize=2)
def kyverno_functions(*, namespaced: bool) -> Mapping[str, tuple[Overload, ...]]:
    """Returns the functions of Kubernetes and Kyverno for a policy of that scope."""
    declared = {**functions(), **_OF_USERS, "orValue": ()}
    declarations = f"{_OVERLOADS}{_OF_JSON}{extensions.OVERLOADS}\n"
    table = declarations + world.overloads(namespaced=namespaced)
    for name, overloads in read_overloads("\n".join(filter(None, table.splitlines()))).items():
        declared[name] = (*declared.get(name, ()), *overloads)
    return declared


# --- YAML -----------------------------------------------------------------------------------------


@form("parse", YAML, str, charges=True)
def parse(meter: Meter, _: Opaque, text: str) -> Any:
    """Decodes YAML; all numbers are doubles, as with JSON."""
    meter.charge(len(text))  # about ten times as slow as JSON
    try:
        return _as_doubles(yaml_reader.read_first(text, yaml_reader.KUBERNETES))
    except yaml_reader.InvalidYaml as error:
        raise EvaluationError(f"yaml.parse: {error}") from None


def _as_doubles(value: Any) -> Any:
    if type(value) is dict:
        return {name: _as_doubles(part) for name, part in value.items()}
    if type(value) is list:
        return [_as_doubles(part) for part in value]
    return float(value) if type(value) is int else value


# --- images ---------------------------------------------------------------------------------------


@form("image", str)
@form("parseImageReference", str)
def parsed(reference: str) -> Opaque:
    """Returns the parts of an image reference."""
    image = read_reference(reference)
    if image is None:
        raise EvaluationError(f"could not parse reference: {reference}")
    return Opaque(IMAGE, image, reference)


@form("isImage", str)
def is_image(reference: str) -> bool:
    """Whether a text is an image reference."""
    return read_reference(reference) is not None


@form("registry", IMAGE)
def registry(image: Opaque) -> str:
    """Returns the host of the registry."""
    return _image(image).registry


@form("repository", IMAGE)
def repository(image: Opaque) -> str:
    """Returns the path within the registry."""
    return _image(image).repository


@form("identifier", IMAGE)
def identifier(reference: Opaque) -> str:
    """Returns the tag or the digest, or both joined by ``@``."""
    image = _image(reference)
    return "@".join(filter(None, (image.tag, image.digest)))


@form("identifierWithSeparator", IMAGE)
def identifier_with_separator(reference: Opaque) -> str:
    """Returns the digest after ``@``, else the tag after ``:``."""
    image = _image(reference)
    return f"@{image.digest}" if image.digest else f":{image.tag}"


@form("tag", IMAGE)
def tag(image: Opaque) -> str:
    """Returns the tag; empty for a reference by digest."""
    return _image(image).tag


@form("digest", IMAGE)
def digest(image: Opaque) -> str:
    """Returns the digest; empty if the reference has only a tag."""
    return _image(image).digest


@form("containsDigest", IMAGE)
def contains_digest(image: Opaque) -> bool:
    """Whether the reference has a digest."""
    return bool(_image(image).digest)


def _image(reference: Opaque) -> ImageReference:
    image: ImageReference = reference.value
    return image


# --- digests, users, lists, numbers, certificates -------------------------------------------------


def _hashed(name: str) -> None:
    def run(meter: Meter, text: str) -> str:
        meter.charge(len(text) // 10)
        return hashlib.new(name, text.encode(), usedforsecurity=False).hexdigest()

    form(name, str, charges=True)(run)
    form(f"hash.{name}", str, charges=True)(run)


for _name in ("md5", "sha1", "sha256"):
    _hashed(_name)


# --- regular expressions (cel-go, ext/regex.go) --------------------------------------------------

_ESCAPED: Final = re.compile(r"\\(.?)", re.DOTALL)
"""A backslash in a replacement, with the next character."""


@form("regex.replace", str, str, str, charges=True)
@form("regex.replace", str, str, str, int, charges=True)
def replace(meter: Meter, text: str, expression: str, by: str, count: int = -1) -> str:
    """Replaces up to ``count`` matches in a text; all matches if the count is negative."""
    regex = charged_pattern(meter, text, expression, _INVALID)
    groups = regex.compiled.groups
    for escaped in _ESCAPED.findall(by):
        if escaped != "\\" and not (escaped.isdecimal() and escaped.isascii()):
            raise EvaluationError(
                "invalid replacement string: \\ must be followed by a digit or \\"
            )
        if escaped != "\\" and int(escaped) > groups:
            raise EvaluationError(f"replacement string references group {escaped} of {groups}")
    raw, at = utf8(text), 0
    parts: list[str] = []
    for spans in regex.all_in(raw, count if count >= 0 else -1):
        meter.charge(1)
        named = [from_utf8(raw[start:end]) if start >= 0 else "" for start, end in spans]
        parts += [from_utf8(raw[at : spans[0][0]]), _ESCAPED.sub(partial(_group, named), by)]
        at = spans[0][1]
    replaced = "".join([*parts, from_utf8(raw[at:])])
    meter.charge_size(replaced)
    return replaced


def _group(named: list[str], escaped: re.Match[str]) -> str:
    """Expands a backslash and the next character: to the text of a group, or to a backslash."""
    return "\\" if escaped[1] == "\\" else named[int(escaped[1])]


@form("regex.extract", str, str, charges=True)
def extract(meter: Meter, text: str, expression: str) -> Optional:
    """Returns the first match or its group; absent if the group is empty."""
    for match in _extracted(meter, text, expression, 1):
        return Optional(match)
    return Optional(NOTHING)


@form("regex.extractAll", str, str, charges=True)
def extract_all(meter: Meter, text: str, expression: str) -> list[str]:
    """Returns every match, or the group of each match."""
    return list(_extracted(meter, text, expression, -1))


def _extracted(meter: Meter, text: str, expression: str, limit: int) -> Iterator[str]:
    regex = charged_pattern(meter, text, expression, _INVALID)
    groups = regex.compiled.groups
    if groups > 1:
        raise EvaluationError(f"regular expression has more than one capturing group: {expression}")
    raw = utf8(text)
    for spans in regex.all_in(raw, limit):
        meter.charge(1)
        start, end = spans[groups]
        if not groups or end > start:
            yield from_utf8(raw[start:end])


@form("parseServiceAccount", str)
@form("user.parseServiceAccount", str)
def service_account(user: str) -> Opaque:
    """Returns namespace and name of a service account; both empty for another user."""
    rest = user.removeprefix("system:serviceaccount:")
    namespace, colon, name = rest.partition(":")
    is_one = bool(colon) and rest != user
    names = (namespace, name) if is_one else ("", "")
    return Opaque(
        _SERVICE_ACCOUNT.name, NativeFields(zip(("Namespace", "Name"), names, strict=True))
    )


@form("listObjToMap", list, list, str, str)
@form("transform.listObjToMap", list, list, str, str)
def list_to_map(keys: list[Any], values: list[Any], key: str, value: str) -> dict[str, Any]:
    """Returns a map from a field of one list's objects to a field of another's."""
    if len(keys) != len(values):
        raise EvaluationError(
            f"listObjToMap must take lists of equal length. list1: {len(keys)}, list2: {len(values)}"
        )
    mapping = {}
    for first, other in zip(keys, values, strict=True):
        if type(first) is not dict or type(first.get(key)) is not str or type(other) is not dict:
            raise EvaluationError(f"listObjToMap: no object with the text {key}")
        mapping[first[key]] = other.get(value)
    return mapping


@form("math.round", float, int)
def rounded(number: float, places: int) -> float:
    """Returns a number rounded to decimal places, halves away from zero."""
    shift = math.pow(10.0, places) if abs(places) <= _PLACES_MAX else math.inf
    scaled = number * shift
    if not math.isfinite(scaled):
        return scaled / shift
    return math.copysign(math.floor(abs(scaled) + 0.5), number) / shift


_PLACES_MAX: Final = 308
"""The number of decimal places at most: a greater power of ten is no double."""

_LEFT_OUT: Final = frozenset(
    {"SignatureAlgorithm", "Subject", "SubjectKeyId", "URIs", "Version", "UnknownExtKeyUsage"}
    | {"Policies", "PolicyMappings", "UnhandledCriticalExtensions"}
    | {"InhibitAnyPolicy", "InhibitAnyPolicyZero"}
    | {"InhibitPolicyMapping", "InhibitPolicyMappingZero"}
    | {"RequireExplicitPolicy", "RequireExplicitPolicyZero"}
)
"""The fields of a certificate in Go that Kyverno's library does not show."""

_RSA: Final = 1
_READING: Final = 6_000
"""The cost of reading a certificate in CEL's units: some 200 µs, as for Rego."""
_MEMBER: Final = 100
"""The cost of beginning a member of compressed data, in CEL's units: some 3 µs."""

_WITH_HEADER: Final = 31
"""The window of zlib for a member of gzip with its header, sums and length."""

_EXTRA: Final = 4
_TEXTS: Final = (8, 16)
"""The flags of a header with a name and a comment."""

_TEXT_BYTES: Final = 512
"""The longest name or comment with its zero byte, in bytes: Go's reader takes no longer ones."""

_PART: Final = 4096
"""The bytes that are decompressed at a time: behind a short member the rest of them is copied."""


@form("x509.decode", str, charges=True)
def certificate_fields(meter: Meter, text: str) -> Any:
    """Decodes a certificate or certificate request with an RSA key, to Kyverno's fields."""
    # Imported here: few policies read certificates, and the import loads a library.
    from webhook.rego.builtins.keys import pem  # noqa: PLC0415
    from webhook.rego.builtins.x509 import certificate  # noqa: PLC0415

    meter.charge(_READING + len(text) // 10)
    try:
        block, _ = pem.decode(text.encode())
        if block is None:
            raise EvaluationError("failed to decode PEM block")
        if block.label == "CERTIFICATE":
            fields = certificate.parse(block.data)
            shown = {name: value for name, value in fields.items() if name not in _LEFT_OUT}
            shown["SerialNumber"] = extensions.signed(fields["SerialNumber"])
        elif block.label == "CERTIFICATE REQUEST":
            fields = certificate.parse_request(block.data)
            shown = dict(fields)
        else:
            raise EvaluationError("PEM block neither contains a CERTIFICATE or CERTIFICATE REQUEST")
    except BuiltinError as error:
        raise EvaluationError(str(error)) from None
    if fields["PublicKeyAlgorithm"] != _RSA:
        raise EvaluationError("certificate should use rsa algorithm")
    key = fields["PublicKey"]
    shown["PublicKey"] = {"N": str(key["N"]), "E": key["E"]}
    return json.loads(json.dumps(shown), parse_int=float)


@form("gzip.decompress", bytes, charges=True)
def decompressed(meter: Meter, data: bytes) -> str:
    """Returns the decompressed text of all members of the data."""
    meter.charge(len(data) // 10 + _MEMBER * data.count(b"\x1f\x8b"))
    text, at = bytearray(), 0
    try:
        while at < len(data):
            at = _member(data, at, text)
    except zlib.error as error:
        raise EvaluationError(f"gzip.decompress: {error}") from None
    if not data or len(text) > BYTES_MAX:
        raise EvaluationError(f"gzip.decompress: empty, or more than {BYTES_MAX} bytes")
    meter.charge(len(text) // 10)
    return text.decode(errors="replace")


def _check_header(data: bytes, at: int) -> None:
    """Raises :class:`zlib.error` for a header that Go refuses and zlib reads."""
    flags, at = int.from_bytes(data[at + 3 : at + 4], "little"), at + 10
    if flags & _EXTRA:
        at += 2 + int.from_bytes(data[at : at + 2], "little")
    for flag in _TEXTS:
        if flags & flag:
            at = data.find(0, at, at + _TEXT_BYTES) + 1
            if not at:
                raise zlib.error("invalid header: its name or comment is too long, or has no end")


def _member(data: bytes, at: int, text: bytearray) -> int:
    """Adds the text of the member that begins at a position; returns the position behind it.

    All that follows a member is the next: padding is an error, as in Go and other than in
    :mod:`gzip`. Where the text is too long, that is the end of the data. Raises
    :class:`zlib.error`.
    """
    _check_header(data, at)
    member = zlib.decompressobj(_WITH_HEADER)
    while not member.eof:
        part = data[at : at + _PART]
        text += member.decompress(part, BYTES_MAX + 1 - len(text))
        if len(text) > BYTES_MAX:
            return len(data)
        if not part:
            raise zlib.error("unexpected end of the data")
        at += len(part) - len(member.unused_data)
    return at
