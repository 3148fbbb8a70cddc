"""The string formats of Kubernetes' schemas (kube-openapi's strfmt); unknown formats always hold.

The API server looks up a format's name without its hyphens.
"""

from __future__ import annotations

import ipaddress
import re
import unicodedata
from collections.abc import Callable
from typing import Final

from webhook.api.names import LABEL, SUBDOMAIN, UUID
from webhook.duration import InvalidDuration, TooLongDuration, parse_duration
from webhook.golang.mail import is_address
from webhook.golang.url import fault_of_request_uri
from webhook.rego.builtins.json_schema.formats import is_format

# A host name in RFC 1035, a label in RFC 1123, and the name of an object in Kubernetes.
_HOSTNAME_BYTES_MAX: Final = 255
_LABEL_BYTES_MAX: Final = 63
_NAME_BYTES_MAX: Final = 253
# No top-level domain is shorter.
_TOP_LEVEL_MIN: Final = 2
_TIME: Final = re.compile(r"([0-9]{2}):([0-9]{2}):([0-9]{2})(.[0-9]+)?(z|([+-][0-9]{2}:[0-9]{2}))")
_HEX: Final = "[0-9a-fA-F]"
_MAC: Final = re.compile(
    rf"{_HEX}{{2}}([:-]){_HEX}{{2}}(?:\1{_HEX}{{2}}){{4}}(?:(?:\1{_HEX}{{2}}){{2}}|(?:\1{_HEX}{{2}}){{14}})?"
    rf"|{_HEX}{{4}}(?:\.{_HEX}{{4}}){{2}}(?:\.{_HEX}{{4}}|(?:\.{_HEX}{{4}}){{7}})?"
    rf"|{_HEX}{{12}}|{_HEX}{{16}}|{_HEX}{{40}}"
)
_BASE64: Final = re.compile(
    r"(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{4})"
)
_CREDIT_CARD: Final = re.compile(
    r"4[0-9]{12}(?:[0-9]{3})?|5[1-5][0-9]{14}|6(?:011|5[0-9][0-9])[0-9]{12}|3[47][0-9]{13}"
    r"|3(?:0[0-5]|[68][0-9])[0-9]{11}|(?:2131|1800|35[0-9]{3})[0-9]{11}"
)
_COLOR_PART: Final = "(0|[1-9][0-9]?|1[0-9][0-9]?|2[0-4][0-9]|25[0-5])"
_SPACES: Final = r"[\t\n\f\r ]*"
_RGB_COLOR: Final = re.compile(
    rf"rgb\({_SPACES}" + rf"{_SPACES},{_SPACES}".join([_COLOR_PART] * 3) + rf"{_SPACES}\)"
)
_HEX_COLOR: Final = re.compile(f"#?({_HEX}{{3}}|{_HEX}{{6}})")
# The pattern takes a number with fewer separators; the length asks for both.
_SSN: Final = re.compile("[0-9]{3}[- ]?[0-9]{2}[- ]?[0-9]{4}")
_SSN_BYTES: Final = 11
_OBJECT_ID: Final = re.compile(f"{_HEX}{{24}}")
_NAME: Final = re.compile(LABEL)
_LONG_NAME: Final = re.compile(SUBDOMAIN)
_NUMBER: Final = re.compile("[0-9]+")
_SPAN: Final = re.compile(r"([0-9]+)[\t\n\f\r ]*([A-Za-zµ]+)")
_UNITS: Final = frozenset({"ns", "us", "µs", "ms", "s", "m", "h", "hr", "d", "w", "wk"})
_UNIT_BEGINS: Final = ("nano", "micro", "milli", "sec", "min", "hour", "day", "week")
_INT64: Final = 2**63 - 1


def holds(name: str, value: str) -> bool:
    """Whether a text has the format of this name."""
    check = _FORMATS.get(name.replace("-", ""))
    return check is None or bool(check(value))


def _bytes(value: str) -> int:
    return len(value.encode("utf-8", "surrogatepass"))


def _is_hostname(value: str) -> bool:
    """Whether a text is a host name.

    Letters of any script count, and one label may end with a hyphen.
    """
    *labels, last = value.split(".")
    if _bytes(value) > _HOSTNAME_BYTES_MAX or any(
        _bytes(label) > _LABEL_BYTES_MAX for label in (*labels, last)
    ):
        return False
    if not labels:
        return bool(last) and _are_hostname_characters(last[0] + last[1:].removeprefix("-"))
    return (
        all(
            label and _are_hostname_characters(label[0] + label[-1] + label.replace("-", ""))
            for label in labels
        )
        and len(last) >= _TOP_LEVEL_MIN
        and all(_is_letter(character) for character in last)
    )


def _are_hostname_characters(text: str) -> bool:
    return all(
        character in "0123456789"
        or _is_letter(character)
        or unicodedata.category(character)[0] == "S"
        for character in text
    )


def _is_letter(character: str) -> bool:
    return unicodedata.category(character)[0] == "L"


