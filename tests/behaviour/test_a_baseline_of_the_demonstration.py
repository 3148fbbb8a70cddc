"""A baseline of the demonstration's own cluster: its policies deny, and what runs in it goes on."""

from __future__ import annotations

import copy
import http.client
import json
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from tests.behaviour.demonstrations import running
from tests.behaviour.serving import Answer, review, unverified
from tests.cluster import Api, ApiError
from tests.conformance.gatekeeper import waddle
from tests.patience import PATIENCE_SECONDS, until
from webhook.cli.demo import sources
from webhook.cli.demo.installation import SHOP, deployment
from webhook.cli.demo.run import REPLICAS

if TYPE_CHECKING:
    from tests.programs import Programs

DEPLOYMENTS = f"/apis/apps/v1/namespaces/{SHOP}/deployments"
CONSTRAINTS = "/apis/constraints.gatekeeper.sh/v1beta1"
EXCEPTIONS = "/apis/waddle.dev/v1alpha1/clusterpolicyexceptions"
MERGE = "application/merge-patch+json"


class Shop:
    """The demonstration's cluster, as its users see it."""

    def __init__(self, folder: Path, kubeconfig: Path) -> None:
        self.kubeconfig = kubeconfig
        self.api = Api.of(kubeconfig)
        self.ports = [port_of(folder, f"waddle-{number}") for number in range(REPLICAS)]

    def deployments(self) -> dict[str, Any]:
        """Returns the Deployments in the namespace, by name."""
        return {
            one["metadata"]["name"]: {"apiVersion": "apps/v1", "kind": "Deployment", **one}
            for one in self.api.request("GET", DEPLOYMENTS)["items"]
        }

    def change(self, name: str, patch: Any) -> None:
        """A user's patch, which is answered 403 where a policy refuses it."""
        self.api.request("PATCH", f"{DEPLOYMENTS}/{name}", patch, content_type=MERGE)

    def refusal(self, made: Any) -> str:
        """The refusal that a user gets for a new object; empty where it is admitted."""
        try:
            self.api.request("POST", f"{DEPLOYMENTS}?dryRun=All", made)
        except ApiError as error:
            if error.status != 403:
                raise
            return error.body
        return ""

    def allowed(self, obj: Any, **request: Any) -> list[bool]:
        """Returns the verdict of each replica, asked directly and not by the load balancer."""
        body = json.dumps(review(obj, namespace=SHOP, **request)).encode()
        answers = []
        for port in self.ports:
            made = http.client.HTTPSConnection(
                "127.0.0.1", port, timeout=PATIENCE_SECONDS, context=unverified()
            )
            with closing(made) as connection:
                connection.request(
                    "POST", "/v1/admit?timeout=30s", body, {"Content-Type": "application/json"}
                )
                answers.append(bool(Answer(connection.getresponse()).verdict["allowed"]))
        return answers


def port_of(folder: Path, replica: str) -> int:
    """The port of a replica's admissions, by its log."""
    (log,) = folder.glob(f"waddle-demo-*/{replica}.log")
    for line in log.read_text().splitlines():
        if "admission" in (event := json.loads(line)):
            return int(event["admission"].rpartition(":")[2])
    raise AssertionError(f"{log} has no port")


@pytest.mark.slow(30)
def test_what_runs_in_the_demonstration_goes_on_and_the_same_made_anew_is_refused(
    program: Programs, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("d")
    with running(folder, f"--api-server={program('testcluster')}") as shown:
        shown.printed("(that is denied)")
        shop = Shop(folder, Path(shown.printed("KUBECONFIG=(.*)")))
        before = shop.deployments()
        own = [one for one in sources.policies("policies") if "crd" not in one["spec"]]
        assert len(before) >= len(own), "it has something that runs"

        for one in baseline(shop, own):
            shop.api.request("POST", EXCEPTIONS, one)
        for one in own:
            path = f"{CONSTRAINTS}/{one['kind'].lower()}/{one['metadata']['name']}"
            shop.api.request(
                "PATCH", path, {"spec": {"enforcementAction": "deny"}}, content_type=MERGE
            )
        until(
            lambda: (
                not any(shop.allowed(deployment("nobody-s")))
                and all(all(shop.allowed(one)) for one in before.values())
            ),
            "every replica denies, and goes by the exceptions",
        )

        for name, one in before.items():
            go_on(shop, name, one)
        after = shop.deployments()
        assert after.keys() == before.keys()
        assert all(one["spec"]["replicas"] == 0 for one in after.values())

        for name, one in before.items():
            violates = refused_for(one)
            message = shop.refusal(renamed(one, f"{name}-2"))
            assert [text for text in violates if text not in message] == [], (name, message)
            assert bool(message) == bool(violates), (name, message)
        assert any(map(refused_for, before.values()))
        assert shown.interrupt() == 0, shown.text


def baseline(shop: Shop, constraints: list[Any]) -> list[Any]:
    """Returns the exceptions of `waddle except --baseline`, one for each violating object."""
    named = [one["metadata"]["name"] for one in constraints]
    options = [word for name in named for word in ("--constraint", name)]
    done = waddle(
        *("except", "--baseline", *options, "--reason", "from before"),
        *("--kubeconfig", str(shop.kubeconfig)),
    )
    assert done.returncode == 0, done.stderr
    made = list(yaml.safe_load_all(done.stdout))
    violating = {name for name, one in shop.deployments().items() if refused_for(one)}
    assert {one["spec"]["match"]["name"] for one in made} == violating
    return made


def refused_for(one: Any) -> list[str]:
    """Returns the expected messages of the demonstration's two policies about a Deployment."""
    containers = one["spec"]["template"]["spec"]["containers"]
    is_privileged = any(c.get("securityContext", {}).get("privileged") for c in containers)
    is_owned = "owner" in one["metadata"].get("labels", {})
    messages = ["must not be privileged"] if is_privileged else []
    return messages if is_owned else [*messages, "nobody owns it"]


def renamed(one: Any, name: str) -> Any:
    """The same, made by somebody under another name."""
    made = copy.deepcopy(one)
    labels = made["metadata"].get("labels", {})
    made["metadata"] = {"name": name, "namespace": SHOP, "labels": labels}
    made.pop("status", None)
    return made


def go_on(shop: Shop, name: str, one: Any) -> None:
    """Update it, scale it up and down, restart it, and roll out another image."""
    template: Any = {"metadata": {"annotations": {"kubectl.kubernetes.io/restartedAt": "now"}}}
    containers = copy.deepcopy(one["spec"]["template"]["spec"]["containers"])
    containers[0]["image"] += "1"
    shop.change(name, {"metadata": {"annotations": {"changed": "yes"}}})
    for replicas in (3, 0):
        shop.api.request(
            *("PATCH", f"{DEPLOYMENTS}/{name}/scale", {"spec": {"replicas": replicas}}),
            content_type=MERGE,
        )
        shop.change(name, {"spec": {"replicas": replicas}})
    shop.change(name, {"spec": {"template": template}})
    shop.change(name, {"spec": {"template": {"spec": {"containers": containers}}}})
