"""The string formats that Kubernetes' schemas check; any other name holds for all."""

from __future__ import annotations

import base64
import binascii
import datetime as dt
import ipaddress
import re
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from webhook.api.patterns import UUID

if TYPE_CHECKING:
    from collections.abc import Callable

_HOSTNAME: Final = re.compile(
    r"([a-zA-Z0-9]([-a-zA-Z0-9]{0,61}[a-zA-Z0-9])?)(\.[a-zA-Z0-9]([-a-zA-Z0-9]{0,61}[a-zA-Z0-9])?)*"
)
_DATE_TIME: Final = re.compile(
    r"\d{4}-\d{2}-\d{2}[tT ]\d{2}:\d{2}:\d{2}(\.\d+)?([zZ]|[+-]\d{2}:?\d{2})"
)
_MAC: Final = re.compile(r"([0-9a-fA-F]{2}[:-]){5}([0-9a-fA-F]{2})")
_EMAIL: Final = re.compile(r"[^@\s]+@[^@\s]+")
_DURATION: Final = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)\s*(ns|us|µs|ms|s|m|h|d|w)(.*)")


def holds(name: str, value: str) -> bool:
    """Whether a text has the format of this name."""
    check = _FORMATS.get(name.replace("_", "-"))
    if check is None:
        return True
    try:
        return bool(check(value))
    except (ValueError, binascii.Error):
        return False


def _date(value: str) -> object:
    return dt.date.fromisoformat(value)


def _ipv4(value: str) -> object:
    return ipaddress.IPv4Address(value)


def _ipv6(value: str) -> object:
    return ipaddress.IPv6Address(value)


def _cidr(value: str) -> object:
    return "/" in value and ipaddress.ip_interface(value)


def _byte(value: str) -> bool:
    base64.b64decode(value, validate=True)
    return True


def _uri(value: str) -> object:
    return urlsplit(value).scheme


_FORMATS: Final[dict[str, Callable[[str], object]]] = {
    "byte": _byte,
    "cidr": _cidr,
    "date": _date,
    "date-time": _DATE_TIME.fullmatch,
    "datetime": _DATE_TIME.fullmatch,
    "duration": _DURATION.fullmatch,
    "email": _EMAIL.fullmatch,
    "hostname": _HOSTNAME.fullmatch,
    "ipv4": _ipv4,
    "ipv6": _ipv6,
    "mac": _MAC.fullmatch,
    "uri": _uri,
    "uuid": UUID.fullmatch,
}
