"""Objects that an API server takes and that nobody would write: by hand, and at random."""

import random
from collections.abc import Iterator
from ssl import SSLEOFError
from typing import Any

from tests.cluster import Api, ApiError
from tests.system.replicas import (
    CONFIG_MAPS,
    CONSTRAINTS,
    NAMESPACE,
    STATUSES,
    TEMPLATES,
    WORKLOADS,
    Plane,
    constraint,
    template,
)

KIND = "Strange"
ANYTHING = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
CONFIG = f"/apis/config.gatekeeper.sh/v1alpha1/namespaces/{NAMESPACE}/configs"
SYNC_SETS = "/apis/syncset.gatekeeper.sh/v1alpha1/syncsets"
MUTATIONS = "/apis/mutations.gatekeeper.sh"
EXPANSIONS = "/apis/expansion.gatekeeper.sh/v1alpha1/expansiontemplate"
REVISIONS = "/apis/policy.waddle.dev/v1alpha1/policyrevisions"

LOCATIONS = (
    "data.x",
    "data.a[b: *].c",
    "data.a[b: c].d",
    "metadata.labels.x",
    "metadata.annotations.x",
    "",
    ".",
    "data.",
    "a[b",
    'data."\u202e".x',
    "data" + ".a" * 400,
    "data" + "[a: *]" * 60 + ".b",
)
"""Of what mutators change; they are for a name that no object has, so that the canaries stay."""

PATH_STATUSES = {
    "ConstraintTemplatePodStatus": "constrainttemplatepodstatuses",
    "MutatorPodStatus": "mutatorpodstatuses",
    "ExpansionTemplatePodStatus": "expansiontemplatepodstatuses",
    "ConfigPodStatus": "configpodstatuses",
}

ROLLOUTS = (
    "dryrun quiet=9999999999h",
    "dryrun after=1h, warn quiet=99999999999999999999999h",
    "dryrun quiet=" + "9" * 400 + "h",
    ", ".join(["dryrun"] * 400),
)
STATUS_SHAPES: tuple[Any, ...] = (
    "a text",
    {"conditions": ["x"]},
    {"conditions": 5},
    {"conditions": [{"type": {}}]},
    {"byPod": "x", "violations": {}, "auditTimestamp": 5, "totalViolations": "many"},
    {
        "rollout": {
            "observedGeneration": 1,
            "state": "Progressing",
            "steps": [{"action": {}, "since": "2026-01-01T00:00:00Z"}],
        }
    },
)


def nested(levels: int) -> Any:
    """A value of so many levels."""
    value: Any = "end"
    for _ in range(levels):
        value = {"a": value}
    return value


def schema_of(levels: int) -> Any:
    """A schema of so many levels."""
    schema: Any = {"type": "string"}
    for _ in range(levels):
        schema = {"type": "object", "properties": {"a": schema}}
    return schema


def strange_template(kind: str, schema: Any) -> dict[str, Any]:
    """A template with a schema that nobody would write."""
    document = template(kind)
    document["spec"]["crd"]["spec"]["validation"]["openAPIV3Schema"] = schema
    return document


def try_apply(api: Api, path: str, document: dict[str, Any]) -> bool:
    """Whether the API server took it: what it refuses can harm nobody."""
    try:
        api.apply(path, document)
    except ApiError:
        return False
    except (BrokenPipeError, ConnectionResetError, SSLEOFError):
        # It may answer, and close, before it has read a large body: a kind that it does not serve yet.
        return False
    return True


def write_status(api: Api, path: str, status: Any) -> bool:
    """Whether an object has this status now, whatever it says."""
    try:
        found = api.request("GET", path)
        api.request("PUT", f"{path}/status", {**found, "status": status})
    except ApiError:
        return False
    return True


