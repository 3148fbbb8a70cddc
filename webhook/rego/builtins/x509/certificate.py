"""X.509 certificates and certificate requests, parsed into the JSON form of Go's structures.

OPA hands policies ``encoding/json`` of ``x509.Certificate`` (Go's crypto/x509), so field names, the
numbers of algorithms and the faults are Go's. ``cryptography`` differs in all three, so elements
are read with :mod:`webhook.rego.builtins.keys.der`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from webhook.golang.base64 import encode
from webhook.rego.builtins.keys import asymmetric as keys
from webhook.rego.builtins.keys import der
from webhook.rego.builtins.keys.der import NULL
from webhook.rego.builtins.x509 import extensions as certificate_extensions
from webhook.rego.errors import BuiltinError

Fields = dict[str, Any]
"""A structure in Go's JSON form."""

_ED25519: Final = (1, 3, 101, 112)
_RSA_PSS: Final = (1, 2, 840, 113549, 1, 1, 10)
_MGF1: Final = (1, 2, 840, 113549, 1, 1, 8)
_EXTENSION_REQUEST: Final = (1, 2, 840, 113549, 1, 9, 14)
_SUBJECT_ALT_NAME: Final = (2, 5, 29, 17)

# Go's SignatureAlgorithm constants, in the order of their declaration.
_SIGNATURE_ALGORITHMS: Final = {
    (1, 2, 840, 113549, 1, 1, 4): 2,  # MD5WithRSA
    (1, 2, 840, 113549, 1, 1, 5): 3,  # SHA1WithRSA
    (1, 3, 14, 3, 2, 29): 3,  # SHA1WithRSA, ISO's number
    (1, 2, 840, 113549, 1, 1, 11): 4,  # SHA256WithRSA
    (1, 2, 840, 113549, 1, 1, 12): 5,  # SHA384WithRSA
    (1, 2, 840, 113549, 1, 1, 13): 6,  # SHA512WithRSA
    (1, 2, 840, 10040, 4, 3): 7,  # DSAWithSHA1
    (2, 16, 840, 1, 101, 3, 4, 3, 2): 8,  # DSAWithSHA256
    (1, 2, 840, 10045, 4, 1): 9,  # ECDSAWithSHA1
    (1, 2, 840, 10045, 4, 3, 2): 10,  # ECDSAWithSHA256
    (1, 2, 840, 10045, 4, 3, 3): 11,  # ECDSAWithSHA384
    (1, 2, 840, 10045, 4, 3, 4): 12,  # ECDSAWithSHA512
    _ED25519: 16,  # PureEd25519
}
# SHA256WithRSAPSS, SHA384WithRSAPSS, SHA512WithRSAPSS by digest and length of salt.
_PSS_ALGORITHMS: Final[dict[tuple[tuple[int, ...], int], int]] = {
    ((2, 16, 840, 1, 101, 3, 4, 2, 1), 32): 13,
    ((2, 16, 840, 1, 101, 3, 4, 2, 2), 48): 14,
    ((2, 16, 840, 1, 101, 3, 4, 2, 3), 64): 15,
}

# pkix.Name's fields by the last number of attribute types 2.5.4.x.
_NAME_LISTS: Final = {
    6: "Country",
    7: "Locality",
    8: "Province",
    9: "StreetAddress",
    10: "Organization",
    11: "OrganizationalUnit",
    17: "PostalCode",
}
_NAME_STRINGS: Final = {3: "CommonName", 5: "SerialNumber"}

_PRINTABLE: Final = frozenset(
    b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789'()+,-./ :=?*&"
)


def parse_all(data: bytes) -> list[Fields]:
    """Returns the certificates that follow one another in ``data``."""
    certificates = []
    rest = data
    while rest:
        fields, rest = _parse(rest)
        certificates.append(fields)
    return certificates


def parse(data: bytes) -> Fields:
    """Returns the single certificate in ``data``."""
    fields, rest = _parse(data)
    if rest:
        raise BuiltinError("x509: trailing data")
    return fields


