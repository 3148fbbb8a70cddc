"""A digest of the policy in force, the same for equal policy whatever the order it came in.

Replicas compare it to know that they have converged, and decisions carry it to
say which policy answered. Each object counts with its identity and what affects
a decision: neither status nor what the API server adds to metadata.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any, Final

from webhook.api.encoding import encode

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_BITS: Final = 256


class Digest:
    """The sum of the objects' hashes modulo 2**256: adding and dropping are cheap."""

    def __init__(self) -> None:
        self._hashes: dict[tuple[str, ...], int] = {}
        self._sum = 0

    def copy(self) -> Digest:
        """Another digest of the same objects."""
        other = Digest()
        other._hashes = dict(self._hashes)
        other._sum = self._sum
        return other

    def put(self, key: tuple[str, ...], document: Mapping[str, Any]) -> None:
        """Count an object, instead of what was counted under this key."""
        self.drop(key)
        value = _fingerprint(key, document)
        self._hashes[key] = value
        self._sum = (self._sum + value) % (1 << _BITS)

    def holds(self, key: tuple[str, ...], document: Mapping[str, Any]) -> bool:
        """Whether this very object is counted under this key."""
        return self._hashes.get(key) == _fingerprint(key, document)

    def drop(self, key: tuple[str, ...]) -> None:
        """Count an object no longer."""
        value = self._hashes.pop(key, 0)
        self._sum = (self._sum - value) % (1 << _BITS)

    def hex(self, others: Iterable[tuple[tuple[str, ...], Mapping[str, Any]]] = ()) -> str:
        """64 hexadecimal digits; ``others`` are counted this once, each with its key."""
        total = self._sum + sum(_fingerprint(key, document) for key, document in others)
        return f"{total % (1 << _BITS):064x}"


def is_same_generation(known: Mapping[str, Any], document: Mapping[str, Any]) -> bool:
    """Return whether two states of an object are one generation, for records, reports and audits.

    What changed and changed back decides alike, and so has one digest; its generation is another.
    """
    ours, theirs = known.get("metadata") or {}, document.get("metadata") or {}
    return all(ours.get(field) == theirs.get(field) for field in ("uid", "generation"))


def _fingerprint(key: tuple[str, ...], document: Mapping[str, Any]) -> int:
    metadata = document.get("metadata") or {}
    labels, annotations = metadata.get("labels"), metadata.get("annotations")
    canonical = encode(
        [list(key), document.get("spec"), labels or {}, annotations or {}], sort_keys=True
    )
    return int.from_bytes(hashlib.sha256(canonical).digest())
