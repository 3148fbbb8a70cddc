"""Bytes that an API server keeps in etcd, read from etcd itself."""

import base64
import json
import urllib.request
from typing import Any

PAGE_KEYS = 500
SECONDS_MAX = 60


def stored_bytes(etcd: str, prefix: str) -> list[int]:
    """The size of each value whose key begins so, in bytes; ``etcd`` is its URL without TLS."""
    sizes = []
    start, end = prefix.encode(), _after(prefix.encode())
    while True:
        page = _range(etcd, start, end)
        found = page.get("kvs", [])
        sizes += [len(base64.b64decode(item.get("value", ""))) for item in found]
        if not page.get("more"):
            return sizes
        start = base64.b64decode(found[-1]["key"]) + b"\0"


def _range(etcd: str, start: bytes, end: bytes) -> dict[str, Any]:
    """Sends a request to the gateway that speaks JSON in the place of gRPC."""
    question = {
        "key": base64.b64encode(start).decode(),
        "range_end": base64.b64encode(end).decode(),
        "limit": str(PAGE_KEYS),
    }
    request = urllib.request.Request(f"{etcd}/v3/kv/range", json.dumps(question).encode())
    with urllib.request.urlopen(request, timeout=SECONDS_MAX) as answer:
        found: dict[str, Any] = json.load(answer)
    return found


def _after(prefix: bytes) -> bytes:
    """The first key that does not begin so."""
    return prefix[:-1] + bytes([prefix[-1] + 1])