def write_all(plane: Plane) -> Iterator[str]:
    """Write what was seen to stop replicas, each by itself; says what was taken."""
    api = plane.api
    schemas = {
        "deepschema": schema_of(150),
        "deeperschema": schema_of(900),
        "worded": {"type": "object", "properties": {"a": {"type": "string", "maxLength": "a"}}},
        "zero": {"type": "object", "properties": {"a": {"type": "integer", "multipleOf": 0}}},
    }
    for kind, schema in schemas.items():
        document = strange_template(kind.title(), schema)
        if try_apply(api, f"{TEMPLATES}/{kind}", document):
            yield f"a template of the schema {kind}"
    if try_apply(api, f"{TEMPLATES}/constrainttemplate", template("ConstraintTemplate")):
        yield "a template of the kind ConstraintTemplate"
    plane.put_template(strange_template(KIND, ANYTHING))
    documents = {f"deep-{levels}": nested(levels) for levels in (300, 1_100, 9_000)}
    for name, parameters in documents.items():
        document = constraint(name, "x", KIND)
        document["spec"]["parameters"] = parameters
        plane.put_constraint(document)
        yield f"a constraint with parameters {name}"
    for number, annotation in enumerate(ROLLOUTS):
        document = constraint(f"rollout-{number}", "x", KIND)
        document["metadata"]["annotations"] = {"waddle.dev/rollout": annotation}
        plane.put_constraint(document)
        yield f"the roll-out {annotation[:40]}"
    for number, status in enumerate(STATUS_SHAPES):
        name = f"status-{number}"
        plane.put_constraint(constraint(name, "x", KIND))
        if write_status(api, f"{CONSTRAINTS}/{KIND.lower()}/{name}", status):
            yield f"the status {str(status)[:40]}"
    if try_apply(api, f"{CONFIG_MAPS}/deep", deep_config_map("deep", 1_100)):
        yield "a ConfigMap of 1,100 levels"


def deep_config_map(name: str, levels: int) -> dict[str, Any]:
    """A ConfigMap whose history nests so deep: it is kept as it is sent."""
    document = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": WORKLOADS},
    }
    field = {
        "manager": "x",
        "operation": "Update",
        "apiVersion": "v1",
        "fieldsType": "FieldsV1",
        "fieldsV1": {"f:data": nested(levels)},
    }
    document["metadata"] |= {"managedFields": [field]}  # type: ignore[operator]
    return document


