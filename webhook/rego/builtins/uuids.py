"""Built-ins on UUIDs. Documented in OPA's reference under "UUID"; see v1/topdown/uuid.go."""

from __future__ import annotations

import re
import uuid
from typing import Final

from webhook.rego.builtins.registry import Context, builtin
from webhook.rego.run.values import UNDEFINED, Value
from webhook.rego.types import ANY, STRING, object_of

# github.com/google/uuid's Parse, which looks at no brace but the length.
_UUID: Final = re.compile(
    r"(?:[uU][rR][nN]:[uU][uU][iI][dD]:(?P<urn>{0})|.(?P<braced>{0}).|(?P<plain>{0})"
    r"|(?P<hex>[0-9A-Fa-f]{{32}}))\Z".format(
        "[0-9A-Fa-f]{8}-(?:[0-9A-Fa-f]{4}-){3}[0-9A-Fa-f]{12}"
    ),
    re.ASCII | re.DOTALL,
)
_GREGORIAN: Final = 0x01B21DD213814000
"""Intervals of 100 ns between the calendar's reform in 1582 and 1970."""

_DOMAINS: Final = ("Person", "Group", "Org")


@builtin("uuid.rfc4122", STRING, result=STRING, context=True, deterministic=False)
def rfc4122(context: Context, k: str) -> str:
    """Returns a random UUID, the same for the same operand in one query."""
    place = ("uuid.rfc4122", k)
    if place not in context.cache:
        raw = context.random.randbytes(16)
        context.cache[place] = str(uuid.UUID(bytes=raw, version=4))
    return str(context.cache[place])


@builtin("uuid.parse", STRING, result=object_of(STRING, ANY))
def parse(x: str) -> Value:
    """Returns the parts of a UUID; undefined for an invalid text."""
    match = _UUID.match(x)
    if match is None:
        return UNDEFINED
    raw = uuid.UUID(next(part for part in match.groups() if part)).bytes
    version = raw[6] >> 4
    parsed: dict[str, Value] = {"version": version, "variant": _variant(raw[8])}
    if version not in {1, 2}:
        return parsed
    fields = uuid.UUID(bytes=raw)
    stamp = fields.time_low | fields.time_mid << 32 | (fields.time_hi_version & 0xFFF) << 48
    node = raw[10:]
    # Go takes the remainder of a signed division, so times before 1970 lose nothing; beyond 64 bits
    # the number wraps around.
    nanoseconds = (stamp - _GREGORIAN) * 100
    parsed |= {
        "time": (nanoseconds + 2**63) % 2**64 - 2**63,
        "nodeid": node.hex("-"),
        "macvariables": f"{'local' if node[0] & 2 else 'global'}:"
        f"{'multicast' if node[0] & 1 else 'unicast'}",
        "clocksequence": int.from_bytes(raw[8:10]) & 0x3FFF,
    }
    if version == 2:
        domain = raw[9]
        known = domain < len(_DOMAINS)
        parsed |= {
            "id": int.from_bytes(raw[:4]),
            "domain": _DOMAINS[domain] if known else f"Domain{domain}",
        }
    return parsed


def _variant(byte: int) -> str:
    if byte & 0xC0 == 0x80:
        return "RFC4122"
    if byte & 0xE0 == 0xC0:
        return "Microsoft"
    return "Future" if byte & 0xE0 == 0xE0 else "Reserved"
