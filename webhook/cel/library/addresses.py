"""IP addresses and CIDR ranges as Go's ``net/netip`` parses them, with its error messages."""

from __future__ import annotations

import re
from ipaddress import IPv4Address, IPv6Address
from typing import Final, NoReturn, TypeAlias

from webhook.golang.strings import quote

Address: TypeAlias = "IPv4Address | IPv6Address"

MAX_LENGTH: Final = 1_000
"""The longest text that is parsed, in characters; an address has at most 45, and a zone."""

_GROUP: Final = re.compile(r"[0-9a-fA-F]*", re.ASCII)
_FIRST_MARK: Final = re.compile(r"[.:%]")


class InvalidAddress(ValueError):
    """The text is no address or range; the message is Go's."""


def _refuse(text: str, message: str, at: str = "") -> NoReturn:
    where = f" (at {quote(at)})" if at else ""
    raise InvalidAddress(f"ParseAddr({quote(text)}): {message}{where}")


def parse_address(text: str) -> tuple[Address, str]:
    """Returns an address and its zone."""
    mark = _FIRST_MARK.search(text)
    if mark is None or len(text) > MAX_LENGTH:
        _refuse(text, "unable to parse IP")
    if mark[0] == ".":
        return IPv4Address(bytes(_octets(text, text))), ""
    if mark[0] == "%":
        _refuse(text, "missing IPv6 address")
    return _parse_v6(text)


def _octets(part: str, whole: str) -> list[int]:
    """Returns the four numbers of the IPv4 part of a text."""
    octets: list[int] = []
    digits = ""
    for at, mark in enumerate(part):
        if mark in "0123456789":
            if digits == "0":
                _refuse(whole, "IPv4 field has octet with leading zero")
            digits += mark
            if int(digits) > 255:
                _refuse(whole, "IPv4 field has value >255")
        elif mark != ".":
            _refuse(whole, "unexpected character", part[at:])
        elif not digits or at == len(part) - 1:
            _refuse(whole, "IPv4 field must have at least one digit", part[at:])
        elif len(octets) == 3:
            _refuse(whole, "IPv4 address too long")
        else:
            octets.append(int(digits))
            digits = ""
    if len(octets) < 3:
        _refuse(whole, "IPv4 address too short")
    return [*octets, int(digits)]


def _parse_v6(text: str) -> tuple[IPv6Address, str]:
    rest, percent, zone = text.partition("%")
    if percent and not zone:
        _refuse(text, "zone must be a non-empty string")
    octets: list[int] = []
    ellipsis = -1
    if rest.startswith("::"):
        ellipsis, rest = 0, rest[2:]
    while rest and len(octets) < 16:
        group = _group(rest, text)
        if rest[len(group) : len(group) + 1] == ".":
            if ellipsis < 0 and len(octets) != 12:
                _refuse(
                    text,
                    "embedded IPv4 address must replace the final 2 fields of the address",
                    rest,
                )
            if len(octets) > 12:
                _refuse(
                    text,
                    "too many hex fields to fit an embedded IPv4 at the end of the address",
                    rest,
                )
            octets += _octets(rest, text)
            rest = ""
            break
        octets += divmod(int(group, 16), 256)
        rest = rest[len(group) :]
        if not rest:
            break
        rest = _behind_colon(rest, text)
        if rest.startswith(":"):
            if ellipsis >= 0:
                _refuse(text, "multiple :: in address", rest)
            ellipsis, rest = len(octets), rest[1:]
    if rest:
        _refuse(text, "trailing garbage after address", rest)
    return IPv6Address(bytes(_expanded(octets, ellipsis, text))), zone


def _group(rest: str, text: str) -> str:
    match = _GROUP.match(rest)
    group = match[0] if match else ""
    if len(group) > 4:
        _refuse(text, "each group must have 4 or less digits", rest)
    if not group:
        _refuse(text, "each colon-separated field must have at least one digit", rest)
    return group


def _behind_colon(rest: str, text: str) -> str:
    if rest[0] != ":":
        _refuse(text, "unexpected character, want colon", rest)
    if len(rest) == 1:
        _refuse(text, "colon must be followed by more characters", rest)
    return rest[1:]


def _expanded(octets: list[int], ellipsis: int, text: str) -> list[int]:
    missing = 16 - len(octets)
    if missing and ellipsis < 0:
        _refuse(text, "address string too short")
    if not missing and ellipsis >= 0:
        _refuse(text, "the :: must expand to at least one field of zeros")
    return [*octets[:ellipsis], *([0] * missing), *octets[ellipsis:]] if missing else octets


def parse_prefix(text: str) -> tuple[Address, int]:
    """Returns the address and the prefix length of a range."""
    error_prefix = f"netip.ParsePrefix({quote(text)}): "
    head, slash, bits = text.rpartition("/")
    if not slash:
        raise InvalidAddress(f"{error_prefix}no '/'")
    try:
        address, zone = parse_address(head)
    except InvalidAddress as error:
        raise InvalidAddress(f"{error_prefix}{error}") from None
    if zone:
        raise InvalidAddress(f"{error_prefix}IPv6 zones cannot be present in a prefix")
    if not re.fullmatch("[1-9][0-9]{0,18}|[0-9]", bits, re.ASCII):
        raise InvalidAddress(f"{error_prefix}bad bits after slash: {quote(bits)}")
    if int(bits) > address.max_prefixlen:
        raise InvalidAddress(f"{error_prefix}prefix length out of range")
    return address, int(bits)
