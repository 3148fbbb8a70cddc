"""Fixtures that tests of every folder share."""

from collections.abc import Iterator

import pytest
from hypothesis import settings

from tests import verified_code
from tests.cluster import Cluster
from tests.programs import program

# A slow machine is no fault: what may not take long is bounded by the code itself and by pytest-timeout.
settings.register_profile("waddle", deadline=None)
settings.load_profile("waddle")

verified_code.install()


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A real API server that a whole run shares: use names of your own, and clean up.

    A test that restarts or harms its cluster makes one for itself with `Cluster.start`.
    """
    shared = Cluster.start(program("testcluster"), tmp_path_factory.mktemp("cluster"))
    try:
        yield shared
    finally:
        shared.stop()
