"""A control plane for replicas, shared by the tests of this folder."""

from collections.abc import Iterator

import pytest

from tests.cluster import Cluster
from tests.programs import program
from tests.system.proxy import Proxy
from tests.system.replicas import Plane, Replica


@pytest.fixture(scope="session")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Plane]:
    """A control plane with Waddle's CRDs that keeps an audit log."""
    folder = tmp_path_factory.mktemp("plane")
    cluster = Cluster.start(
        program("testcluster"), folder / "cluster", "-audit-log", str(folder / "audit.log")
    )
    try:
        shared = Plane(cluster, folder)
        shared.install()
        yield shared
    finally:
        cluster.stop()


@pytest.fixture
def proxy() -> Iterator[Proxy]:
    """What the webhook is registered with."""
    made = Proxy()
    try:
        yield made
    finally:
        made.close()


@pytest.fixture
def replicas(plane: Plane) -> Iterator[list[Replica]]:
    """Three replicas that do everything, with a clean cluster before and after."""
    started: list[Replica] = []
    operations = [f"--operation={name}" for name in ("webhook", "status", "generate")]
    try:
        started += [Replica(plane, f"waddle-{number}", *operations) for number in range(3)]
        for replica in started:
            replica.__enter__()
        yield started
    finally:
        plane.unregister()
        plane.delete_templates()
        for replica in started:
            replica.__exit__()
            if plane.exists(replica.name):
                plane.delete_pod(replica.name)
