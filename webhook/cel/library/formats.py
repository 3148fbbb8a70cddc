"""Named formats (k8s.io/apiserver, pkg/cel/library/format.go): ``format.dns1123Label().validate(x)``.

:data:`_FORMATS` has a check for each: it returns the faults of a text, and none where the text has
the format. The texts of faults are the API server's.
"""

from __future__ import annotations

import base64
import binascii
import datetime as dt
import re
from collections.abc import Callable
from typing import Final

from webhook.api.names import LABEL, LABEL_1035, LABEL_VALUE, QUALIFIED, SUBDOMAIN, UUID
from webhook.cel.library.registry import form
from webhook.cel.run.values import NONE, Opaque, Optional
from webhook.golang.url import fault_of_request_uri

NAME: Final = "kubernetes.NamedFormat"
_MAX_TEXT: Final = 100_000
"""The longest text that is checked, in characters."""


_ALPHANUMERIC: Final = "and must start and end with an alphanumeric character"
_LABEL_FAULT: Final = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', "
    + _ALPHANUMERIC
)
_SUBDOMAIN_FAULT: Final = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or "
    f"'.', {_ALPHANUMERIC}"
)
_LABEL_1035_FAULT: Final = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an "
    "alphabetic character, and end with an alphanumeric character"
)
_NAME_FAULT: Final = f"must consist of alphanumeric characters, '-', '_' or '.', {_ALPHANUMERIC}"
_LABEL_VALUE_FAULT: Final = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or "
    f"'.', {_ALPHANUMERIC}"
)


def _fault(message: str, pattern: str, *examples: str) -> str:
    shown = " or ".join([f"'{example}', " for example in examples])
    return f"{message} (e.g. {shown}regex used for validation is '{pattern}')"


def _too_long(text: str, most: int) -> list[str]:
    size = len(text.encode("utf-8", "surrogateescape"))
    return [f"must be no more than {most} characters"] if size > most else []


def _is(pattern: str, text: str) -> bool:
    return re.fullmatch(pattern, text, re.ASCII) is not None


def _label(text: str) -> list[str]:
    faults = _too_long(text, 63)
    if not faults and _is(LABEL, text):
        return faults
    if len(text) <= _MAX_TEXT and _is(LABEL, text):
        return faults
    if _is(SUBDOMAIN, text):
        return [*faults, "must not contain dots"]
    return [*faults, _fault(_LABEL_FAULT, LABEL, "my-name", "123-abc")]


def _subdomain(text: str) -> list[str]:
    faults = _too_long(text, 253)
    if not _is(SUBDOMAIN, text):
        faults.append(_fault(_SUBDOMAIN_FAULT, SUBDOMAIN, "example.com"))
    return faults


def _label_1035(text: str) -> list[str]:
    faults = _too_long(text, 63)
    if not _is(LABEL_1035, text):
        faults.append(_fault(_LABEL_1035_FAULT, LABEL_1035, "my-name", "abc-123"))
    return faults


def _masked(text: str) -> str:
    """Returns a prefix with its last dash replaced: more text follows, so a dash there is valid."""
    return f"{text[:-2]}a" if len(text) > 1 and text.endswith("-") else text


def _qualified_name(text: str) -> list[str]:
    parts = text.split("/")
    faults: list[str] = []
    if len(parts) == 2:
        if not parts[0]:
            faults.append("prefix part must be non-empty")
        else:
            faults += [f"prefix part {of_prefix}" for of_prefix in _subdomain(parts[0])]
    elif len(parts) != 1:
        fault = _fault(f"a qualified name {_NAME_FAULT}", QUALIFIED, "MyName", "my.name", "123-abc")
        return [
            f"{fault} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
        ]
    name = parts[-1]
    if not name:
        faults.append("name part must be non-empty")
    else:
        faults += [f"name part {too_long}" for too_long in _too_long(name, 63)]
    if not _is(QUALIFIED, name):
        fault = _fault(_NAME_FAULT, QUALIFIED, "MyName", "my.name", "123-abc")
        faults.append(f"name part {fault}")
    return faults


def _label_value(text: str) -> list[str]:
    faults = _too_long(text, 63)
    if not _is(LABEL_VALUE, text):
        faults.append(_fault(_LABEL_VALUE_FAULT, LABEL_VALUE, "MyValue", "my_value", "12345"))
    return faults


def _uri(text: str) -> list[str]:
    fault = fault_of_request_uri(text)
    return [] if fault is None else [fault]


_DATE_TIME: Final = re.compile(
    r"([0-9]{2,})-((0[1-9])|(1[0-2]))-((0[1-9])|([12][0-9])|(3[01]))[tT ]"
    r"([01][0-9]|2[0-3]):([0-5][0-9]):(([0-5][0-9])|60)(\.[0-9]+)?"
    r"([zZ]|([+-]([01][0-9]|2[0-3]):?[0-5][0-9]))",
    re.ASCII,
)


def _uuid(text: str) -> list[str]:
    return [] if UUID.fullmatch(text) else ["does not match the UUID format"]


def _byte(text: str) -> list[str]:
    plain = text.replace("\r", "").replace("\n", "")
    try:
        base64.b64decode(plain.encode("ascii"), validate=True)
    except (binascii.Error, UnicodeEncodeError):
        return ["invalid base64"]
    return []


def _is_date(text: str) -> bool:
    if not re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", text, re.ASCII):
        return False
    try:
        dt.date.fromisoformat(text)
    except ValueError:
        return False
    return True


def _date(text: str) -> list[str]:
    return [] if _is_date(text) else ["invalid date"]


def _datetime(text: str) -> list[str]:
    good = _DATE_TIME.fullmatch(text) and _is_date(text[:10])
    return [] if good else ["invalid datetime"]


_FORMATS: Final[dict[str, tuple[str, Callable[[str], list[str]]]]] = {
    "dns1123Label": ("DNS1123Label", _label),
    "dns1123Subdomain": ("DNS1123Subdomain", _subdomain),
    "dns1035Label": ("DNS1035Label", _label_1035),
    "qualifiedName": ("QualifiedName", _qualified_name),
    "dns1123LabelPrefix": ("DNS1123LabelPrefix", lambda text: _label(_masked(text))),
    "dns1123SubdomainPrefix": ("DNS1123SubdomainPrefix", lambda text: _subdomain(_masked(text))),
    "dns1035LabelPrefix": ("DNS1035LabelPrefix", lambda text: _label_1035(_masked(text))),
    "labelValue": ("LabelValue", _label_value),
    "uri": ("URI", _uri),
    "uuid": ("uuid", _uuid),
    "byte": ("byte", _byte),
    "date": ("date", _date),
    "datetime": ("datetime", _datetime),
}

_VALUES: Final = {name: Opaque(NAME, name, shown) for name, (shown, _) in _FORMATS.items()}

for _name, _value in _VALUES.items():
    form(f"format.{_name}")(lambda value=_value: value)


@form("format.named", str)
def named(name: str) -> Optional:
    """Returns the format of this name, as an optional."""
    value = _VALUES.get(name)
    return NONE if value is None else Optional(value)


@form("validate", NAME, str)
def validate(named_format: Opaque, text: str) -> Optional:
    """Returns the faults of a text; an empty optional where it has the format."""
    if len(text) > _MAX_TEXT:
        return Optional([f"must be no more than {_MAX_TEXT} characters"])
    faults = _FORMATS[named_format.value][1](text)
    return Optional(faults) if faults else NONE
