"""Waddle as in a Pod: it reads policies from an API server, as Gatekeeper beside it does."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from loadtest import in_pod
from loadtest.bench.servers import Server, waddle
from loadtest.cluster.servers import OPERATIONS, pod_object
from tests.system.replicas import NAMESPACE, Plane

_POD = "waddle-bench"


@contextmanager
def replica(plane: Plane, certificates: Path, *, core: int, log: Path) -> Iterator[Server]:
    """A replica with the operations that Gatekeeper has, and with its own Pod, on one core."""
    account = in_pod.command(plane.cluster, plane.certificates.parent / "account")
    with (
        pod_object(plane.api, NAMESPACE, _POD) as uid,
        waddle(
            None,
            certificates,
            core=core,
            log=log,
            flags=["--kubernetes", *OPERATIONS],
            environment=in_pod.environment(plane.cluster, _POD, uid),
            keeps_results=True,
            program=account,
        ) as server,
    ):
        yield server
