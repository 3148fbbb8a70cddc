"""The formats that gojsonschema checks; an unknown format always matches."""

from __future__ import annotations

import datetime as dt
import ipaddress
import re
from collections.abc import Callable
from typing import Final

from webhook.golang import url as go_url
from webhook.golang.mail import is_address
from webhook.rego.errors import BuiltinError
from webhook.rego.run.patterns import pattern as compile_pattern

_LABEL: Final = r"(?:[a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9\-]{0,61}[a-zA-Z0-9])"
_HOSTNAME: Final = re.compile(rf"{_LABEL}(?:\.{_LABEL})*")
_UUID: Final = re.compile(r"[a-fA-F0-9]{8}(?:-[a-fA-F0-9]{4}){3}-[a-fA-F0-9]{12}")
_POINTER: Final = re.compile(r"(?:/(?:[^~/]|~0|~1)*)*")
_RELATIVE_POINTER: Final = re.compile(r"(?:0|[1-9][0-9]*)(?:#|(?:/(?:[^~/]|~0|~1)*)*)")
_DATE: Final = re.compile(r"\d{4}-\d{2}-\d{2}")
# Go reads an hour of one or two digits, and a fraction of a second after a dot or a comma.
_TIME: Final = re.compile(r"(\d{1,2}):(\d{2}):(\d{2})(?:[.,]\d+)?(Z|[+-]\d{2}:\d{2})?")


def is_format(name: str, text: str) -> bool:
    """Returns whether ``text`` has the format of this name."""
    check = _FORMATS.get(name)
    return check is None or check(text)


def _is_date(text: str) -> bool:
    if not _DATE.fullmatch(text):
        return False
    try:
        dt.date.fromisoformat(text)
    except ValueError:
        # Go has a year 0, which is a leap year.
        return text.startswith("0000") and _is_date(f"2000{text[4:]}")
    return True


def _is_time(text: str, *, zone_needed: bool = False) -> bool:
    matched = _TIME.fullmatch(text)
    if matched is None or (zone_needed and matched[4] is None):
        return False
    hour, minute, second = int(matched[1]), int(matched[2]), int(matched[3])
    if hour > 23 or minute > 59 or second > 59:
        return False
    zone = matched[4] or "Z"
    return zone == "Z" or (int(zone[1:3]) <= 24 and int(zone[4:6]) < 60)


def _is_date_time(text: str) -> bool:
    if _is_time(text) or _is_date(text):
        return True
    date, separator, time = text.partition("T")
    return bool(separator) and _is_date(date) and _is_time(time, zone_needed=True)


def _is_address(text: str, version: int) -> bool:
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return False
    if "%" in text:
        return False
    return address.version == version or (version == 4 and "." in text)


def _url(text: str) -> go_url.Url | None:
    if "\\" in text:
        return None
    try:
        return go_url.parse(text)
    except ValueError:
        return None


def _is_uri(text: str) -> bool:
    url = _url(text)
    return url is not None and bool(url.scheme)


def _is_uri_template(text: str) -> bool:
    url = _url(text)
    return url is not None and "{" not in re.sub(r"\{[^}]*\}", "", url.path)


def _is_regex(text: str) -> bool:
    try:
        compile_pattern(text)
    except BuiltinError:
        return False
    return True


_FORMATS: Final[dict[str, Callable[[str], bool]]] = {
    "date": _is_date,
    "time": _is_time,
    "date-time": _is_date_time,
    "hostname": lambda text: len(text) < 256 and _HOSTNAME.fullmatch(text) is not None,
    "email": is_address,
    "idn-email": is_address,
    "ipv4": lambda text: _is_address(text, 4),
    "ipv6": lambda text: _is_address(text, 6) and ":" in text,
    "uri": _is_uri,
    "uri-reference": lambda text: _url(text) is not None,
    "iri": _is_uri,
    "iri-reference": lambda text: _url(text) is not None,
    "uri-template": _is_uri_template,
    "uuid": lambda text: _UUID.fullmatch(text) is not None,
    "regex": _is_regex,
    "json-pointer": lambda text: _POINTER.fullmatch(text) is not None,
    "relative-json-pointer": lambda text: _RELATIVE_POINTER.fullmatch(text) is not None,
}
