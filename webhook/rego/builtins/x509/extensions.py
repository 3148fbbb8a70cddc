"""The extensions of an X.509 certificate that Go's crypto/x509 understands."""

from __future__ import annotations

import base64
import ipaddress
import json
from collections.abc import Callable, Iterable
from typing import Any, Final

from webhook.golang.base64 import encode
from webhook.rego.builtins.keys import der
from webhook.rego.builtins.operands import url_of
from webhook.rego.errors import BuiltinError

_STANDARD: Final = [2, 5, 29]
_AUTHORITY_INFO: Final = [1, 3, 6, 1, 5, 5, 7, 1, 1]
_OCSP: Final = (1, 3, 6, 1, 5, 5, 7, 48, 1)
_ISSUERS: Final = (1, 3, 6, 1, 5, 5, 7, 48, 2)
_URI: Final = der.context(6)

# Go's ExtKeyUsage constants by object identifier.
_KEY_PURPOSE: Final = (1, 3, 6, 1, 5, 5, 7, 3)
_EXT_KEY_USAGES: Final = {
    (2, 5, 29, 37, 0): 0,
    (*_KEY_PURPOSE, 1): 1,
    (*_KEY_PURPOSE, 2): 2,
    (*_KEY_PURPOSE, 3): 3,
    (*_KEY_PURPOSE, 4): 4,
    (*_KEY_PURPOSE, 5): 5,
    (*_KEY_PURPOSE, 6): 6,
    (*_KEY_PURPOSE, 7): 7,
    (*_KEY_PURPOSE, 8): 8,
    (*_KEY_PURPOSE, 9): 9,
    (1, 3, 6, 1, 4, 1, 311, 10, 3, 3): 10,
    (2, 16, 840, 1, 113730, 4, 1): 11,
    (1, 3, 6, 1, 4, 1, 311, 2, 1, 22): 12,
    (1, 3, 6, 1, 4, 1, 311, 61, 1, 1): 13,
}
_NAMES: Final = ("DNSNames", "EmailAddresses", "IPAddresses", "URIs")
_LISTS: Final = (
    *_NAMES,
    *(
        f"{side}{kind}"
        for side in ("Permitted", "Excluded")
        for kind in ("DNSDomains", "IPRanges", "EmailAddresses", "URIDomains")
    ),
    *("AuthorityKeyId", "SubjectKeyId", "CRLDistributionPoints", "OCSPServer"),
    *("IssuingCertificateURL", "ExtKeyUsage", "UnknownExtKeyUsage", "Extensions"),
    *("ExtraExtensions", "UnhandledCriticalExtensions", "Policies", "PolicyIdentifiers"),
    "PolicyMappings",
)
_NUMBERS: Final = (
    "KeyUsage",
    "MaxPathLen",
    "InhibitAnyPolicy",
    "InhibitPolicyMapping",
    "RequireExplicitPolicy",
)
_FLAGS: Final = (
    "BasicConstraintsValid",
    "IsCA",
    "MaxPathLenZero",
    "InhibitAnyPolicyZero",
    "InhibitPolicyMappingZero",
    "PermittedDNSDomainsCritical",
    "RequireExplicitPolicyZero",
)

ExtensionFields = dict[str, Any]


def blank() -> ExtensionFields:
    """Returns the fields of a certificate without extensions."""
    return dict.fromkeys(_LISTS) | dict.fromkeys(_NUMBERS, 0) | dict.fromkeys(_FLAGS, False)


def apply(fields: ExtensionFields) -> None:
    """Sets the fields that ``fields["Extensions"]`` describes."""
    unhandled = []
    for extension in fields["Extensions"] or ():
        value = base64.b64decode(extension["Value"])
        if not _apply_one(fields, extension, value) and extension["Critical"]:
            unhandled.append(extension["Id"])
    fields["UnhandledCriticalExtensions"] = unhandled or None


