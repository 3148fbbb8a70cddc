"""``python -m tests.simulation``: run worlds by their seeds, or follow one step by step."""

import argparse
import gc
import itertools
import os
import random
import sys
import traceback
from collections.abc import Callable, Collection, Iterator

if __name__ == "__main__" and os.environ.get("PYTHONHASHSEED") != "0":
    # Sets of texts have one order only where their hashes are the same each time.
    os.execve(
        sys.executable,
        [sys.executable, "-m", "tests.simulation", *sys.argv[1:]],
        {**os.environ, "PYTHONHASHSEED": "0"},
    )

from tests.simulation import doors

doors.install()

from tests.simulation import faults  # noqa: E402  # the product takes the doors when it is imported
from tests.simulation.loop import Loop, run  # noqa: E402
from tests.simulation.worlds import ALL, WORLDS, load, make  # noqa: E402


def play(world: str, seed: int, follow: Callable[[str], object] | None = None) -> Loop:
    """Plays a world, from its beginning to its end."""
    loop = Loop(seed, follow=follow)
    run(loop, make(world, loop).main())
    return loop


def seeds(arguments: argparse.Namespace) -> Iterator[int]:
    """The seeds to play."""
    if arguments.seed is not None:
        return iter([arguments.seed])
    if arguments.seconds:
        until = doors.cpu_clock() + arguments.seconds
        return itertools.takewhile(
            lambda _: doors.cpu_clock() < until, itertools.count(arguments.first)
        )
    return iter(range(arguments.first, arguments.first + arguments.count))


def main() -> int:
    """0 where everything holds."""
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    parser.add_argument("world", nargs="?", default="all", choices=["all", *WORLDS])
    parser.add_argument("--seed", type=int, help="follow this one")
    parser.add_argument("--first", type=int, default=0, help="the first of many")
    parser.add_argument("--count", type=int, default=100, help="how many")
    parser.add_argument("--seconds", type=float, default=0.0, help="or how long")
    parser.add_argument("--fault", choices=sorted(faults.FAULTS), help="put this fault in")
    parser.add_argument("--each-fault", action="store_true", help="find each of the world's")
    parser.add_argument("--keep-going", action="store_true", help="after one that fails")
    parser.add_argument("--digest", action="store_true", help="what each told, as one number")
    arguments = parser.parse_args()
    if arguments.fault:
        faults.FAULTS[arguments.fault].put_in()
    follow = print if arguments.seed is not None else None
    began, played, failed = doors.cpu_clock(), 0, 0
    used_before = sum(os.times()[:2])
    worlds = list(ALL) if arguments.world == "all" else [arguments.world]
    # Threads hand over faster where they stay: and this is to cost one core.
    os.sched_setaffinity(0, {random.choice(sorted(os.sched_getaffinity(0)))})
    gc.disable()  # collected between worlds, so that nothing depends on when
    if arguments.each_fault:
        return find_each(worlds)
    for seed in seeds(arguments):
        for world in worlds:
            loop = play(world, seed, follow)
            played += 1
            if arguments.digest:
                print(world, seed, loop.digest())
            if loop.failures:
                failed += 1
                notify(world, seed, loop, followed=follow is not None)
                if not arguments.keep_going:
                    return 1
            tidy(played)
    seconds, used = doors.cpu_clock() - began, sum(os.times()[:2]) - used_before
    print(
        f"{played} worlds, {failed} failed, {seconds:.1f} s, {used:.1f} s of CPU:"
        f" {played / max(used, 0.01) * 60:.0f} in a minute of one core"
    )
    return 1 if failed else 0


def tidy(played: int) -> None:
    """Collect what worlds left, after so many of them."""
    hook, sys.unraisablehook = sys.unraisablehook, _of_no_world
    try:
        if played in {1, 20}:  # what is imported by now, and what was made once, stays
            doors.collect_garbage()
            doors.freeze_garbage()
        elif played % 20 == 0:
            doors.collect_garbage()
    finally:
        sys.unraisablehook = hook


def _of_no_world(unraisable: object) -> None:
    """Ignores unraisable errors of a killed process: its tasks cannot end in order."""


def find_each(worlds: Collection[str]) -> int:
    """0 where every fault of these worlds is found."""
    for world in worlds:
        load(world)  # once, and not in each process
    named = [name for name, fault in faults.FAULTS.items() if fault.world in worlds]
    missed = [name for name in named if not find(name)]
    return 1 if missed else 0


def find(name: str) -> bool:
    """Whether worlds find a fault, in a process of its own: what is put in stays."""
    fault = faults.FAULTS[name]
    first = max(0, fault.found_by - 3)  # moves with the product's code: the bound is what holds
    sys.stdout.flush()
    child = os.fork()
    if child:
        return os.waitpid(child, 0)[1] == 0
    fault.put_in()
    for seed in range(first, first + faults.SEEDS_MAX):
        if failures := play(fault.world, seed).failures:
            print(f"found by {seed}: {name}: {'; '.join(failures)}", flush=True)
            os._exit(0)
        tidy(seed - first + 1)
    print(f"NOT FOUND from {first} to {seed}: {name}", flush=True)
    os._exit(1)


def notify(world: str, seed: int, loop: Loop, *, followed: bool) -> None:
    """Prints the failures, and the command that shows them."""
    if not followed:
        print(*list(loop.story)[-40:], sep="\n")
    for error in loop.errors[:3]:
        traceback.print_exception(error)
    print(f"FAILED {world} {seed}: {'; '.join(loop.failures)}")
    print(f"follow it: make simulate-worlds WORLD={world} SEED={seed}")


if __name__ == "__main__":
    sys.exit(main())
