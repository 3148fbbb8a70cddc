"""Dry-run requests through a real API server, which asks the webhooks that are registered with it.

`KUBECONFIG=… locust -f loadtest/locust/indirect.py --headless`, from the repository's root. Nothing
is written but what updates and deletes need: a namespace, a service account, a Deployment without
replicas and a ConfigMap; the last two are deleted at the end.
"""

import json
import os
import urllib.error
import urllib.request
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

from locust import events

from loadtest.locust.answers import fault_of_object
from loadtest.locust.kubeconfig import Credentials, read
from loadtest.locust.mix import Case, standing_objects
from loadtest.locust.session import ReviewUser, Shape, is_worker

__all__ = ["Client", "Shape"]

REQUEST_SECONDS_MAX = 30
SERVICE_ACCOUNT = "checkout"
"""Of the mix's Pods: an API server refuses those of one that is not there."""


@cache
def credentials() -> Credentials:
    """Of KUBECONFIG's first file, or kubectl's usual one."""
    named = os.environ.get("KUBECONFIG", "").split(os.pathsep)[0]
    return read(Path(named) if named else Path.home() / ".kube" / "config")


class Client(ReviewUser):
    """A client of the API server."""

    _calls: ClassVar[dict[str, tuple[str, str, bytes | None]]] = {}

    def __init__(self, environment: Any) -> None:
        """Use the kubeconfig's server, unless --host names another, such as kubectl's proxy."""
        if environment.host is None:
            self.host = credentials().server
            self.insecure = not credentials().verified
            self.ssl_context_factory = credentials().context
        super().__init__(environment)
        self.headers = {"Accept": "application/json", "Content-Type": "application/json"}
        self.headers |= {} if environment.host else credentials().headers()

    def ask(self, case: Case) -> tuple[Any, str | None]:
        """Send the case as a dry run."""
        if case.name not in self._calls:
            self._calls[case.name] = case.call(self.options.namespace)
        method, path, body = self._calls[case.name]
        response = self.client.request(
            method, path, data=body, headers=self.headers, name=case.name, catch_response=True
        )
        headers = response.headers.items() if response.headers else ()
        return response, fault_of_object(
            case.expected, response.status_code, response.content, headers
        )


@events.test_start.add_listener
def prepare(environment: Any, **_: Any) -> None:
    """Make what is missing."""
    if is_worker(environment):
        return
    namespace = environment.parsed_options.namespace
    named = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": SERVICE_ACCOUNT}}
    _send(environment, "POST", "/api/v1/namespaces", json.dumps(named).encode())
    accounts = f"/api/v1/namespaces/{namespace}/serviceaccounts"
    _send(environment, "POST", accounts, json.dumps(account).encode())
    for path, body in standing_objects(namespace):
        _send(environment, "POST", path, body)


@events.test_stop.add_listener
def clean_up(environment: Any, **_: Any) -> None:
    """Delete what updates and deletes were about."""
    if is_worker(environment):
        return
    for path, body in standing_objects(environment.parsed_options.namespace):
        _send(environment, "DELETE", f"{path}/{json.loads(body)['metadata']['name']}", None)


def _send(environment: Any, method: str, path: str, body: bytes | None) -> None:
    """A request of the test's own; what is there, or gone, already is well."""
    own = environment.host is None
    request = urllib.request.Request(
        (credentials().server if own else environment.host.rstrip("/")) + path,
        method=method,
        data=body,
        headers={"Content-Type": "application/json"} | (credentials().headers() if own else {}),
    )
    context = credentials().context() if own else None
    try:
        with urllib.request.urlopen(request, timeout=REQUEST_SECONDS_MAX, context=context):
            pass
    except urllib.error.HTTPError as error:
        with error:
            if error.code not in (404, 409):
                raise RuntimeError(f"{method} {path}: {error.read().decode()}") from error