def _apply_one(fields: ExtensionFields, extension: ExtensionFields, value: bytes) -> bool:
    """Applies an extension; returns whether it is known."""
    identifier, critical = extension["Id"], extension["Critical"]
    if identifier == _AUTHORITY_INFO:
        if critical:
            raise BuiltinError("x509: authority info access incorrectly marked critical")
        _authority_info(fields, value)
        return True
    if identifier[:3] != _STANDARD or len(identifier) != 4:
        return False
    number = identifier[3]
    if number == 17:
        names = _alternative_names(value)
        fields |= names
        return any(names.values())
    if number == 30:
        fields["PermittedDNSDomainsCritical"] = critical
        return _name_constraints(fields, value)
    if critical and number in _NEVER_CRITICAL:
        raise BuiltinError(f"x509: {_NEVER_CRITICAL[number]} incorrectly marked critical")
    handler = _HANDLERS.get(number)
    if handler is None:
        return False
    handler(fields, value)
    return True


def alternative_names(extensions: Iterable[ExtensionFields]) -> ExtensionFields:
    """Returns the subject's alternative names among these extensions."""
    names: ExtensionFields = dict.fromkeys(_NAMES)
    for extension in extensions:
        if extension["Id"] == [*_STANDARD, 17]:
            names = _alternative_names(base64.b64decode(extension["Value"]))
    return names


def _alternative_names(value: bytes) -> ExtensionFields:
    names: dict[str, list[Any]] = {name: [] for name in _NAMES}
    sequence = der.Reader(value).enter(der.SEQUENCE, "x509: invalid subject alternative names")
    while sequence:
        tag, content, _ = sequence.any("x509: invalid subject alternative name")
        if tag == der.context(1):
            names["EmailAddresses"].append(_ia5(content, "x509: SAN rfc822Name is malformed"))
        elif tag == der.context(2):
            names["DNSNames"].append(_ia5(content, "x509: SAN dNSName is malformed"))
        elif tag == der.context(6):
            text = _ia5(content, "x509: SAN uniformResourceIdentifier is malformed")
            names["URIs"].append(_uri(text))
        elif tag == der.context(7):
            if len(content) not in (4, 16):
                raise BuiltinError(
                    f"x509: cannot parse IP address of length {len(content)}",
                )
            names["IPAddresses"].append(ip_text(content))
    return {name: values or None for name, values in names.items()}


def uri_texts(extensions: Iterable[ExtensionFields]) -> list[str]:
    """Returns the URIs among the subject's alternative names, as Go prints them again."""
    texts = []
    for extension in extensions:
        sequence = der.Reader(base64.b64decode(extension["Value"])).enter(der.SEQUENCE, "")
        while sequence:
            tag, content, _ = sequence.any("")
            if tag == _URI:
                texts.append(str(url_of(content.decode("ascii"))))
    return texts


def _uri(text: str) -> ExtensionFields:
    quoted = json.dumps(text)
    try:
        url = url_of(text)
    except BuiltinError as error:
        raise BuiltinError(f"x509: cannot parse URI {quoted}: {error.message}") from None
    if not _domain_name_valid(url.host, constraint=False):
        raise BuiltinError(f"x509: cannot parse URI {quoted}: invalid domain")
    return url.json()


def _ia5(content: bytes, fault: str) -> str:
    try:
        return content.decode("ascii")
    except UnicodeDecodeError:
        raise BuiltinError(fault) from None


def _domain_name_valid(name: str, *, constraint: bool) -> bool:
    if not name:
        return True
    if name.endswith("."):
        return False
    labels = (name[1:] if constraint and name.startswith(".") else name).split(".")
    return all(labels) and all("!" <= c <= "~" for label in labels for c in label)


def _key_usage(fields: ExtensionFields, value: bytes) -> None:
    data, _ = der.Reader(value).bits("x509: invalid key usage")
    fields["KeyUsage"] = sum(
        1 << bit for bit in range(9) if bit // 8 < len(data) and data[bit // 8] >> (7 - bit % 8) & 1
    )


