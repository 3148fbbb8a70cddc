"""The two systems, each with a control plane of its own that holds the same policies."""

import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from loadtest.enforcement.api import Connection
from loadtest.enforcement.probe import Probe
from tests.system.conftest import ALL_OPERATIONS, control_plane
from tests.system.peer import Gatekeeper
from tests.system.replicas import Plane, Replica, constraint, template

KIND = "Changing"
"""The kind whose constraint is made, changed and deleted."""

TEMPLATES = 10
CONSTRAINTS = 100
"""The number of other constraints. They match other kinds, so that requests cost the same with and
without them: Gatekeeper evaluates each that matches."""


class System:
    """Replicas that follow a control plane."""

    def __init__(self, name: str, agent: str, plane: Plane) -> None:
        """``agent`` is how its requests begin to name their sender."""
        self.name = name
        self.agent = agent
        self.plane = plane
        self.connection = Connection(plane.api)
        self.probe = Probe(())
        self.replicas = 0

    def use(self, ports: list[int]) -> None:
        """Ask these from now on."""
        self.probe.close()
        self.probe = Probe(ports)
        self.replicas = len(ports)

    def fill(self) -> None:
        """Apply the policies, and wait until they are enforced."""
        for number in range(TEMPLATES):
            self.plane.put_template(template(f"Present{number}"))
        self.plane.put_template(template(KIND))
        for number in range(CONSTRAINTS):
            document = constraint(f"present-{number}", "present", f"Present{number % TEMPLATES}")
            document["spec"]["match"]["kinds"][0]["kinds"] = ["Pod"]
            self.plane.put_constraint(document)
        self.plane.put_constraint(constraint("first", "first", KIND))
        self.probe.wait("first", denied=True)
        self.plane.delete_constraint("first", KIND)
        self.probe.wait("first", denied=False)


class Waddle(System):
    """Replicas that carry out every operation."""

    def __init__(self, plane: Plane) -> None:
        super().__init__("waddle", "waddle/", plane)
        self.running: list[Replica] = []

    @contextmanager
    def run(self, count: int) -> Iterator[None]:
        """Run so many of them."""
        with ExitStack() as stack:
            for number in range(count):
                name = f"waddle-{number}"
                stack.callback(self.plane.delete_pod, name)
                self.running.append(stack.enter_context(Replica(self.plane, name, *ALL_OPERATIONS)))
            for replica in self.running:
                replica.wait_ready()
                self.plane.mark_pod(replica.name, ready=True)
            self.use([replica.ports["admission"] for replica in self.running])
            yield

    def keep(self, count: int) -> None:
        """Stop all but so many, as a smaller Deployment would."""
        for replica in self.running[count:]:
            replica.stop()
            self.plane.delete_pod(replica.name)
        self.use([replica.ports["admission"] for replica in self.running[:count]])


class Peer(System):
    """A Gatekeeper with the operations that correspond."""

    def __init__(self, plane: Plane, folder: Path) -> None:
        super().__init__("gatekeeper", "gatekeeper/", plane)
        self._folder = folder

    @contextmanager
    def run(self) -> Iterator[None]:
        """Run it."""
        operations = ("webhook", "status", "generate")
        with Gatekeeper(self.plane, self._folder, operations) as peer:
            self.use([peer.port])
            yield


@contextmanager
def both(replicas: int) -> Iterator[tuple[Waddle, Peer]]:
    """Yields both systems with their policies in force."""
    with ExitStack() as stack:
        folders = [
            Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="enforcement-")))
            for _ in range(2)
        ]
        ours = Waddle(stack.enter_context(control_plane(folders[0])))
        theirs = Peer(
            stack.enter_context(control_plane(folders[1], install=Gatekeeper.install)), folders[1]
        )
        stack.enter_context(ours.run(replicas))
        stack.enter_context(theirs.run())
        for system in (ours, theirs):
            stack.callback(system.connection.close)
            system.fill()
        yield ours, theirs
