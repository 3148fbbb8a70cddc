"""The same search through a real API server: three replicas, the shipped webhook configurations."""

import copy
import http.client
import json
import random
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from loadtest.drill.drill import library
from loadtest.slow_objects import container
from loadtest.ways_in.balancer import GivenUp, balanced
from loadtest.ways_in.objects import BODY_BYTES_MAX, EXPANSION, MUTATORS, encoded, valid, violating
from loadtest.ways_in.search import REPLICAS, Found, choices
from tests.behaviour.serving import pod
from tests.cluster import Api, ApiError
from tests.manifests import MANIFESTS
from tests.patience import until
from tests.system.conftest import control_plane
from tests.system.replicas import CRD_PATH, Plane, Replica
from webhook.app.fault_injection import BLAME_NOBODY, VARIABLE

NAMESPACE = "attacked"

CONFIGURATIONS = (
    MANIFESTS / "base" / "webhook-configuration.yaml",
    MANIFESTS / "components" / "mutation" / "webhook-configuration.yaml",
)

BUNDLES = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: bundles.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {kind: Bundle, plural: bundles}
  versions:
    - name: v1
      served: true
      storage: true
      schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
"""

PATHS = {
    "Pod": f"/api/v1/namespaces/{NAMESPACE}/pods",
    "Deployment": f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments",
    "CronJob": f"/apis/batch/v1/namespaces/{NAMESPACE}/cronjobs",
    "Bundle": f"/apis/example.com/v1/namespaces/{NAMESPACE}/bundles",
}


@dataclass(frozen=True, slots=True)
class Writer:
    """A user of the API server, with a connection for each request."""

    api: Api
    user: str

    def create(self, path: str, body: bytes) -> tuple[int, str]:
        """Status and text of the answer to a dry run."""
        address = self.api.server.partition("://")[2]
        connection = http.client.HTTPSConnection(address, context=self.api.context, timeout=60)
        headers = {
            "Content-Type": "application/json",
            "Impersonate-User": self.user,
            "Impersonate-Group": "system:masters",
        }
        try:
            connection.request("POST", f"{path}?dryRun=All", body, headers)
            answer = connection.getresponse()
            return answer.status, answer.read().decode(errors="replace")
        finally:
            connection.close()


@contextmanager
def installed(*, policy: str, guarded: bool) -> Iterator[tuple[Plane, Callable[[], GivenUp]]]:
    """Three replicas with the library's policies, asked by an API server with this failurePolicy.

    With who says what the API server gave up.
    """
    with tempfile.TemporaryDirectory(prefix="waddle-ways-in-") as name, ExitStack() as stack:
        plane = stack.enter_context(control_plane(Path(name)))
        environment = {} if guarded else {VARIABLE: BLAME_NOBODY}
        operations = ("webhook", "status", "generate", "mutation-webhook")
        flags = ("--kubernetes", *(f"--operation={name}" for name in operations))
        running = []
        for number in range(REPLICAS):
            replica = Replica(plane, f"webhook-{number}", *flags, environment=environment)
            running.append(stack.enter_context(replica))
        for replica in running:
            replica.wait_ready()
        _apply(plane)
        digests = {replica.name: "" for replica in running}

        def agree() -> bool:
            before = dict(digests)
            digests.update({replica.name: replica.digest for replica in running})
            time.sleep(1)
            return before == digests and len(set(digests.values())) == 1

        until(agree, "all replicas have the same policies")
        ports = [item.ports["admission"] for item in running]
        port, given_up = stack.enter_context(balanced(ports))
        _register(plane, port, policy)
        yield plane, given_up


def _apply(plane: Plane) -> None:
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}
    plane.api.apply(f"/api/v1/namespaces/{NAMESPACE}", namespace)
    crd = yaml.safe_load(BUNDLES)
    plane.api.apply(f"{CRD_PATH}/{crd['metadata']['name']}", crd)
    documents = [item for text in library() for item in yaml.safe_load_all(text) if item]
    for document in documents:
        if document["kind"] == "ConstraintTemplate":
            plane.put_template(document)
    for document in documents:
        if document["kind"] != "ConstraintTemplate":
            plane.put_constraint(document)
    for document in (*yaml.safe_load_all(MUTATORS), yaml.safe_load(EXPANSION)):
        group, plural = document["apiVersion"], document["kind"].lower()
        plane.api.apply(f"/apis/{group}/{plural}/{document['metadata']['name']}", document)


def _register(plane: Plane, port: int, policy: str) -> None:
    """The shipped configurations, called by address instead of by service."""
    for file in CONFIGURATIONS:
        made = copy.deepcopy(yaml.safe_load(file.read_text()))
        for webhook in made["webhooks"]:
            service = webhook["clientConfig"].pop("service")
            webhook["clientConfig"]["url"] = f"https://127.0.0.1:{port}{service['path']}"
            webhook["clientConfig"]["caBundle"] = plane.bundle
            webhook["failurePolicy"] = policy
        kind = made["kind"].lower() + "s"
        path = f"/apis/admissionregistration.k8s.io/v1/{kind}"
        plane.api.apply(f"{path}/{made['metadata']['name']}", made)
        plane.await_configurations(path)


def search_installed(plane: Plane, seconds: float, seed: int, *, first_only: bool) -> Found:
    """Try ways in until the time is over, or with ``first_only`` one is found.

    What the API server itself refuses, or does not carry out under Fail, is no way in.
    """
    chance, found = random.Random(seed), Found()
    done = threading.Event()
    other = threading.Thread(target=_others, args=(plane.api, done, found), daemon=True)
    other.start()
    end = time.monotonic() + seconds
    while time.monotonic() < end and not (first_only and found.ways_in):
        how, obj = violating(chance)
        at_once, accounts = choices(chance)
        body = encoded(valid(obj), chance)
        if len(body) > BODY_BYTES_MAX // 2:
            continue
        if at_once * len(body) > 50_000_000:
            at_once = 10
        how += f", {len(body)} bytes, {at_once} at once"
        kind = obj["kind"]

        def attempt(
            number: int,
            how: str = how,
            body: bytes = body,
            kind: str = kind,
            accounts: bool = accounts,
        ) -> None:
            user = f"system:serviceaccount:shop:a{number}" if accounts else "mallory"
            try:
                status, text = Writer(plane.api, user).create(PATHS[kind], body)
            except (OSError, http.client.HTTPException) as error:
                found.note(how, f"no answer: {type(error).__name__}", is_in=False)
                return
            found.note(how, _answer(status, text), is_in=status < http.client.BAD_REQUEST)

        threads = [threading.Thread(target=attempt, args=(number,)) for number in range(at_once)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    done.set()
    other.join()
    return found


def _answer(status: int, text: str) -> str:
    if status < http.client.BAD_REQUEST:
        return f"{status} stored"
    if "denied the request" in text:
        return f"refused {status}"
    if "failed calling webhook" in text:
        return f"failed {status}"
    try:
        document = json.loads(text)
    except ValueError:
        document = {}
    causes = (document.get("details") or {}).get("causes") or [{}]
    field = causes[0].get("field", "").partition("[")[0]
    reason = field or document.get("message", "").partition(": ")[2][:80]
    return f"the API server's own {status} {document.get('reason', '')} {reason}".rstrip()


def _others(api: Api, done: threading.Event, found: Found) -> None:
    """Writes other users' objects meanwhile."""
    writer = Writer(api, "bob")
    good: dict[str, Any] = pod(owner="me") | {"spec": {"containers": [container("a")]}}
    good["metadata"]["namespace"] = NAMESPACE
    body = json.dumps(good).encode()
    while not done.wait(0.1):
        try:
            status, _ = writer.create(PATHS["Pod"], body)
        except (OSError, http.client.HTTPException, ApiError):
            status = 0
        with found.lock:
            found.answers[f"others' {status}"] += 1