class Fuzz:
    """Writes objects at random; the same for the same seed."""

    def __init__(self, plane: Plane, seed: int) -> None:
        self._api = plane.api
        self._random = random.Random(seed)

    def write(self) -> None:
        """Write one object of some kind that replicas watch, or its status, or delete it."""
        choose = self._random.choice
        write = choose(
            [
                self._template,
                self._constraint,
                self._constraint,
                self._status,
                self._status,
                self._data,
                self._config,
                self._sync_set,
                self._pod_status,
                self._revision,
                self._mutator,
                self._mutator,
                self._expansion,
                self._extension_status,
                self._any_pod_status,
                self._delete,
            ]
        )
        write()

    def _name(self) -> str:
        return f"fuzz{self._random.randrange(6)}"

    def value(self, depth: int = 0) -> Any:
        """A value of any shape, deep now and then."""
        roll = self._random.random()
        if depth > 3 or roll < 0.45:
            return self._random.choice(
                [None, True, 0, -1, 2**40, 1.5, "", "x", "deny", "*", "é\u202e", "x" * 300, "True"]
            )
        if roll < 0.5:
            return nested(self._random.choice([5, 120, 260, 1_100, 4_000]))
        if roll < 0.7:
            return [self.value(depth + 1) for _ in range(self._random.randrange(4))]
        return {self._key(): self.value(depth + 1) for _ in range(self._random.randrange(4))}

    def _key(self) -> str:
        return self._random.choice(
            [
                "a",
                "type",
                "properties",
                "items",
                "conditions",
                "status",
                "rollout",
                "steps",
                "byPod",
                "kinds",
                "labelSelector",
                "matchExpressions",
                "namespaces",
                "observedGeneration",
                "violations",
            ]
        )

    def _annotations(self) -> dict[str, str]:
        texts = [*ROLLOUTS, "dryrun after=1h", "true", "1", "[[]]", "x" * 5_000, "\u202e", "reject"]
        names = ["rollout", "on-error", "rollback-to", "rollout-pause", "rollout-abort"]
        return {
            f"waddle.dev/{name}": self._random.choice(texts)
            for name in names
            if self._random.random() < 0.3
        }

    def _template(self) -> None:
        name = self._name()
        document = strange_template(
            name, self._random.choice([ANYTHING, self.value(), schema_of(99)])
        )
        document["metadata"]["annotations"] = self._annotations()
        if self._random.random() < 0.2:
            document["spec"]["targets"][0]["rego"] = self._random.choice(["", "package x", "{"])
        try_apply(self._api, f"{TEMPLATES}/{name}", document)

    def _constraint(self) -> None:
        kind = self._random.choice([KIND, KIND, self._name()])
        name = self._name()
        document = constraint(name, "x", kind)
        part = self._random.choice(["parameters", "match", "enforcementAction", "other"])
        document["spec"][part] = self.value()
        document["metadata"]["annotations"] = self._annotations()
        try_apply(self._api, f"{CONSTRAINTS}/{kind.lower()}/{name}", document)

    def _status(self) -> None:
        status = self._random.choice([self.value(), self._random.choice(STATUS_SHAPES)])
        write_status(self._api, f"{CONSTRAINTS}/{KIND.lower()}/{self._name()}", status)

    def _data(self) -> None:
        name = self._name()
        levels = self._random.choice([1, 200, 1_100, 5_000])
        try_apply(self._api, f"{CONFIG_MAPS}/{name}", deep_config_map(name, levels))

    def _config(self) -> None:
        spec = {"sync": {"syncOnly": [{"group": "", "version": "v1", "kind": "ConfigMap"}]}}
        if self._random.random() < 0.5:
            spec["match"] = self.value()
        document = {
            "apiVersion": "config.gatekeeper.sh/v1alpha1",
            "kind": "Config",
            "metadata": {"name": "config", "namespace": NAMESPACE},
            "spec": spec,
        }
        try_apply(self._api, f"{CONFIG}/config", document)

    def _sync_set(self) -> None:
        kinds = ["ConfigMap", "Nothing", "x" * 300, "\u202e", "Secret/status"]
        gvk = {"group": self._random.choice(["", "x", "../x"]), "version": "v1"}
        document = {
            "apiVersion": "syncset.gatekeeper.sh/v1alpha1",
            "kind": "SyncSet",
            "metadata": {"name": self._name()},
            "spec": {"gvks": [gvk | {"kind": self._random.choice(kinds)}]},
        }
        try_apply(self._api, f"{SYNC_SETS}/{document['metadata']['name']}", document)

    def _pod_status(self) -> None:
        name = self._name()
        labels = {
            "internal.gatekeeper.sh/constraint-kind": KIND,
            "internal.gatekeeper.sh/constraint-name": self._name(),
        }
        document = {
            "apiVersion": "status.gatekeeper.sh/v1beta1",
            "kind": "ConstraintPodStatus",
            "metadata": {"name": name, "namespace": NAMESPACE, "labels": labels},
            "status": {"id": "x", "audit": {"violations": [{"a": self.value()}]}},
        }
        try_apply(self._api, f"{STATUSES}/constraintpodstatuses/{name}", document)

    def _revision(self) -> None:
        name = self._name()
        document = {
            "apiVersion": "policy.waddle.dev/v1alpha1",
            "kind": "PolicyRevision",
            "metadata": {"name": name},
            "spec": {
                "subject": {
                    "apiVersion": "x",
                    "kind": self._random.choice([KIND, "ConstraintTemplate", ""]),
                    "name": self._name(),
                    "uid": "x",
                },
                "generation": self._random.choice([0, 1, 2**40]),
                "digest": "x",
                "encoding": self._random.choice(["", "gzip", "x"]),
                "content": self._random.choice(["", "{", "H4sI", "x" * 5_000]),
            },
        }
        try_apply(self._api, f"{REVISIONS}/{name}", document)

    def _mutator(self) -> None:
        kind = self._random.choice(["Assign", "AssignMetadata", "ModifySet", "AssignImage"])
        name, choose = self._name(), self._random.choice
        version = "v1alpha1" if kind == "AssignImage" else "v1"
        shapes: dict[str, dict[str, Any]] = {
            "Assign": {"assign": {"value": self.value()}},
            "AssignMetadata": {"assign": {"value": self.value()}},
            "ModifySet": {"operation": choose(["merge", "prune"]), "values": {"fromList": []}},
            "AssignImage": {
                "assignDomain": choose(["x", "a b", "é"]),
                "assignTag": choose(["", ":x"]),
            },
        }
        parameters = shapes[kind]
        if kind == "ModifySet":
            parameters["values"]["fromList"] = [self.value() for _ in range(3)]
        if self._random.random() < 0.3:
            test = {"subPath": choose(LOCATIONS), "condition": choose(["MustExist", "x"])}
            parameters["pathTests"] = [test]
        if self._random.random() < 0.2:
            source = {"provider": "x", "dataSource": "ValueAtLocation", "failurePolicy": "Fail"}
            parameters["assign"] = {"externalData": source}
        spec: dict[str, Any] = {
            "location": choose(LOCATIONS),
            "match": {"name": "nobody", "scope": choose(["*", "Namespaced", "x"])},
            "parameters": parameters,
        }
        if kind != "AssignMetadata":
            kinds = choose([["ConfigMap"], ["*"], ["Pod", "x" * 300]])
            spec["applyTo"] = [{"groups": [""], "versions": ["v1"], "kinds": kinds}]
        if self._random.random() < 0.3:
            spec[choose(["location", "match", "parameters", "applyTo"])] = self.value()
        modes = ["preview", "enforce", "x" * 5_000, "\u202e"]
        document = {
            "apiVersion": f"mutations.gatekeeper.sh/{version}",
            "kind": kind,
            "metadata": {
                "name": name,
                "annotations": {**self._annotations(), "waddle.dev/mode": choose(modes)},
            },
            "spec": spec,
        }
        try_apply(self._api, f"{MUTATIONS}/{version}/{kind.lower()}/{name}", document)

    def _expansion(self) -> None:
        name, choose = self._name(), self._random.choice
        kinds = ["Deployment", "Pod", "Fuzz", "x" * 300]
        spec: dict[str, Any] = {
            "applyTo": [{"groups": ["apps"], "versions": ["v1"], "kinds": [choose(kinds)]}],
            "templateSource": choose(["spec.template", "", ".", "a" * 5_000, "spec[a: b]"]),
            "generatedGVK": {"group": choose(["", "apps"]), "version": "v1", "kind": choose(kinds)},
            "enforcementAction": choose(["", "deny", "warn", "x"]),
        }
        if self._random.random() < 0.3:
            spec[choose(list(spec))] = self.value()
        document = {
            "apiVersion": "expansion.gatekeeper.sh/v1alpha1",
            "kind": "ExpansionTemplate",
            "metadata": {"name": name, "annotations": self._annotations()},
            "spec": spec,
        }
        try_apply(self._api, f"{EXPANSIONS}/{name}", document)

    def _extension_status(self) -> None:
        paths = [
            f"{MUTATIONS}/v1/assign",
            f"{MUTATIONS}/v1/assignmetadata",
            f"{MUTATIONS}/v1/modifyset",
            f"{MUTATIONS}/v1alpha1/assignimage",
            EXPANSIONS,
            TEMPLATES,
        ]
        status = self._random.choice([self.value(), self._random.choice(STATUS_SHAPES)])
        write_status(self._api, f"{self._random.choice(paths)}/{self._name()}", status)

    def _any_pod_status(self) -> None:
        kind = self._random.choice(list(PATH_STATUSES))
        name = self._name()
        words = ["mutator-kind", "mutator-name", "constrainttemplate-name", "pod"]
        labels = {
            f"internal.gatekeeper.sh/{word}": self._random.choice([KIND, "Assign", name])
            for word in words
        }
        document = {
            "apiVersion": "status.gatekeeper.sh/v1beta1",
            "kind": kind,
            "metadata": {"name": name, "namespace": NAMESPACE, "labels": labels},
            "status": self._random.choice([{"id": "x", "errors": self.value()}, self.value()]),
        }
        try_apply(self._api, f"{STATUSES}/{PATH_STATUSES[kind]}/{name}", document)

    def _delete(self) -> None:
        name = self._name()
        path = self._random.choice(
            [
                f"{TEMPLATES}/{name}",
                f"{CONSTRAINTS}/{KIND.lower()}/{name}",
                f"{CONFIG_MAPS}/{name}",
                f"{MUTATIONS}/v1/assign/{name}",
                f"{MUTATIONS}/v1/assignmetadata/{name}",
                f"{EXPANSIONS}/{name}",
            ]
        )
        try:
            self._api.request("DELETE", path)
        except ApiError:
            return