def _parse(data: bytes) -> tuple[Fields, bytes]:
    fault = "x509: malformed certificate"
    outer = der.Reader(data)
    raw = outer.element(der.SEQUENCE, fault)
    body = der.Reader(raw).enter(der.SEQUENCE, fault)
    fault = "x509: malformed tbs certificate"
    raw_tbs = body.element(der.SEQUENCE, fault)
    tbs = der.Reader(raw_tbs).enter(der.SEQUENCE, fault)
    fields = certificate_extensions.blank()
    fields |= {"Raw": encode(raw), "RawTBSCertificate": encode(raw_tbs)}
    fields["Version"] = version = _version(tbs)
    fields["SerialNumber"] = tbs.integer("x509: malformed serial number")
    if fields["SerialNumber"] < 0:
        raise BuiltinError("x509: negative serial number")
    algorithm = tbs.read(der.SEQUENCE, "x509: malformed signature algorithm identifier")
    if body.read(der.SEQUENCE, "x509: malformed algorithm identifier") != algorithm:
        raise BuiltinError("x509: inner and outer signature algorithm identifiers don't match")
    fields["SignatureAlgorithm"] = signature_algorithm(algorithm)
    issuer = tbs.element(der.SEQUENCE, "x509: malformed issuer")
    fields |= {"RawIssuer": encode(issuer), "Issuer": parse_name(issuer)}
    validity = tbs.enter(der.SEQUENCE, "x509: malformed validity")
    fields |= {"NotBefore": validity.time(), "NotAfter": validity.time()}
    subject = tbs.element(der.SEQUENCE, "x509: malformed issuer")
    fields |= {"RawSubject": encode(subject), "Subject": parse_name(subject)}
    spki = tbs.element(der.SEQUENCE, "x509: malformed spki")
    fields |= {"RawSubjectPublicKeyInfo": encode(spki)} | _public_key(spki)
    if version > 1:
        _unique_identifiers(tbs)
    if version == 3:
        extensions = tbs.optional(der.context(3, constructed=True), "x509: malformed extensions")
        if extensions is not None:
            fields["Extensions"] = _extensions(extensions)
            certificate_extensions.apply(fields)
    fields["Signature"] = encode(der.right_aligned(body.bits("x509: malformed signature")))
    return fields, outer.rest


def _version(tbs: der.Reader) -> int:
    fault = "x509: malformed version"
    tagged = tbs.optional(der.context(0, constructed=True), fault)
    number = 0 if tagged is None else tagged.integer(fault)
    if number < 0:
        raise BuiltinError(fault)
    if number > 2:
        raise BuiltinError("x509: invalid version")
    return number + 1


def _unique_identifiers(tbs: der.Reader) -> None:
    for number, name in ((1, "issuerUniqueID"), (2, "subjectUniqueID")):
        tbs.optional(der.context(number), f"x509: malformed {name}")


def _public_key(spki: bytes) -> Fields:
    key = keys.parse_spki(spki)
    return {
        "PublicKeyAlgorithm": keys.ALGORITHMS.get(key.kind, 0),
        "PublicKey": key.json() if key.kind in keys.ALGORITHMS else None,
    }


def _extensions(tagged: der.Reader) -> list[Fields] | None:
    sequence = tagged.enter(der.SEQUENCE, "x509: malformed extensions")
    extensions: list[Fields] = []
    while sequence:
        reader = sequence.enter(der.SEQUENCE, "x509: malformed extension")
        extension = _extension(reader)
        if any(extension["Id"] == other["Id"] for other in extensions):
            name = ".".join(map(str, extension["Id"]))
            raise BuiltinError(
                f'x509: certificate contains duplicate extension with OID "{name}"',
            )
        extensions.append(extension)
    return extensions or None


def _extension(reader: der.Reader) -> Fields:
    identifier = reader.oid("x509: malformed extension OID field")
    critical = reader.peek(der.BOOLEAN) and reader.boolean(
        "x509: malformed extension critical field"
    )
    value = reader.read(der.OCTET_STRING, "x509: malformed extension value field")
    return {"Id": list(identifier), "Critical": critical, "Value": encode(value)}


def signature_algorithm(content: bytes) -> int:
    """Go's number of the algorithm that an AlgorithmIdentifier names; 0 if unknown."""
    reader = der.Reader(content)
    identifier = reader.oid("x509: malformed OID")
    parameters = reader.any("x509: malformed parameters")[2] if reader else b""
    if identifier == _RSA_PSS:
        try:
            return _pss_algorithm(parameters)
        except BuiltinError:
            return 0
    if identifier == _ED25519 and parameters:
        return 0
    return _SIGNATURE_ALGORITHMS.get(identifier, 0)


