"""Requests of several users, as they begin, and what a crowd of them is answered."""

import json

from tests.webhook.server.paused import PausedTransport


def beginning(user: str, namespace: str = "shop") -> bytes:
    """Returns the beginning of a user's review, as an API server writes it."""
    request = {
        "uid": f"of-{user}",
        "namespace": namespace,
        "operation": "CREATE",
        "userInfo": {"username": user},
        "object": {"apiVersion": "v1", "kind": "Pod"},
    }
    document = {"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "request": request}
    return json.dumps(document, separators=(",", ":")).encode()


def sent_by(transport: PausedTransport) -> tuple[int, dict[str, object]]:
    """The code of an answer, and what it says."""
    head, _, body = transport.sent.partition(b"\r\n\r\n")
    return int(head.split()[1]), json.loads(body)


def refused(found: tuple[int, dict[str, object]]) -> object:
    """The code that a verdict refuses with."""
    code, document = found
    assert code == 200
    response = document["response"]
    assert isinstance(response, dict)
    assert not response["allowed"]
    return response["status"]["code"]