def _basic_constraints(fields: ExtensionFields, value: bytes) -> None:
    fault = "x509: invalid basic constraints"
    reader = der.Reader(value).enter(der.SEQUENCE, fault)
    fields["IsCA"] = reader.peek(der.BOOLEAN) and reader.boolean(fault)
    length = reader.integer(fault) if reader.peek(der.INTEGER) else None
    if length is not None and not 0 <= length < 1 << 63:
        raise BuiltinError(fault)
    fields["MaxPathLen"] = -1 if length is None else length
    fields["BasicConstraintsValid"] = True
    fields["MaxPathLenZero"] = length == 0


def _distribution_points(fields: ExtensionFields, value: bytes) -> None:
    fault = "x509: invalid CRL distribution point"
    texts: list[str] = list(fields["CRLDistributionPoints"] or ())
    points = der.Reader(value).enter(der.SEQUENCE, f"{fault}s")
    while points:
        point = points.enter(der.SEQUENCE, fault)
        name = point.optional(der.context(0, constructed=True), fault)
        if name is None:
            continue
        full_name = name.enter(der.context(0, constructed=True), fault)
        while full_name.peek(_URI):
            texts.append(full_name.read(_URI, fault).decode("utf-8", "replace"))
    fields["CRLDistributionPoints"] = texts or None


def _authority_key(fields: ExtensionFields, value: bytes) -> None:
    fault = "x509: invalid authority key identifier"
    reader = der.Reader(value).enter(der.SEQUENCE, fault)
    if reader.peek(der.context(0)):
        fields["AuthorityKeyId"] = encode(reader.read(der.context(0), fault))


def _subject_key(fields: ExtensionFields, value: bytes) -> None:
    content = der.Reader(value).read(der.OCTET_STRING, "x509: invalid subject key identifier")
    fields["SubjectKeyId"] = encode(content)


def _policy_constraints(fields: ExtensionFields, value: bytes) -> None:
    fault = "x509: invalid policy constraints extension"
    reader = der.Reader(value).enter(der.SEQUENCE, fault)
    for number, name in ((0, "RequireExplicitPolicy"), (1, "InhibitPolicyMapping")):
        if reader.peek(der.context(number)):
            fields[name] = reader.integer(fault, der.context(number))
            fields[f"{name}Zero"] = fields[name] == 0


def _ext_key_usage(fields: ExtensionFields, value: bytes) -> None:
    fault = "x509: invalid extended key usages"
    known: list[int] = []
    unknown: list[list[int]] = []
    reader = der.Reader(value).enter(der.SEQUENCE, fault)
    while reader:
        identifier = reader.oid(fault)
        usage = _EXT_KEY_USAGES.get(identifier)
        if usage is None:
            unknown.append(list(identifier))
        else:
            known.append(usage)
    fields |= {"ExtKeyUsage": known or None, "UnknownExtKeyUsage": unknown or None}


def _policies(fields: ExtensionFields, value: bytes) -> None:
    fault = "x509: invalid certificate policies"
    identifiers: list[tuple[int, ...]] = []
    reader = der.Reader(value).enter(der.SEQUENCE, fault)
    while reader:
        identifier = reader.enter(der.SEQUENCE, fault).oid(fault)
        if identifier in identifiers:
            raise BuiltinError(fault)
        identifiers.append(identifier)
    fields["Policies"] = [_dotted(identifier) for identifier in identifiers] or None
    fields["PolicyIdentifiers"] = [list(identifier) for identifier in identifiers]


def _policy_mappings(fields: ExtensionFields, value: bytes) -> None:
    fault = "x509: invalid policy mappings extension"
    mappings = []
    reader = der.Reader(value).enter(der.SEQUENCE, fault)
    while reader:
        pair = reader.enter(der.SEQUENCE, fault)
        issuer, subject = pair.oid(fault), pair.oid(fault)
        mappings.append(
            {"IssuerDomainPolicy": _dotted(issuer), "SubjectDomainPolicy": _dotted(subject)}
        )
    fields["PolicyMappings"] = mappings or None


def _inhibit_any(fields: ExtensionFields, value: bytes) -> None:
    number = der.Reader(value).integer("x509: invalid inhibit any policy extension")
    fields |= {"InhibitAnyPolicy": number, "InhibitAnyPolicyZero": number == 0}


