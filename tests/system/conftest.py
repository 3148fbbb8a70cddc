"""A control plane for replicas, shared by the tests of this folder; each has kinds of its own."""

from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from tests.catch_all_webhooks import CONFIGURATIONS, EVERYTHING, install_catch_all_webhooks
from tests.cluster import Cluster
from tests.patience import last_lines
from tests.programs import Programs, program
from tests.system import audited
from tests.system.gate import Gate
from tests.system.peer import Gatekeeper
from tests.system.proxy import Proxy
from tests.system.replicas import NAMESPACE, Plane, Replica

ALL_OPERATIONS = tuple(f"--operation={name}" for name in ("webhook", "status", "generate"))

StartReplica = Callable[..., Replica]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """A failed test of this folder shows the ends of its programs' logs."""
    report = yield
    if report.failed and "never came" not in report.longreprtext:
        report.sections.append(("logs", last_lines()))
    return report


@contextmanager
def control_plane(
    folder: Path, *arguments: str, install: Callable[[Plane], None] = Plane.install
) -> Iterator[Plane]:
    """A control plane that keeps an audit log, with Waddle's CRDs or whatever else is installed.

    ``arguments`` are testcluster's flags.
    """
    audit_log = ("-audit-log", str(folder / "audit.log"))
    cluster = Cluster.start(program("testcluster"), folder / "cluster", *audit_log, *arguments)
    try:
        plane = Plane(cluster, folder)
        install(plane)
        yield plane
    finally:
        cluster.stop()


@pytest.fixture(scope="session", autouse=True)
def programs(program: Programs) -> Programs:
    """Each test of this folder has a control plane."""
    return program


@pytest.fixture(scope="session")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Plane]:
    """The control plane that the trio follows."""
    with control_plane(tmp_path_factory.mktemp("plane")) as shared:
        yield shared


@pytest.fixture(scope="session")
def empty_plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Plane]:
    """A control plane for tests that count every replica there is: the trio is not here."""
    with control_plane(tmp_path_factory.mktemp("empty-plane")) as alone:
        yield alone


@pytest.fixture
def silent_plane(empty_plane: Plane) -> Iterator[Plane]:
    """A control plane without policies, whose API server asks nobody about everything."""
    empty_plane.delete_templates()
    for kind in ("validating", "mutating"):
        path = f"{CONFIGURATIONS}/{kind}webhookconfigurations/{EVERYTHING}"
        empty_plane.api.request("DELETE", path)
    yield empty_plane
    install_catch_all_webhooks(empty_plane.api)


@pytest.fixture(scope="session")
def audited_plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Plane]:
    """A control plane with a mixed set of objects to audit, and with no policies but a test's own."""
    with control_plane(tmp_path_factory.mktemp("audited-plane")) as made:
        audited.apply_all(made)
        audited.apply(made, *audited.config(NAMESPACE))
        yield made


@pytest.fixture
def peers_plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Plane]:
    """A control plane of one test, with Gatekeeper's CRDs and none of ours."""
    folder = tmp_path_factory.mktemp("peers-plane")
    with control_plane(folder, install=Gatekeeper.install) as made:
        yield made


@pytest.fixture(scope="session")
def trio(plane: Plane) -> Iterator[list[Replica]]:
    """Three replicas that carry out every operation, for tests that harm none of them."""
    with ExitStack() as stack:
        started = [Replica(plane, f"waddle-{number}", *ALL_OPERATIONS) for number in range(3)]
        for replica in started:
            stack.callback(plane.delete_pod, replica.name)
            stack.enter_context(replica)
        for replica in started:
            replica.wait_ready()
        yield started


@pytest.fixture
def start(plane: Plane) -> Iterator[StartReplica]:
    """Starts more replicas; they and their Pods end with the test."""
    with ExitStack() as stack:

        def start_one(name: str, *flags: str) -> Replica:
            replica = Replica(plane, name, *flags)
            stack.callback(plane.delete_pod, name)
            stack.enter_context(replica)
            return replica

        yield start_one


@pytest.fixture
def proxy() -> Iterator[Proxy]:
    """Yields the proxy that the webhook is registered with."""
    made = Proxy()
    try:
        yield made
    finally:
        made.close()


@pytest.fixture
def gate(plane: Plane, tmp_path: Path) -> Iterator[Gate]:
    """A way to the API server that can be held, for who starts with its kubeconfig."""
    made = Gate(plane.api, tmp_path)
    try:
        yield made
    finally:
        made.close()
