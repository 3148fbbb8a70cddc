"""aiohttp, imported without the system's authorities.

When aiohttp is imported, it makes a TLS context that trusts all authorities of the system. Reading
them took 30 ms of a replica's start, and 2.5 MiB. No session of ours uses that context: each has the
context of its credentials. The context that is made here trusts nobody, so that a session that uses
it by mistake is refused.
"""

from __future__ import annotations

import ssl
from typing import Any

__all__ = ["aiohttp"]


def _trusting_nobody(*_: Any, **__: Any) -> ssl.SSLContext:
    return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


_create_default_context = ssl.create_default_context
ssl.create_default_context = _trusting_nobody
try:
    import aiohttp
finally:
    ssl.create_default_context = _create_default_context
