"""``python -m loadtest.enforcement.trying``: what it costs to try new constraints before they are enforced.

Replicas that try, and beside them replicas that do not (``--kept-revisions=0``), each with a
control plane of its own. One constraint at a time, in turn, one template that is written anew, and
a burst of constraints: from the write until the last replica denies, and what the replicas'
processes take of a processor, those that try among them.
"""

import argparse
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

from loadtest.enforcement.api import Connection
from loadtest.enforcement.probe import Probe
from tests.system.conftest import ALL_OPERATIONS, control_plane
from tests.system.replicas import CONSTRAINTS, TEMPLATES, Plane, Replica, constraint, template

KIND: Final = "Changing"
PATH: Final = f"{CONSTRAINTS}/{KIND.lower()}"

REWRITTEN: Final = "Rewritten"
"""The kind whose template is written anew."""

POLICY: Final = """package rewritten
violation[{"msg": msg}] {
  input.review.object.data.deny == "WORD"
  msg := sprintf("denied by %v", ["WORD"])
}
"""

OTHER_RULES: Final = """
is_exempt_N(container) {
  exempt := input.parameters.exempt[_]
  startswith(container.image, exempt)
  not endswith(container.image, ":latest")
}
violation[{"msg": msg}] {
  container := input.review.object.spec.containers[_]
  not is_exempt_N(container)
  not container.resources.limits.memory
  msg := sprintf("container <%v> of <%v> has no limit N", [container.name, container.image])
}
"""
"""Rules of other templates, so that there is source to compile."""

SETTLE_SECONDS: Final = 0.7
"""After a change its statuses are written: no part of the next change."""

WARM_UP_ROUNDS: Final = 3


class Side:
    """Replicas that follow a control plane, and what they have taken."""

    def __init__(self, plane: Plane, replicas: Sequence[Replica]) -> None:
        self.plane = plane
        self.replicas = replicas
        self.connection = Connection(plane.api)
        self.probe = Probe([replica.ports["admission"] for replica in replicas])

    def cpu_seconds(self) -> float:
        """Processor time of the replicas and of what they have begun, ended or not."""
        return sum(_cpu_seconds(replica.process.pid) for replica in self.replicas)

    def one(self, number: int) -> tuple[float, float]:
        """Seconds from a constraint's write until all deny, and of a processor."""
        cpu, began = self.cpu_seconds(), time.monotonic()
        word = f"one-{number}"
        self.connection.request("POST", PATH, constraint(word, word, KIND))
        took = self.probe.wait(word, denied=True)[-1] - began
        time.sleep(SETTLE_SECONDS)
        return took, self.cpu_seconds() - cpu

    def template(self, number: int, rules: int) -> tuple[float, float]:
        """Seconds from a template's write until its one constraint denies by it, and of a processor."""
        cpu, began = self.cpu_seconds(), time.monotonic()
        word = f"written-{number}"
        self.connection.request(
            "PATCH",
            f"{TEMPLATES}/{REWRITTEN.lower()}",
            [{"op": "replace", "path": "/spec/targets", "value": _targets(word, rules)}],
            "application/json-patch+json",
        )
        took = self.probe.wait(word, denied=True)[-1] - began
        time.sleep(SETTLE_SECONDS)
        return took, self.cpu_seconds() - cpu

    def burst(self, number: int, count: int, seconds: float) -> tuple[float, float, float]:
        """Write so many within so long.

        Seconds from the last one's write until that is enforced, and until all are; and of a
        processor for each.
        """
        cpu, began = self.cpu_seconds(), time.monotonic()
        words = [f"burst-{number}-{at}" for at in range(count)]
        for at, word in enumerate(words):
            time.sleep(max(0.0, began + seconds * at / count - time.monotonic()))
            self.connection.request("POST", PATH, constraint(word, word, KIND))
        written = time.monotonic()
        last = self.probe.wait(words[-1], denied=True)[-1] - written
        for word in words:
            every = self.probe.wait(word, denied=True)[-1] - written
        time.sleep(2 * SETTLE_SECONDS)
        took = (self.cpu_seconds() - cpu) / count
        self.connection.request("DELETE", PATH)
        self.probe.wait(words[-1], denied=False)
        time.sleep(2 * SETTLE_SECONDS)
        return last, every, took


def _targets(word: str, rules: int) -> list[dict[str, str]]:
    others = [OTHER_RULES.replace("N", str(at)) for at in range(rules)]
    rego = POLICY.replace("WORD", word) + "".join(others)
    targets: list[dict[str, str]] = template(REWRITTEN, rego)["spec"]["targets"]
    return targets


