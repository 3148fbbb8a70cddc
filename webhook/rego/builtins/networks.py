"""Built-ins on IP networks, and the look-up of host names.

Documented in OPA's reference under "Net"; behaviour from v1/topdown/cidr.go and
net.go, addresses read as Go's net/netip reads them. A host name is looked up
only where the caller lent a ``resolver``: a function from a name to addresses.
"""

from __future__ import annotations

import contextlib
import ipaddress
import re
from collections.abc import Iterator
from typing import Final

from webhook.rego.builtins.registry import Context, builtin, wrong_operand
from webhook.rego.errors import BuiltinError, EvaluationError
from webhook.rego.run.values import RegoObject, RegoSet, Value, ordered, sort_key
from webhook.rego.types import (
    ANY,
    ARRAY,
    BOOLEAN,
    STRING,
    any_of,
    array_of,
    object_of,
    set_of,
    static_array,
)
from webhook.values import dataclass

MAX_ADDRESSES: Final = 1 << 24
"""The most addresses of an expanded network: an IPv4 /8 with about 1.5 GB of text."""


@dataclass(frozen=True, slots=True)
class Network:
    """A network: its first address as a number, its size in bits, its address family's bits."""

    first: int
    prefix: int
    bits: int

    @property
    def last(self) -> int:
        """The last address."""
        return self.first | ((1 << (self.bits - self.prefix)) - 1)

    def has(self, address: int, bits: int) -> bool:
        """Returns whether an address of a family is in the network."""
        return bits == self.bits and self.first <= address <= self.last

    def __str__(self) -> str:
        return f"{address_text(self.first, self.bits)}/{self.prefix}"


def address_text(address: int, bits: int) -> str:
    """Returns an address as Go prints it: an IPv4 address in IPv6 as IPv4."""
    if bits == 32:
        return str(ipaddress.IPv4Address(address))
    if address >> 32 == 0xFFFF:
        return str(ipaddress.IPv4Address(address & 0xFFFFFFFF))
    return str(ipaddress.IPv6Address(address))


def parse_address(text: str) -> tuple[int, int] | None:
    """Returns address and bits, IPv4 in IPv6 as IPv4 (as in Go); None for an invalid text."""
    if "%" in text or "/" in text or not text.isascii():
        return None
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return None
    if address.version == 4:
        return int(address), 32
    if int(address) >> 32 == 0xFFFF:
        return int(address) & 0xFFFFFFFF, 32
    return int(address), 128


_PREFIX: Final = re.compile(r"\d{1,3}\Z", re.ASCII)


def parse_network(text: str) -> Network:
    """Returns the network; raises BuiltinError with Go's message."""
    parsed = _parse_cidr(text)
    if parsed is None:
        raise BuiltinError(f"invalid CIDR address: {text}")
    return parsed


def _parse_cidr(text: str) -> Network | None:
    name, slash, size = text.partition("/")
    if not slash or not _PREFIX.match(size) or "%" in name or not name.isascii():
        return None
    try:
        address = ipaddress.ip_address(name)
    except ValueError:
        return None
    bits = 32 if address.version == 4 else 128
    prefix = int(size)
    if prefix > bits:
        return None
    host = (1 << (bits - prefix)) - 1
    first = int(address) & ~host
    if bits == 128 and first >> 32 == 0xFFFF and prefix >= 96:
        return Network(first & 0xFFFFFFFF, prefix - 96, 32)
    return Network(first, prefix, bits)


def _network(value: Value) -> Network:
    if type(value) is not str:
        wrong_operand(1, value, "string")
    return parse_network(value)


# --- containment -----------------------------------------------------------------------------


@builtin("net.cidr_intersects", STRING, STRING, result=BOOLEAN, check=False)
def cidr_intersects(a: Value, b: Value) -> bool:
    """Returns whether the networks share an address."""
    x, y = _network(a), _network(b)
    return x.has(y.first, y.bits) or y.has(x.first, x.bits)


@builtin("net.cidr_overlap", STRING, STRING, result=BOOLEAN, deprecated=True, check=False)
@builtin("net.cidr_contains", STRING, STRING, result=BOOLEAN, check=False)
def cidr_contains(cidr: Value, cidr_or_ip: Value) -> bool:
    """Returns whether a network or address is within the network."""
    network = _network(cidr)
    if type(cidr_or_ip) is not str:
        wrong_operand(1, cidr_or_ip, "string")
    address = parse_address(cidr_or_ip)
    if address is not None:
        return network.has(*address)
    other = _parse_cidr(cidr_or_ip)
    if other is None:
        raise BuiltinError(
            f"not a valid textual representation of an IP address or CIDR: {cidr_or_ip}"
        )
    return network.has(other.first, other.bits) and network.has(other.last, other.bits)


_ELEMENT = any_of(STRING, ARRAY)
_MATCHABLE = any_of(STRING, array_of(_ELEMENT), object_of(STRING, _ELEMENT), set_of(_ELEMENT))


def _matchable(position: int, value: Value) -> Iterator[tuple[Value, Value]]:
    """Yields the networks of an operand, each with its index in the result."""
    if type(value) is str:
        yield value, value
        return
    if type(value) is list:
        pairs = list(enumerate(value))
    elif type(value) is RegoSet:
        pairs = [(item, item) for item in ordered(value)]
    elif type(value) is dict or type(value) is RegoObject:
        pairs = sorted(value.items(), key=lambda pair: sort_key(pair[0]))
    else:
        return
    for index, item in pairs:
        if type(item) is not str and not (type(item) is list and item):
            raise BuiltinError(f"operand {position}: element must be string or non-empty array")
        yield (item if type(item) is str else item[0]), index


