"""The mix of requests: real objects, the answers that `loadtest/policies` demands, and weights.

Pods and Deployments are those of `loadtest/bodies`; the rest is derived from them. Each case is one
AdmissionReview for a webhook, and one dry-run request for an API server.
"""

import copy
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from loadtest.locust.answers import Expectation

BODIES = Path(__file__).resolve().parent.parent / "bodies"

NO_OWNER = 'you must provide labels: {"owner"}'
LATEST = (
    "container <app> uses a disallowed tag <registry.example.com/payments/checkout:latest>; "
    'disallowed tags are ["latest"]'
)
WARNING = "[configmaps-have-an-owner] a ConfigMap should say whose it is"

# How often each set has the constraints that a bad object meets: k8sdisallowedtags-0 … and
# k8srequiredlabels-0 …; no other constraint of a set objects to any object of the mix.
POLICY_SETS = {"p1": (0, 1), "p12": (1, 1), "p100": (5, 5)}

# Names that stay in the reviewed namespace while the load runs, for updates and deletes.
STANDING = "waddle-load"
# etcd's default limit is 1.5 MiB a request; a ConfigMap's data may be 1 MiB in all.
MIB = 2**20
LARGE_BYTES = 20_000


@dataclass(frozen=True, slots=True)
class Case:
    """A kind of request: an object under an operation, and the expected answer."""

    name: str
    weight: int
    operation: str
    resource: str
    obj: Mapping[str, Any] | None
    old: Mapping[str, Any] | None
    expected: Expectation

    @property
    def subject(self) -> Mapping[str, Any]:
        """The object that the request is about."""
        subject = self.old if self.obj is None else self.obj
        assert subject is not None
        return subject

    def review(self, namespace: str) -> tuple[bytes, bytes]:
        """The AdmissionReview before and after its request's uid."""
        group, _, version = str(self.subject["apiVersion"]).rpartition("/")
        kind = {"group": group, "version": version, "kind": self.subject["kind"]}
        resource = {"group": group, "version": version, "resource": self.resource}
        options = {"CREATE": "CreateOptions", "UPDATE": "UpdateOptions", "DELETE": "DeleteOptions"}
        request = {
            "uid": "",
            "kind": kind,
            "resource": resource,
            "requestKind": kind,
            "requestResource": resource,
            "name": self.subject["metadata"]["name"],
            "namespace": namespace,
            "operation": self.operation,
            "userInfo": {
                "username": "system:serviceaccount:kube-system:replicaset-controller",
                "uid": "f3a9",
                "groups": ["system:serviceaccounts", "system:authenticated"],
            },
            "object": _placed(self.obj, namespace),
            "oldObject": _placed(self.old, namespace),
            "dryRun": False,
            "options": {"kind": options[self.operation], "apiVersion": "meta.k8s.io/v1"},
        }
        review = {"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1"}
        whole = json.dumps(review | {"request": request}, separators=(",", ":")).encode()
        before, after = whole.split(b'"uid":""', 1)
        return before + b'"uid":"', b'"' + after

    def call(self, namespace: str) -> tuple[str, str, bytes | None]:
        """Method, path and body of the same request to an API server, as a dry run."""
        path = collection(str(self.subject["apiVersion"]), self.resource, namespace)
        if self.operation == "CREATE":
            return "POST", f"{path}?dryRun=All", _body(self.obj, namespace)
        path = f"{path}/{self.subject['metadata']['name']}?dryRun=All"
        if self.operation == "UPDATE":
            return "PUT", path, _body(self.obj, namespace)
        return "DELETE", path, None


def collection(api_version: str, resource: str, namespace: str) -> str:
    """The path of a namespace's objects."""
    root = "/apis/" if "/" in api_version else "/api/"
    return f"{root}{api_version}/namespaces/{namespace}/{resource}"