def _pss_algorithm(parameters: bytes) -> int:
    """RSA-PSS with the parameters of RFC 3447, 8.1; Go knows no other parameters."""
    fault = "unknown parameters"
    reader = der.Reader(parameters).enter(der.SEQUENCE, fault)
    digest = _digest(reader.enter(der.context(0, constructed=True), fault), fault)
    mask = reader.enter(der.context(1, constructed=True), fault).enter(der.SEQUENCE, fault)
    if mask.oid(fault) != _MGF1 or _digest(mask, fault) != digest:
        return 0
    salt = reader.enter(der.context(2, constructed=True), fault).integer(fault)
    trailer = reader.optional(der.context(3, constructed=True), fault)
    if trailer is not None and trailer.integer(fault) != 1:
        return 0
    return _PSS_ALGORITHMS.get((digest, salt), 0)


def _digest(reader: der.Reader, fault: str) -> tuple[int, ...]:
    sequence = reader.enter(der.SEQUENCE, fault)
    identifier = sequence.oid(fault)
    if sequence.rest not in (b"", NULL):
        raise BuiltinError(fault)
    return identifier


def parse_name(data: bytes) -> Fields:
    """Returns a distinguished name as Go's ``pkix.Name``."""
    fault = "x509: invalid RDNSequence"
    name: Fields = dict.fromkeys((*_NAME_LISTS.values(), "ExtraNames", "Names"))
    name |= dict.fromkeys(_NAME_STRINGS.values(), "")
    sequence = der.Reader(data).enter(der.SEQUENCE, fault)
    while sequence:
        members = sequence.enter(der.SET, fault)
        while members:
            pair = members.enter(der.SEQUENCE, f"{fault}: invalid attribute")
            kind = pair.oid(f"{fault}: invalid attribute type")
            tag, content, _ = pair.any(f"{fault}: invalid attribute value")
            _add_name(name, kind, _text(tag, content))
    return name


def _add_name(name: Fields, kind: tuple[int, ...], value: str) -> None:
    name["Names"] = [*(name["Names"] or ()), {"Type": list(kind), "Value": value}]
    if kind[:3] != (2, 5, 4) or len(kind) != 4:
        return
    if kind[3] in _NAME_STRINGS:
        name[_NAME_STRINGS[kind[3]]] = value
    elif kind[3] in _NAME_LISTS:
        field = _NAME_LISTS[kind[3]]
        name[field] = [*(name[field] or ()), value]


def _text(tag: int, content: bytes) -> str:
    fault = "x509: invalid RDNSequence: invalid attribute value"
    decode = _TEXTS.get(tag)
    if decode is None:
        raise BuiltinError(f"{fault}: unsupported string type: {tag}")
    try:
        return decode(content)
    except ValueError:
        raise BuiltinError(f"{fault}: invalid {_TEXT_NAMES[tag]}") from None


def _printable(content: bytes) -> str:
    if not _PRINTABLE.issuperset(content):
        raise ValueError("invalid PrintableString")
    return content.decode("ascii")


def _numeric(content: bytes) -> str:
    if not frozenset(b"0123456789 ").issuperset(content):
        raise ValueError("invalid NumericString")
    return content.decode("ascii")


def _basic_plane(content: bytes) -> str:
    trimmed = content.removesuffix(b"\x00\x00") if len(content) % 2 == 0 else content
    text = trimmed.decode("utf-16-be")
    if any(c in "\ufffe\uffff" or "\ufdd0" <= c <= "\ufdef" or c > "\uffff" for c in text):
        raise ValueError("invalid BMPString")
    return text


_TEXTS: Final[dict[int, Callable[[bytes], str]]] = {
    der.T61_STRING: lambda content: content.decode("latin-1"),
    der.PRINTABLE_STRING: _printable,
    der.UTF8_STRING: lambda content: content.decode("utf-8"),
    der.BMP_STRING: _basic_plane,
    der.IA5_STRING: lambda content: content.decode("ascii"),
    der.NUMERIC_STRING: _numeric,
}
_TEXT_NAMES: Final = {
    der.PRINTABLE_STRING: "PrintableString",
    der.UTF8_STRING: "UTF-8 string",
    der.BMP_STRING: "BMPString",
    der.IA5_STRING: "IA5String",
    der.NUMERIC_STRING: "NumericString",
}


