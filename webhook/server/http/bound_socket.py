"""A socket that is bound before anything is served, so that a taken port is told at once."""

from __future__ import annotations

import socket


def bind(host: str, port: int, *, backlog: int) -> socket.socket:
    """A socket at an address, or without a host at all of IPv6 and IPv4; raises OSError.

    A node has IPv4, IPv6 or both; only a socket of both is reached in each of them.
    """
    if not host:
        if socket.has_dualstack_ipv6():
            return socket.create_server(
                ("", port), family=socket.AF_INET6, dualstack_ipv6=True, backlog=backlog
            )
        return socket.create_server(("", port), backlog=backlog)
    family, kind, protocol, _, where = socket.getaddrinfo(
        host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )[0]
    bound = socket.socket(family, kind, protocol)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind(where)
    except OSError:
        bound.close()
        raise
    return bound