def mix(policies: str) -> list[Case]:
    """All cases, with the answers of one set of policies. Raises ValueError for an unknown set.

    The weights are a cluster's in broad strokes: rollouts make most requests, few are denied, and
    large objects are rare (one in fifty 20 KB, one in a hundred 1 MiB).
    """
    if policies not in POLICY_SETS:
        raise ValueError(f"no policies {policies!r}; there are {', '.join(POLICY_SETS)}")
    tags, labels = POLICY_SETS[policies]
    allowed = Expectation(allowed=True)
    warned = Expectation(allowed=True, warnings=(WARNING,))
    unowned = Expectation(allowed=False, message=_lines(0, labels))
    bad = Expectation(allowed=False, message=_lines(tags, labels))
    pod, bad_pod, deployment = (_object(name) for name in ("pod", "pod_bad", "deployment"))
    # API servers refuse what is privileged and must not escalate; no policy here looks at it.
    bad_pod["spec"]["containers"][0]["securityContext"]["privileged"] = False
    standing = _named(deployment, STANDING) | {"spec": deployment["spec"] | {"replicas": 0}}
    settings = _config_map(STANDING, {"level": "info"}, owned=True)
    changed = _config_map(STANDING, {"level": "debug"}, owned=True)
    return [
        Case("pod", 30, "CREATE", "pods", pod, None, allowed),
        Case("pod bad", 8, "CREATE", "pods", bad_pod, None, bad),
        Case("deployment", 15, "CREATE", "deployments", deployment, None, allowed),
        Case("deployment update", 15, "UPDATE", "deployments", _noted(standing), standing, allowed),
        Case(
            "deployment update bad",
            4,
            "UPDATE",
            "deployments",
            _unowned(standing),
            standing,
            unowned,
        ),
        Case("deployment delete", 4, "DELETE", "deployments", None, standing, allowed),
        Case(
            "config map", 8, "CREATE", "configmaps", _config_map("a", {}, owned=True), None, allowed
        ),
        Case(
            "config map warned",
            5,
            "CREATE",
            "configmaps",
            _config_map("b", {}, owned=False),
            None,
            warned,
        ),
        Case("config map update", 4, "UPDATE", "configmaps", changed, settings, allowed),
        Case("config map delete", 4, "DELETE", "configmaps", None, settings, allowed),
        Case("pod 20 KB", 2, "CREATE", "pods", _large(pod, LARGE_BYTES), None, allowed),
        Case("config map 1 MiB", 1, "CREATE", "configmaps", _mebibyte(), None, allowed),
    ]


def standing_objects(namespace: str) -> list[tuple[str, bytes]]:
    """Returns the objects of updates and deletes to be created, with their collections' paths."""
    found = {
        (case.resource, case.operation): case for case in mix("p1") if case.operation == "DELETE"
    }
    return [
        (
            collection(str(case.subject["apiVersion"]), case.resource, namespace),
            _body(case.subject, namespace),
        )
        for case in found.values()
    ]


def _object(name: str) -> dict[str, Any]:
    """The object of a body, as a client sends it: without what an API server fills in."""
    review = json.loads((BODIES / f"{name}.json").read_text())
    obj: dict[str, Any] = review["request"]["object"]
    return obj


def _named(obj: Mapping[str, Any], name: str) -> dict[str, Any]:
    named = copy.deepcopy(dict(obj))
    named["metadata"]["name"] = name
    return named


def _noted(obj: Mapping[str, Any]) -> dict[str, Any]:
    noted = copy.deepcopy(dict(obj))
    noted["metadata"]["annotations"]["example.com/rollout"] = "2"
    return noted


def _unowned(obj: Mapping[str, Any]) -> dict[str, Any]:
    unowned = copy.deepcopy(dict(obj))
    del unowned["metadata"]["labels"]["owner"]
    return unowned


def _large(obj: Mapping[str, Any], size_bytes: int) -> dict[str, Any]:
    """The object, brought to a size by an annotation, as kubectl's last applied one does."""
    large = copy.deepcopy(dict(obj))
    missing = size_bytes - len(json.dumps(large, separators=(",", ":")))
    large["metadata"]["annotations"]["example.com/notes"] = "waddle " * (missing // 7)
    return large


def _config_map(name: str, data: Mapping[str, str], *, owned: bool) -> dict[str, Any]:
    labels = {"app.kubernetes.io/name": "checkout"} | ({"owner": "team-payments"} if owned else {})
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": f"{name}-settings" if name != STANDING else name, "labels": labels},
        "data": {"mode": "fast", **data},
    }


def _mebibyte() -> dict[str, Any]:
    """A ConfigMap of 1 MiB as a whole: 64 files."""
    line = "key = value # of a file\n"
    files = {f"part-{number}.conf": line * (MIB // 64 // len(line) - 5) for number in range(64)}
    return _config_map("large", files, owned=True)


def _lines(tags: int, labels: int) -> str:
    """The message of a denial: a line for each violation."""
    found = [f"[k8sdisallowedtags-{number}] {LATEST}" for number in range(tags)]
    found += [f"[k8srequiredlabels-{number}] {NO_OWNER}" for number in range(labels)]
    return "\n".join(found)


def _placed(obj: Mapping[str, Any] | None, namespace: str) -> Mapping[str, Any] | None:
    if obj is None:
        return None
    return {**obj, "metadata": {**obj["metadata"], "namespace": namespace}}


# Fields that an API server sets itself, or takes for a claim about an existing object.
SERVER_SET = ("uid", "creationTimestamp", "ownerReferences", "generateName")


def _body(obj: Mapping[str, Any] | None, namespace: str) -> bytes:
    placed = _placed(obj, namespace)
    assert placed is not None
    metadata = {key: value for key, value in placed["metadata"].items() if key not in SERVER_SET}
    sent = {key: value for key, value in placed.items() if key != "status"}
    return json.dumps(sent | {"metadata": metadata}, separators=(",", ":")).encode()