def parse_request(data: bytes) -> Fields:
    """Returns the certificate request that ``data`` is, as Go's ``x509.CertificateRequest``."""
    fault = "asn1: structure error: malformed certificateRequest"
    outer = der.Reader(data)
    raw = outer.element(der.SEQUENCE, fault)
    if outer:
        raise BuiltinError("asn1: syntax error: trailing data")
    body = der.Reader(raw).enter(der.SEQUENCE, fault)
    raw_tbs = body.element(der.SEQUENCE, fault)
    tbs = der.Reader(raw_tbs).enter(der.SEQUENCE, fault)
    version = tbs.integer(fault)
    subject = tbs.element(der.SEQUENCE, fault)
    spki = tbs.element(der.SEQUENCE, fault)
    attributes = _attributes(tbs.enter(der.context(0, constructed=True), fault), fault)
    algorithm = signature_algorithm(body.read(der.SEQUENCE, fault))
    signature = der.right_aligned(body.bits(fault))
    extensions = _requested_extensions(attributes, fault)
    names = certificate_extensions.alternative_names(extensions or ())
    return {
        "Raw": encode(raw),
        "RawTBSCertificateRequest": encode(raw_tbs),
        "RawSubjectPublicKeyInfo": encode(spki),
        "RawSubject": encode(subject),
        "Version": version,
        "Signature": encode(signature),
        "SignatureAlgorithm": algorithm,
        "Subject": parse_name(subject),
        "Attributes": _attribute_sets(attributes) or None,
        "Extensions": extensions,
        "ExtraExtensions": None,
        **_public_key(spki),
        **names,
    }


def _attributes(reader: der.Reader, fault: str) -> list[bytes]:
    attributes = []
    while reader:
        attributes.append(reader.any(fault)[2])
    return attributes


def _attribute_sets(attributes: list[bytes]) -> list[Fields]:
    """The attributes that hold pairs of type and value; others are passed over, as Go does."""
    sets = []
    for attribute in attributes:
        try:
            sets.append(_attribute_set(attribute))
        except BuiltinError:
            continue
    return sets


def _attribute_set(attribute: bytes) -> Fields:
    fault = "not a set of attributes"
    reader = der.Reader(attribute).enter(der.SEQUENCE, fault)
    kind = reader.oid(fault)
    values = reader.enter(der.SET, fault)
    sets: list[list[Fields]] = []
    while values:
        sequence = values.enter(der.SEQUENCE, fault)
        pairs = []
        while sequence:
            pair = sequence.enter(der.SEQUENCE, fault)
            name = pair.oid(fault)
            pairs.append({"Type": list(name), "Value": _plain(*pair.any(fault)[:2], fault)})
        sets.append(pairs)
    return {"Type": list(kind), "Value": sets}


def _plain(tag: int, content: bytes, fault: str) -> Any:
    """Returns a value of unknown type as Go's ``encoding/asn1`` decodes it."""
    if tag == der.OCTET_STRING:
        return encode(content)
    if tag in _TEXTS:
        return _text(tag, content)
    if tag == der.INTEGER:
        return int.from_bytes(content, "big", signed=True)
    if tag == der.BOOLEAN:
        # A critical extension has three members, which a pair cannot hold.
        raise BuiltinError(fault)
    if tag == der.OBJECT_IDENTIFIER:
        return list(der.oid_arcs(content, fault))
    return None


def _requested_extensions(attributes: list[bytes], fault: str) -> list[Fields] | None:
    extensions: list[Fields] = []
    for attribute in attributes:
        try:
            reader = der.Reader(attribute).enter(der.SEQUENCE, fault)
            kind, values = reader.oid(fault), reader.enter(der.SET, fault)
        except BuiltinError:
            continue
        if kind != _EXTENSION_REQUEST or not values:
            continue
        sequence = values.enter(der.SEQUENCE, fault)
        while sequence:
            extensions.append(_extension(sequence.enter(der.SEQUENCE, fault)))
    identifiers = {tuple(extension["Id"]) for extension in extensions}
    if len(identifiers) != len(extensions):
        raise BuiltinError("x509: certificate request contains duplicate requested extensions")
    return extensions or None


def uri_strings(fields: Fields) -> list[str] | None:
    """Returns the certificate's URIs as text, which OPA adds to Go's fields."""
    if fields["URIs"] is None:
        return None
    extensions = [e for e in fields["Extensions"] if tuple(e["Id"]) == _SUBJECT_ALT_NAME]
    return certificate_extensions.uri_texts(extensions)
