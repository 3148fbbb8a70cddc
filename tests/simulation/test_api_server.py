"""The simulated API server answers as the product relies on."""

import pytest

from tests.simulation.test_worlds import simulate


@pytest.mark.slow
def test_the_simulated_api_server_keeps_the_contract() -> None:
    code, told = simulate("contract", "--count", "5")
    assert code == 0, told[-5000:]
