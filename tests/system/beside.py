"""Replicas beside a Gatekeeper: how they are started, and from when neither writes."""

from contextlib import ExitStack

from tests.system.replicas import Plane, Replica

QUIET_SECONDS = 6.0
"""How long a steady state is watched: every debounce, tick and turn is shorter."""


def run(plane: Plane, stack: ExitStack, names: list[str], *flags: str) -> list[Replica]:
    """Replicas that are ready, and whose Pods say so."""
    replicas = []
    for name in names:
        stack.callback(plane.delete_pod, name)
        replicas.append(stack.enter_context(Replica(plane, name, *flags)))
    for replica in replicas:
        replica.wait_ready()
        plane.mark_pod(replica.name, ready=True)
    return replicas
