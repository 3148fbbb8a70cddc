"""Ports for servers that must be told theirs before they listen.

They lie below the range from which the system takes the port of each outgoing connection. There,
a port that was free a moment ago is taken by the next connection of anybody; and a client that
asks again and again for a server that is down may even get that very port, and so itself.
"""

import contextlib
import secrets
import socket

FIRST, LAST = 10_000, 32_000
"""Linux takes ports of connections from 32,768 on, other systems from 49,152 on."""


def free_ports(count: int) -> list[int]:
    """Different ports on which nobody listens; chosen at random, so that runs beside each other agree."""
    found: set[int] = set()
    while len(found) < count:
        port = FIRST + secrets.randbelow(LAST - FIRST)
        with contextlib.suppress(OSError), socket.socket() as bound:
            bound.bind(("127.0.0.1", port))
            found.add(port)
    return list(found)


def free_port() -> int:
    """One of them."""
    return free_ports(1)[0]
