"""Ends of a world's processes."""

from tests.simulation.loop import Loop
from tests.simulation.process import Process


async def killed(loop: Loop, process: Process) -> None:
    """Have a process end at once, between two steps of anything; for tasks of others."""
    done = loop.create_future()

    def kill() -> None:
        loop.kill(process)
        done.set_result(None)

    loop.call_soon(kill)
    await done