def _is_date_time(value: str) -> bool:
    date, separator, rest = value.lower().partition("t")
    time = _TIME.fullmatch(rest.partition("t")[0])
    if not separator or not is_format("date", date) or time is None:
        return False
    return time[1] <= "23" and time[2] <= "59" and time[3] <= "59"


def _is_duration(value: str) -> bool:
    """Whether a text is a duration in Go's or Scala's notation: ``22 ns``, ``3 weeks``."""
    try:
        parse_duration(value)
    except (InvalidDuration, TooLongDuration):
        pass
    else:
        return True
    is_known = False
    for number, word in _SPAN.findall(value):
        # The length first: Python refuses to read a number of thousands of digits.
        if len(number.lstrip("0")) > len(str(_INT64)) or int(number) > _INT64:
            return False
        unit = word.lower()
        is_known = is_known or unit in _UNITS or unit.startswith(_UNIT_BEGINS)
    return is_known


def _lenient_address(value: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """Returns an IP address whose numbers may have leading zeros, as before Go 1.17."""
    head, colon, last = value.rpartition(":")
    if "." in last:
        parts = last.split(".")
        if not all(_NUMBER.fullmatch(part) for part in parts):
            return None
        last = ".".join(part.lstrip("0") or "0" for part in parts)
    return _strict_address(f"{head}{colon}{last}")


def _strict_address(value: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    if "%" in value or not value.isascii():
        return None
    try:
        return ipaddress.ip_address(value)
    except ValueError:
        return None


def _is_cidr(value: str) -> bool:
    text, slash, bits = value.partition("/")
    address = _lenient_address(text)
    if not slash or address is None or not _NUMBER.fullmatch(bits):
        return False
    bits = bits.lstrip("0") or "0"
    return len(bits) <= len("128") and int(bits) <= address.max_prefixlen


def _is_credit_card(value: str) -> bool:
    """Whether a text has an issuer's digits and their check digit (Luhn's sum)."""
    digits = re.sub("[^0-9]+", "", value)
    if not _CREDIT_CARD.fullmatch(digits):
        return False
    doubled = [2 * int(digit) for digit in digits[-2::-2]]
    total = sum(int(digit) for digit in digits[::-2])
    return (total + sum(digit - 9 if digit > 9 else digit for digit in doubled)) % 10 == 0


def _without_spaces(value: str) -> str:
    return re.sub(r"[\t\n\f\r -]+", "", value)


def _is_isbn10(value: str) -> bool:
    digits = _without_spaces(value)
    if not re.fullmatch("[0-9]{9}[0-9X]", digits):
        return False
    values = [10 if digit == "X" else int(digit) for digit in digits]
    return sum(place * value for place, value in enumerate(values, 1)) % 11 == 0


def _is_isbn13(value: str) -> bool:
    digits = _without_spaces(value)
    if not re.fullmatch("[0-9]{13}", digits):
        return False
    return sum((3 if place % 2 else 1) * int(digit) for place, digit in enumerate(digits)) % 10 == 0


def _uuid(version: str, variant: str) -> re.Pattern[str]:
    return re.compile(
        rf"{_HEX}{{8}}-?{_HEX}{{4}}-?{version}{_HEX}{{3}}-?{variant}{_HEX}{{3}}-?{_HEX}{{12}}"
    )


_FORMATS: Final[dict[str, Callable[[str], object]]] = {
    "bsonobjectid": _OBJECT_ID.fullmatch,
    "byte": _BASE64.fullmatch,
    "cidr": _is_cidr,
    "creditcard": _is_credit_card,
    "date": lambda value: is_format("date", value),
    "datetime": _is_date_time,
    "duration": _is_duration,
    "email": is_address,
    "hexcolor": _HEX_COLOR.fullmatch,
    "hostname": _is_hostname,
    "ipv4": lambda value: "." in value and _lenient_address(value) is not None,
    "ipv6": lambda value: ":" in value and _strict_address(value) is not None,
    "isbn": lambda value: _is_isbn10(value) or _is_isbn13(value),
    "isbn10": _is_isbn10,
    "isbn13": _is_isbn13,
    "k8slongname": lambda value: _bytes(value) <= _NAME_BYTES_MAX and _LONG_NAME.fullmatch(value),
    "k8sshortname": lambda value: _bytes(value) <= _LABEL_BYTES_MAX and _NAME.fullmatch(value),
    "mac": _MAC.fullmatch,
    "rgbcolor": _RGB_COLOR.fullmatch,
    "ssn": lambda value: _bytes(value) == _SSN_BYTES and _SSN.fullmatch(value),
    "uri": lambda value: fault_of_request_uri(value) is None,
    "uuid": UUID.fullmatch,
    "uuid3": _uuid("3", _HEX).fullmatch,
    "uuid4": _uuid("4", "[89abAB]").fullmatch,
    "uuid5": _uuid("5", "[89abAB]").fullmatch,
}
