"""A node has IPv4, IPv6 or both: what listens everywhere is reached by either."""

import socket

import pytest

from webhook.server.http.listener import bind

BOTH = ["127.0.0.1", "::1"]


@pytest.mark.skipif(not socket.has_dualstack_ipv6(), reason="this machine has no IPv6")
@pytest.mark.parametrize("address", BOTH)
def test_without_a_host_it_is_reached_by_ipv4_and_ipv6(address):
    with bind("", 0, backlog=1) as listening:
        listening.listen(1)
        with socket.create_connection((address, listening.getsockname()[1]), timeout=60):
            connection, (client, *_) = listening.accept()
            connection.close()
    assert address in client


@pytest.mark.parametrize("address", BOTH if socket.has_dualstack_ipv6() else BOTH[:1])
def test_with_a_host_it_is_that_address(address):
    with bind(address, 0, backlog=1) as listening:
        assert listening.getsockname()[0] == address


def test_a_taken_port_is_reported_at_once():
    with bind("127.0.0.1", 0, backlog=1) as taken:
        taken.listen(1)
        with pytest.raises(OSError, match="in use"):
            bind("127.0.0.1", taken.getsockname()[1], backlog=1)