def _authority_info(fields: ExtensionFields, value: bytes) -> None:
    fault = "x509: invalid authority info access"
    by_method: dict[tuple[int, ...], list[str]] = {_OCSP: [], _ISSUERS: []}
    reader = der.Reader(value).enter(der.SEQUENCE, fault)
    while reader:
        description = reader.enter(der.SEQUENCE, fault)
        method = description.oid(fault)
        if description.peek(_URI) and method in by_method:
            by_method[method].append(description.read(_URI, fault).decode("utf-8", "replace"))
    fields["OCSPServer"] = by_method[_OCSP] or None
    fields["IssuingCertificateURL"] = by_method[_ISSUERS] or None


def _name_constraints(fields: ExtensionFields, value: bytes) -> bool:
    fault = "x509: invalid NameConstraints extension"
    outer = der.Reader(value)
    reader = outer.enter(der.SEQUENCE, fault)
    sides = [
        (side, reader.optional(der.context(number, constructed=True), fault))
        for number, side in enumerate(("Permitted", "Excluded"))
    ]
    if outer or reader:
        raise BuiltinError(fault)
    if not any(subtrees for _, subtrees in sides):
        raise BuiltinError("x509: empty name constraints extension")
    understood = True
    for side, subtrees in sides:
        while subtrees:
            tag, content, _ = subtrees.enter(der.SEQUENCE, fault).any(fault)
            constraint = _constraint(tag, content)
            if constraint is None:
                understood = False
                continue
            field = f"{side}{constraint[0]}"
            fields[field] = [*(fields[field] or ()), constraint[1]]
    return understood


def _constraint(tag: int, content: bytes) -> tuple[str, Any] | None:
    """Returns the field that a constraint belongs to, and its value."""
    if tag == der.context(7):
        return "IPRanges", _ip_range(content)
    kind = {
        der.context(1): ("EmailAddresses", "rfc822Name"),
        der.context(2): ("DNSDomains", "dnsName"),
        der.context(6): ("URIDomains", "URI"),
    }.get(tag)
    if kind is None:
        return None
    field, name = kind
    text = content.decode("latin-1")
    if not text.isascii():
        raise BuiltinError(
            f"x509: invalid constraint value: x509: {json.dumps(text)} cannot be encoded as an IA5String"
        )
    fault = f"x509: failed to parse {name} constraint {json.dumps(text)}"
    if tag == der.context(6) and _is_ip(text):
        raise BuiltinError(f"{fault}: cannot be IP address")
    domain = text.rpartition("@")[2] if tag == der.context(1) else text
    if not _domain_name_valid(domain, constraint=True):
        raise BuiltinError(fault)
    return field, text


def _ip_range(content: bytes) -> ExtensionFields:
    if len(content) not in (8, 32):
        raise BuiltinError(
            f"x509: IP constraint contained value of length {len(content)}",
        )
    half = len(content) // 2
    mask = content[half:]
    inverted = int.from_bytes(mask, "big") ^ ((1 << 8 * half) - 1)
    if inverted & (inverted + 1):
        raise BuiltinError(f"x509: IP constraint contained invalid mask {mask.hex()}")
    return {"IP": ip_text(content[:half]), "Mask": encode(mask)}


def _is_ip(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


def ip_text(data: bytes) -> str:
    """Returns an address of 4 or 16 bytes as Go's ``net.IP`` prints it."""
    address = ipaddress.ip_address(data)
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return str(address)


def _dotted(identifier: tuple[int, ...]) -> str:
    return ".".join(map(str, identifier))


_NEVER_CRITICAL: Final = {14: "subject key identifier", 35: "authority key identifier"}
_HANDLERS: Final[dict[int, Callable[[ExtensionFields, bytes], None]]] = {
    14: _subject_key,
    15: _key_usage,
    19: _basic_constraints,
    31: _distribution_points,
    32: _policies,
    33: _policy_mappings,
    35: _authority_key,
    36: _policy_constraints,
    37: _ext_key_usage,
    54: _inhibit_any,
}
