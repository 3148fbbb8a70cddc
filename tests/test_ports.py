"""Ports that tests give their servers: no two workers have one in common, and none comes again soon."""

import pytest

from tests.ports import FIRST, LAST, free_ports, share


@pytest.mark.parametrize("workers", [1, 2, 3, 4, 16])
def test_each_worker_has_a_share_of_its_own(workers: int) -> None:
    shares = [set(share(f"gw{number}", workers)) for number in range(workers)]
    assert sum(map(len, shares)) == len(set().union(*shares))
    assert set().union(*shares) <= set(range(FIRST, LAST))
    assert all(len(one) > 1000 for one in shares)


def test_a_port_that_was_given_is_not_given_again_soon() -> None:
    given = [port for _ in range(100) for port in free_ports(3)]
    assert len(set(given)) == len(given)
