"""Replicas beside a Gatekeeper: how they are started."""

from contextlib import ExitStack

from tests.system.replicas import Plane, Replica


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
