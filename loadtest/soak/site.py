"""The cluster of a soak: its policies and their changes, its replicas and their ends."""

import contextlib
import random
import threading
import time
from pathlib import Path

from loadtest.soak.clients import FORBIDDEN, Crowd, Member
from tests.cluster import ApiError
from tests.patience import until
from tests.system.replicas import Plane, Replica, constraint, template

OPERATIONS = ("--operation=webhook", "--operation=status", "--operation=generate")
REPLICAS = 3
MESSAGES = ("denied by %v", "refused because of %v")


class Policies:
    """Policies of which one stands still and the others change."""

    def __init__(self, plane: Plane, interval_seconds: float) -> None:
        """A change each interval."""
        self.changes = 0
        self._plane = plane
        self._interval_seconds = interval_seconds
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="changes")
        self.faults: list[str] = []

    def make(self) -> None:
        """Creates the templates of the start."""
        self._plane.put_template(template("Denied"))
        self._plane.put_template(template("Changing"))

    def constrain(self) -> None:
        """The constraints; needs a replica that makes their kinds."""
        self._plane.put_constraint(constraint("forbidden", FORBIDDEN, "Denied"))
        self._plane.put_constraint(constraint("changing", "word-0", "Changing"))

    def start(self) -> None:
        """Begin to change."""
        self._thread.start()

    def stop(self) -> None:
        """Stop."""
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stop.wait(self._interval_seconds):
            self.changes += 1
            try:
                self._change(self.changes)
            except (OSError, ApiError, AssertionError) as error:
                self.faults.append(f"change {self.changes}: {error}")

    def _change(self, number: int) -> None:
        """In turn: another parameter, another constraint, one less, another source."""
        turn = number % 4
        if turn == 0:
            self._plane.put_constraint(constraint("changing", f"word-{number}", "Changing"))
        elif turn == 1:
            self._plane.put_constraint(constraint("passing", f"word-{number}", "Changing"))
        elif turn == 2:
            with contextlib.suppress(ApiError):
                self._plane.delete_constraint("passing", "Changing")
        else:
            source = f"""
            package changing
            violation[{{"msg": msg}}] {{
              input.review.object.data.deny == input.parameters.word
              msg := sprintf("{MESSAGES[number // 4 % 2]}", [input.parameters.word])
            }}
            """
            self._plane.put_template(template("Changing", source))


class Replicas:
    """Three replicas: the first is left alone, the others end now and then and others follow."""

    def __init__(self, plane: Plane, crowd: Crowd, seed: int) -> None:
        """Draws the replicas that end by ``seed``."""
        self.kills = self.stops = 0
        self.faults: list[str] = []
        self.plane = plane
        self._crowd = crowd
        self._random = random.Random(seed)
        self._running: list[tuple[Replica, Member]] = []
        self._number = 0

    @property
    def first(self) -> Replica:
        """The one that is left alone."""
        return self._running[0][0]

    def start_one(self) -> Replica:
        """Starts another replica, which is in service when it is ready."""
        name = f"soak-{self._number}"
        self._number += 1
        replica = Replica(self.plane, name, *OPERATIONS)
        try:
            replica.__enter__()
            replica.wait_ready()
        except BaseException:
            replica.kill()
            self._left(replica)
            raise
        self._running.append((replica, Member(name, replica.ports["admission"])))
        self._crowd.members = tuple(member for _, member in self._running)
        return replica

    def end_one(self) -> None:
        """In turn kill one, and stop one as a kubelet does; another takes its place."""
        replica, member = self._running.pop(self._random.randrange(1, len(self._running)))
        if self.kills == self.stops:
            member.killed = True  # before it happens: what fails now has its reason
            replica.kill()
            member.serving = False
            self.kills += 1
        else:
            # A Service needs a moment to forget it: the replica goes on meanwhile.
            replica.process.terminate()
            time.sleep(0.5)
            member.serving = False
            until(lambda: replica.process.poll() is not None, f"{replica.name} has ended")
            self.stops += 1
        self._crowd.members = tuple(one for _, one in self._running)
        self._left(replica)
        self.start_one()

    def _left(self, replica: Replica) -> None:
        """Cleans up after an ended process; a process that reported a bug is a fault."""
        self.plane.delete_pod(replica.name)
        try:
            replica.__exit__(None, None, None)
        except AssertionError as error:
            self.faults.append(f"{replica.name}: {error}")

    def stop(self) -> None:
        """End them all."""
        for replica, _ in self._running:
            replica.kill()
            self._left(replica)


def rss_mib(pid: int) -> float:
    """Resident memory of a process."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    raise RuntimeError(f"process {pid} is gone")
