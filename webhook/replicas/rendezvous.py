"""Chooses without a leader which of several does a thing: rendezvous hashing.

Everyone who knows the same members computes the same choice, and when a member
comes or goes only its own share moves (Thaler and Ravishankar, 1998).
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


def chosen(key: str, members: Iterable[str]) -> str | None:
    """The member that the key falls to: the one of the highest hash; None where there are none."""
    return max(members, key=lambda member: _weight(key, member), default=None)


def rank(key: str, members: Iterable[str], member: str) -> int:
    """How many members come before this one for the key.

    The first acts at once; the others wait, each longer than the one before it,
    for the case that those before them are dead and nobody has noticed yet.
    """
    own_weight = _weight(key, member)
    return sum(_weight(key, other) > own_weight for other in members)


def _weight(key: str, member: str) -> tuple[bytes, str]:
    digest = hashlib.blake2b(f"{member}\0{key}".encode(), digest_size=16)
    return digest.digest(), member
