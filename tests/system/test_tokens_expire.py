"""Service account tokens that expire: replicas go on deciding, and go on writing with the next one."""

import contextlib
import time
from collections.abc import Callable
from pathlib import Path

import yaml

from tests.patience import PATIENCE_SECONDS, until
from tests.system.conftest import ALL_OPERATIONS, StartReplica
from tests.system.load import Load, is_denied
from tests.system.proxy import Proxy
from tests.system.replicas import (
    CONSTRAINTS,
    NAMESPACE,
    STATUSES,
    Plane,
    Replica,
    constraint,
    template,
    try_request,
)

ACCOUNT = f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts/expiring"
SECRETS = f"/api/v1/namespaces/{NAMESPACE}/secrets"
BINDING = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/expiring"

# The API server believes a token that it has seen for ten seconds more.
BELIEVED_SECONDS = 10


class Tokens:
    """A kubeconfig with a token in a file, as a kubelet keeps one, each bound to a Secret."""

    def __init__(self, plane: Plane, folder: Path) -> None:
        self._plane = plane
        self._file = folder / "token"
        self._count = 0
        self.kubeconfig = folder / "kubeconfig"
        body = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "expiring"}}
        plane.api.apply(ACCOUNT, body)
        subject = {"kind": "ServiceAccount", "name": "expiring", "namespace": NAMESPACE}
        binding = {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": "expiring"},
            "roleRef": {
                "apiGroup": "rbac.authorization.k8s.io",
                "kind": "ClusterRole",
                "name": "cluster-admin",
            },
            "subjects": [subject],
        }
        plane.api.apply(BINDING, binding)
        config = yaml.safe_load(plane.cluster.kubeconfig.read_text())
        config["users"][0]["user"] = {"tokenFile": str(self._file)}
        self.kubeconfig.write_text(yaml.safe_dump(config))
        self.renew()

    @property
    def _secret(self) -> str:
        return f"expiring-{self._count}"

    def renew(self) -> None:
        """Put another token into the file."""
        self._count += 1
        secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": self._secret}}
        made = self._plane.api.apply(f"{SECRETS}/{self._secret}", secret)
        bound = {
            "apiVersion": "v1",
            "kind": "Secret",
            "name": self._secret,
            "uid": made["metadata"]["uid"],
        }
        request = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenRequest",
            "spec": {"boundObjectRef": bound},
        }
        answer = self._plane.api.request("POST", f"{ACCOUNT}/token", request)
        self._file.write_text(answer["status"]["token"])

    def expire(self) -> None:
        """Let the token in the file be refused, as soon as the API server asks about it again."""
        self._plane.api.request("DELETE", f"{SECRETS}/{self._secret}")

    def remove(self) -> None:
        """Take the account away."""
        self._plane.api.request("DELETE", BINDING)
        self._plane.api.request("DELETE", ACCOUNT)
        try_request(self._plane.api, "DELETE", f"{SECRETS}/{self._secret}")


def test_tokens_expire_under_load_and_their_successors_are_used(
    plane: Plane, start: StartReplica, proxy: Proxy, tmp_path: Path
) -> None:
    """Refused with 401 replicas enforce what they watch; with a new token they say so again."""
    with contextlib.ExitStack() as stack:
        tokens = Tokens(plane, tmp_path)
        stack.callback(tokens.remove)
        flags = (*ALL_OPERATIONS, f"--kubeconfig={tokens.kubeconfig}")
        replicas = [start(f"waddle-token-{number}", *flags) for number in range(3)]
        stack.callback(plane.delete_template, "expiring")
        plane.put_template(template("Expiring"))
        plane.put_constraint(constraint("words", "expiring", "Expiring"))
        plane.put_constraint(constraint("others", "other 0", "Expiring"))
        for replica in replicas:
            replica.wait_ready()
        until(lambda: all(one.denies("expiring") for one in replicas), "all enforce")
        until(lambda: shown(plane, replicas), "all have said so")
        proxy.replicas = replicas
        stack.callback(plane.unregister)
        plane.register(proxy.port)
        until(lambda: is_denied(plane.api, "expiring"), "the webhook is in place")

        with Load(plane.api, "expiring") as load:
            load.wait_for(20)
            rotated = [counted(replica, "tokens_rotated") for replica in replicas]
            refused = [counted(replica, "unauthorized") for replica in replicas]
            tokens.expire()
            # Each change makes each replica write a status, until one is refused.
            word = changing_until(
                plane,
                lambda: all(
                    counted(replica, "unauthorized") > before
                    for replica, before in zip(replicas, refused, strict=True)
                ),
            )
            until(lambda: all(one.denies(word) for one in replicas), "watches go on")
            assert not shown(plane, replicas)
            load.wait_for(20)

            tokens.renew()
            until(lambda: shown(plane, replicas), "each has written with the new token")
            until(
                lambda: all(
                    counted(replica, "tokens_rotated") > before
                    for replica, before in zip(replicas, rotated, strict=True)
                ),
                "the new token is counted",
            )
            load.wait_for(20)
        assert load.wrong == []
        assert all(replica.is_ready for replica in replicas)
        until(lambda: len({replica.digest for replica in replicas}) == 1, "the digests are one")


def counted(replica: Replica, label: str) -> float:
    """A counter of the replica's requests to the API server."""
    return replica.metric(f"waddle_api_{label}_total") or 0


def shown(plane: Plane, replicas: list[Replica]) -> bool:
    """Whether each replica has written that it enforces the constraint as it is now."""
    found = plane.api.request("GET", f"{CONSTRAINTS}/expiring/others")
    names = [f"{replica.name.replace('-', '--')}-expiring-others" for replica in replicas]
    statuses = [
        try_request(plane.api, "GET", f"{STATUSES}/constraintpodstatuses/{name}") for name in names
    ]
    return all(
        status is not None
        and status["status"]["observedGeneration"] == found["metadata"]["generation"]
        for status in statuses
    )


def changing_until(plane: Plane, condition: Callable[[], bool]) -> str:
    """Change a constraint until it is so, and once more; the word that it denies then."""
    end = time.monotonic() + BELIEVED_SECONDS + PATIENCE_SECONDS
    number = 0
    while True:
        holds = condition()
        number += 1
        plane.put_constraint(constraint("others", f"other {number}", "Expiring"))
        if holds:
            return f"other {number}"
        assert time.monotonic() < end, "no request was ever refused"
        with contextlib.suppress(AssertionError):
            until(condition, "a refusal", seconds=1)
