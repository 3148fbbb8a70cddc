"""Reads the report of each replica, ``/readyz?verbose``, through the API server.

A replica alone knows what it waits for, whether its clock is right, and whether its decision log and
its providers answer. The API server reaches Pods by the right ``get`` on ``pods/proxy``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from webhook.api.gvk import name_of, text
from webhook.api.shapes import integer_of, object_of, objects_of, status_of
from webhook.cluster.errors import ApiUnreachable

if TYPE_CHECKING:
    from collections.abc import Mapping

    from webhook.cluster.client import ClusterClient

ANSWER_SECONDS: Final = 3.0
"""The longest wait for one replica; a ready one answers in milliseconds."""

SHOWN_CHARACTERS: Final = 500
"""The longest fault that is shown; the replica's own report has the whole."""

REPORT: Final = "health"
"""The name of the container port that answers probes, as the manifests have it."""


class ReportForbidden(Exception):
    """The right to read a replica's report is missing; the text has another way to read it."""


async def read_report(
    client: ClusterClient, namespace: str, pod: Mapping[str, Any]
) -> list[str] | None:
    """Returns the faults that a Pod reports; None if it has no address or no port of probes.

    Raises :class:`ReportForbidden`.
    """
    port = _port(pod)
    if not (text(status_of(pod), "podIP") and port):
        return None
    return await _ask(client, namespace, name_of(pod), port)


def _port(pod: Mapping[str, Any]) -> int:
    """Returns the port of a Pod that answers probes; 0 for none."""
    for container in objects_of(object_of(pod.get("spec")).get("containers")):
        for port in objects_of(container.get("ports")):
            if text(port, "name") == REPORT:
                return integer_of(port.get("containerPort"))
    return 0


async def _ask(client: ClusterClient, namespace: str, name: str, port: int) -> list[str]:
    """Returns the lines of one replica that name a fault, without their marks."""
    path = f"/api/v1/namespaces/{namespace}/pods/{name}:{port}/proxy/readyz"
    try:
        status, answer = await client.text(
            path, {"verbose": "true"}, deadline_seconds=ANSWER_SECONDS
        )
    except ApiUnreachable as error:
        return [f"the API server does not reach its port {port} ({error}): {_UNREACHED}"]
    lines = answer.splitlines()
    if any(line.startswith(("[+]", "[-]")) for line in lines):
        return [_described(line) for line in lines if line.startswith(("[-]", "[!]"))]
    if status in (401, 403):
        raise ReportForbidden(
            f"the report of {name} cannot be shown: {status}, the right get on pods/proxy is missing. "
            f"Read it with: kubectl -n {namespace} port-forward pod/{name} {port}, then: curl "
            f"'localhost:{port}/readyz?verbose'"
        )
    return [f"the API server does not reach its port {port} ({_cause(answer)}): {_UNREACHED}"]


_UNREACHED: Final = (
    "look whether the Pod runs, and whether a NetworkPolicy or firewall is between them"
)


def _described(line: str) -> str:
    mark, fault = line[:3], line[3:]
    if len(fault) > SHOWN_CHARACTERS:  # at a start with nothing in reach, every kind is named
        fault = fault[:SHOWN_CHARACTERS] + " …"
    return f"not ready: {fault.replace(' failed: ', ': ', 1)}" if mark == "[-]" else fault


def _cause(answer: str) -> str:
    """Returns the message of the API server's ``Status``, or the beginning of another answer."""
    from webhook.api.encoding import DecodeError, decode  # noqa: PLC0415  # rarely needed

    try:
        return text(object_of(decode(answer.encode())), "message") or answer[:200]
    except DecodeError:
        return answer[:200]