@builtin(
    "net.cidr_contains_matches",
    _MATCHABLE,
    _MATCHABLE,
    result=set_of(static_array(ANY, ANY)),
    context=True,
)
def cidr_contains_matches(context: Context, cidrs: Value, cidrs_or_ips: Value) -> RegoSet:
    """Returns the pairs of indices whose network contains the other network or address."""
    pairs = RegoSet()
    for cidr, index in _matchable(1, cidrs):
        for other, other_index in _matchable(2, cidrs_or_ips):
            context.charge(100)
            if cidr_contains(cidr, other):
                pairs.add([index, other_index])
    return pairs


@builtin("net.cidr_is_valid", STRING, result=BOOLEAN, check=False)
def cidr_is_valid(cidr: Value) -> bool:
    """Returns whether the string is a network."""
    return type(cidr) is str and _parse_cidr(cidr) is not None


# --- expansion and merge ---------------------------------------------------------------------


@builtin("net.cidr_expand", STRING, result=set_of(STRING), context=True)
def cidr_expand(context: Context, cidr: str) -> RegoSet:
    """Returns every address of the network."""
    network = parse_network(cidr)
    size = network.last - network.first + 1
    if size > MAX_ADDRESSES:
        raise EvaluationError(
            "eval_cancel_error", "net.cidr_expand: timed out before generating all IP addresses"
        )
    addresses = RegoSet()
    for begin in range(network.first, network.last + 1, 1000):
        end = min(begin + 1000, network.last + 1)
        context.charge(50 * (end - begin))
        for address in range(begin, end):
            addresses.add(address_text(address, network.bits))
    return addresses


@builtin(
    "net.cidr_merge",
    any_of(array_of(any_of(STRING)), set_of(STRING)),
    result=set_of(STRING),
    context=True,
    check=False,
)
def cidr_merge(context: Context, addresses: Value) -> RegoSet:
    """Returns the fewest networks that hold the same addresses; a bare IPv4 has its class's mask."""
    if type(addresses) is not list and type(addresses) is not RegoSet:
        raise BuiltinError("operand must be an array")
    items = addresses if type(addresses) is list else ordered(addresses)
    context.charge(1 + 50 * len(items))
    networks = [_mergeable(item) for item in items]
    return RegoSet(map(str, _merged(networks)))


def _mergeable(item: Value) -> Network:
    if type(item) is not str:
        raise BuiltinError("element must be string")
    address = parse_address(item)
    if address is None:
        return parse_network(item)
    if address[1] == 128:
        raise BuiltinError("IPv6 invalid: needs prefix length")
    # net.IP.DefaultMask: classes A, B and C. The address itself stays as it is.
    top = address[0] >> 24
    prefix = 8 if top < 128 else 16 if top < 192 else 24
    return Network(address[0], prefix, 32)


_IPV4: Final = 0xFFFF << 32
"""Where the addresses of IPv4 lie among those of IPv6: OPA merges them in one space."""


def _merged(networks: list[Network]) -> Iterator[Network]:
    """Yields overlapping or adjacent ranges, merged and cut into networks again."""
    ranges: list[tuple[int, int, Network | None]] = []
    for first, last, network in sorted(map(_span, networks), key=lambda span: span[:2]):
        if ranges and first <= ranges[-1][1] + 1:
            low, high, _ = ranges[-1]
            ranges[-1] = (low, max(high, last), None)
        else:
            ranges.append((first, last, network))
    for first, last, single in ranges:
        if single is not None:
            yield single
        elif first >= _IPV4 and last < _IPV4 + (1 << 32):
            yield from _cut(first - _IPV4, last - _IPV4, 32)
        else:
            yield from _cut(first, last, 128)


def _span(network: Network) -> tuple[int, int, Network]:
    base = _IPV4 if network.bits == 32 else 0
    host = (1 << (network.bits - network.prefix)) - 1
    return base + (network.first & ~host), base + (network.first | host), network


def _cut(first: int, last: int, bits: int) -> Iterator[Network]:
    """Yields the networks of a range, from the lowest on."""
    while first <= last:
        size = (first & -first).bit_length() - 1 if first else bits
        size = min(size, (last - first + 1).bit_length() - 1)
        yield Network(first, bits - size, bits)
        first += 1 << size


# --- names -----------------------------------------------------------------------------------


@builtin("net.lookup_ip_addr", STRING, result=set_of(STRING), context=True, deterministic=False)
def lookup_ip_addr(context: Context, name: str) -> RegoSet:
    """Returns the addresses of a host name, through the ``resolver`` that the caller lent."""
    place = ("net.lookup_ip_addr", name)
    if place not in context.cache:
        context.cache[place] = RegoSet(_addresses(context, name))
    addresses: RegoSet = context.cache[place]
    return addresses


def _addresses(context: Context, name: str) -> list[str]:
    """Returns an address itself; for a name, the resolver's addresses."""
    with contextlib.suppress(ValueError):
        return [str(ipaddress.ip_address(name))]
    resolver = context.services.get("resolver")
    if resolver is None:
        raise BuiltinError(f"lookup {name}: no resolver is enabled")
    try:
        return list(resolver(name))
    except OSError as error:
        raise BuiltinError(f"lookup {name}: {error}") from None
