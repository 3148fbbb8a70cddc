"""IP addresses and CIDR ranges (k8s.io/apiserver, pkg/cel/library/ip.go, cidr.go)."""

from __future__ import annotations

from ipaddress import IPv6Address
from typing import Final

from webhook.cel.errors import EvaluationError
from webhook.cel.library.addresses import Address, InvalidAddress, parse_address, parse_prefix
from webhook.cel.library.registry import form
from webhook.cel.run.values import Opaque
from webhook.golang.strings import quote

IP: Final = "net.IP"
CIDR: Final = "net.CIDR"


def _go_text(address: Address) -> str:
    return str(address)


def _is_mapped(address: Address) -> bool:
    return isinstance(address, IPv6Address) and address.ipv4_mapped is not None


def read_ip(text: str) -> Address:
    """Returns an IP address; raises with Kubernetes' message."""
    try:
        address, zone = parse_address(text)
    except InvalidAddress as error:
        raise EvaluationError(
            f"IP Address {quote(text)} parse error during conversion from string: {error}"
        ) from None
    if zone:
        raise EvaluationError(f"IP address {quote(text)} with zone value is not allowed")
    if _is_mapped(address):
        raise EvaluationError(f"IPv4-mapped IPv6 address {quote(text)} is not allowed")
    return address


def _ip(address: Address) -> Opaque:
    return Opaque(IP, address, _go_text(address))


@form("ip", str)
def ip(text: str) -> Opaque:
    """Returns the address of a text."""
    return _ip(read_ip(text))


@form("isIP", str)
def is_ip(text: str) -> bool:
    """Returns whether a text is an address."""
    try:
        read_ip(text)
    except EvaluationError:
        return False
    return True


@form("ip.isCanonical", str)
def is_canonical(text: str) -> bool:
    """Returns whether an address is in its canonical form."""
    return _go_text(read_ip(text)) == text


@form("family", IP)
def family(address: Opaque) -> int:
    """Returns 4 or 6."""
    return int(address.value.version)


@form("isUnspecified", IP)
def is_unspecified(address: Opaque) -> bool:
    """Returns whether an address is ``0.0.0.0`` or ``::``."""
    return bool(address.value.is_unspecified)


@form("isLoopback", IP)
def is_loopback(address: Opaque) -> bool:
    """Returns whether an address is a loopback address."""
    return bool(address.value.is_loopback)


@form("isLinkLocalMulticast", IP)
def is_link_local_multicast(address: Opaque) -> bool:
    """Returns whether an address is in ``224.0.0.0/24``, or in ``ff02::/16`` with any flags."""
    packed = address.value.packed
    if address.value.version == 4:
        return bool(packed[:3] == b"\xe0\x00\x00")
    return bool(packed[0] == 0xFF and packed[1] & 0x0F == 0x02)


@form("isLinkLocalUnicast", IP)
def is_link_local_unicast(address: Opaque) -> bool:
    """Returns whether an address is in ``169.254.0.0/16`` or ``fe80::/10``."""
    packed = address.value.packed
    if address.value.version == 4:
        return bool(packed[:2] == b"\xa9\xfe")
    return bool(packed[0] == 0xFE and packed[1] & 0xC0 == 0x80)


@form("isGlobalUnicast", IP)
def is_global_unicast(ip: Opaque) -> bool:
    """Returns whether an address is in none of these groups, and no broadcast or multicast address."""
    address = ip.value
    if address.version == 4 and address.packed in {b"\xff\xff\xff\xff", b"\0\0\0\0"}:
        return False
    special = address.is_unspecified or address.is_loopback or address.is_multicast
    return not special and not is_link_local_unicast(ip)


# --- ranges ---------------------------------------------------------------------------------------


def _cidr(address: Address, bits: int) -> Opaque:
    return Opaque(CIDR, (address, bits), f"{_go_text(address)}/{bits}")


_CONVERTING: Final = "network address parse error during conversion from string: "


@form("cidr", str)
def cidr(text: str) -> Opaque:
    """Returns the range of a text."""
    try:
        address, bits = parse_prefix(text)
    except InvalidAddress as error:
        raise EvaluationError(f"{_CONVERTING}{_CONVERTING}{error}") from None
    if _is_mapped(address):
        raise EvaluationError(f"{_CONVERTING}IPv4-mapped IPv6 address {quote(text)} is not allowed")
    return _cidr(address, bits)


@form("isCIDR", str)
def is_cidr(text: str) -> bool:
    """Returns whether a text is a range."""
    try:
        cidr(text)
    except EvaluationError:
        return False
    return True


def _masked(address: Address, bits: int) -> int:
    shift = address.max_prefixlen - bits
    return int(address) >> shift << shift


def _has(range_: Opaque, address: Address) -> bool:
    base, bits = range_.value
    return bool(base.version == address.version) and _masked(base, bits) == _masked(address, bits)


@form("containsIP", CIDR, IP)
def contains_ip(range_: Opaque, address: Opaque) -> bool:
    """Returns whether a range has an address."""
    return _has(range_, address.value)


@form("containsIP", CIDR, str)
def contains_ip_text(range_: Opaque, text: str) -> bool:
    """Returns whether a range has an address that is given as text."""
    try:
        address = read_ip(text)
    except EvaluationError:  # Kubernetes does not report the fault of the text
        raise EvaluationError("no such overload") from None
    return _has(range_, address)


@form("containsCIDR", CIDR, CIDR)
def contains_cidr(range_: Opaque, other: Opaque) -> bool:
    """Returns whether a range includes another."""
    address, bits = other.value
    return range_.value[1] <= bits and _has(range_, address)


@form("containsCIDR", CIDR, str)
def contains_cidr_text(range_: Opaque, text: str) -> bool:
    """Returns whether a range includes another that is given as text."""
    return contains_cidr(range_, cidr(text))


@form(".ip", CIDR)
def ip_of(range_: Opaque) -> Opaque:
    """Returns the address of a range as it was written."""
    return _ip(range_.value[0])


@form("masked", CIDR)
def masked(range_: Opaque) -> Opaque:
    """Returns the range with its first address."""
    address, bits = range_.value
    return _cidr(type(address)(_masked(address, bits)), bits)


@form("prefixLength", CIDR)
def prefix_length(range_: Opaque) -> int:
    """Returns the prefix length, in bits."""
    return int(range_.value[1])