def _cpu_seconds(process: int) -> float:
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    ticks = sum(map(int, fields[11:15]))
    children = Path(f"/proc/{process}/task").glob("*/children")
    begun = [int(child) for file in children for child in file.read_text().split()]
    return ticks / os.sysconf("SC_CLK_TCK") + sum(map(_cpu_seconds, begun))


@contextmanager
def side(count: int, *flags: str) -> Iterator[Side]:
    """Replicas with these flags, with one template in force."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="trying-")))
        plane = stack.enter_context(control_plane(folder))
        replicas = []
        for number in range(count):
            replica = Replica(plane, f"waddle-{number}", *ALL_OPERATIONS, *flags)
            replicas.append(stack.enter_context(replica))
        for replica in replicas:
            replica.wait_ready()
            plane.mark_pod(replica.name, ready=True)
        plane.put_template(template(KIND))
        plane.put_constraint(constraint("first", "first", KIND))
        first = POLICY.replace("WORD", "written")
        plane.put_template(template(REWRITTEN, first))
        plane.put_constraint(constraint("rewritten", "", REWRITTEN))
        made = Side(plane, replicas)
        stack.callback(made.connection.close)
        stack.callback(made.probe.close)
        made.probe.wait("first", denied=True)
        made.probe.wait("written", denied=True)
        yield made


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(prog="python -m loadtest.enforcement.trying")
    parser.add_argument("--replicas", type=int, default=1, help="of each side")
    parser.add_argument("--rounds", type=int, default=40, help="of one constraint")
    parser.add_argument("--rules", type=int, default=6, help="of the template, in pairs")
    parser.add_argument("--bursts", type=int, default=2)
    parser.add_argument("--count", type=int, default=300, help="constraints of a burst")
    parser.add_argument("--seconds", type=float, default=0.0, help="that a burst's writes take")
    options = parser.parse_args()
    with side(options.replicas) as trying, side(options.replicas, "--kept-revisions=0") as plain:
        sides = {"tried": trying, "not tried": plain}
        alone: dict[str, list[tuple[float, float]]] = {name: [] for name in sides}
        written: dict[str, list[tuple[float, float]]] = {name: [] for name in sides}
        for number in range(WARM_UP_ROUNDS + options.rounds):
            for name in sides if number % 2 else reversed(sides):
                found = sides[name].one(number)
                anew = sides[name].template(number, options.rules)
                if number >= WARM_UP_ROUNDS:
                    alone[name].append(found)
                    written[name].append(anew)
        for one in sides.values():
            one.connection.request("DELETE", PATH)
            one.probe.wait("one-0", denied=False)
            time.sleep(2 * SETTLE_SECONDS)
        bursts: dict[str, list[tuple[float, float, float]]] = {name: [] for name in sides}
        for number in range(options.bursts):
            for name in sides if number % 2 else reversed(sides):
                bursts[name].append(sides[name].burst(number, options.count, options.seconds))
                print(f"burst {number}, {name}: {bursts[name][-1]}", file=sys.stderr, flush=True)
    load = " ".join(f"{one:.1f}" for one in os.getloadavg())
    print(f"{options.replicas} replica(s), {os.cpu_count()} processors, load {load}\n")
    print("| | tried | not tried | added |\n|---|---|---|---|")
    size = len(str(_targets("", options.rules)[0]["rego"]))
    of_template = f"one template of {size:,} characters"
    for row, unit, at, found_of in (
        ("one constraint: enforced after, median", "ms", 0, alone),
        ("one constraint: processor, mean", "ms", 1, alone),
        (f"{of_template}: enforced after, median", "ms", 0, written),
        (f"{of_template}: processor, mean", "ms", 1, written),
        (f"the last of {options.count}: enforced after its write", "ms", 0, bursts),
        (f"all of {options.count}: enforced after the last write", "ms", 1, bursts),
        ("each of these: processor", "ms", 2, bursts),
    ):
        if not any(found_of.values()):
            continue
        mean = statistics.fmean if "mean" in row else statistics.median
        both = [1000 * mean([one[at] for one in found_of[name]]) for name in sides]
        shown = " | ".join(f"{one:.1f} {unit}" for one in (*both, both[0] - both[1]))
        print(f"| {row} | {shown} |")
    for row, found_of in (("constraint", alone), (of_template, written)):
        paired = sorted(
            1000 * (one[0] - other[0])
            for one, other in zip(found_of["tried"], found_of["not tried"], strict=True)
        )
        tenth, median = paired[len(paired) // 10], statistics.median(paired)
        print(f"\nAdded to {row}, paired: median {median:.1f} ms, tenth percentile {tenth:.1f} ms")


if __name__ == "__main__":
    main()
