"""A replica without a cluster, whose synced data is kept whole or as far as templates read it."""

import copy
from random import Random
from typing import Any, ClassVar

from tests.simulation.cluster_users import CONFIG
from tests.webhook.controllers.requested_kinds import CONFIG_MAP, RequestedKinds
from webhook.api.config import CONFIG as CONFIG_KIND
from webhook.api.pod_status import Pod
from webhook.cluster.store import Key
from webhook.constraint.client import Client
from webhook.constraint.driver import Evaluator
from webhook.constraint.drivers.cel import CelDriver
from webhook.constraint.drivers.rego import RegoDriver, RegoEvaluator
from webhook.constraint.targets.admission import AdmissionTarget
from webhook.constraint.template import Code, Template
from webhook.controllers.apply.publication import ClusterPolicies
from webhook.log import Log
from webhook.metrics.registry import Registry
from webhook.policy_kinds.known import TEMPLATE
from webhook.serving.revision import Serving
from webhook.watch.queue import Event

NAMESPACES = ("one", "two")
NAMES = ("a", "b", "c")
FIELDS = ("a", "b", "list")

REGO = (
    "of.{path} == input.review.object.data.a",
    "of.{path}",
    "not of.{path}",
    'object.get(of, "{first}", "none") == input.review.object.data.a',
    "count(of.{first}) > 1",
    "of.{first}[_] == input.review.object.data.b",
    "of.{first}[key]; key == input.review.object.data.a",
    "of.{path} == data.inventory.namespace[_].v1.ConfigMap[_].{other}",
    "of == input.review.object",
    "is_object(of.{path})",
    'of.metadata.labels["{first}"] != of.metadata.name',
    'is_string(of.{path}); sprintf("%v", [of.{first}]) != "x"',
    "every item in of.{first} {{ item != input.review.object.data.b }}",
    "[one | one := of.{first}[_]][0] == input.review.object.data.a",
    "walk(of, [path, value]); value == input.review.object.data.b",
    "some name, item in of.{first}; item == name",
)
"""Conditions about ``of``, an object that is synced."""

CEL = (
    "has(of.{first}) && of.{first} == object.data.a",
    "has(of.{first}) && type(of.{first}) == list && of.{first}.exists(one, one == object.data.b)",
    "has(of.metadata.labels) && size(of.metadata.labels) > 1",
    "'{first}' in of",
    "string(dyn(of)[?'{first}'].orValue('none')) == object.data.a",
)
"""The same in CEL."""


def some_names(random: Random) -> dict[str, str]:
    """Returns values for the names in :data:`REGO` and :data:`CEL`."""
    return {
        "first": random.choice(FIELDS),
        "path": random.choice(["a", "b", "list.a", "a.b", "metadata.labels.a"]),
        "other": random.choice(["a", "b", "metadata.name", "list"]),
    }


def some_value(random: Random, depth: int = 2) -> Any:
    """Returns a JSON value, often one of few."""
    if depth and random.random() < 0.3:
        chosen = random.sample(FIELDS, random.randrange(3))
        return {name: some_value(random, depth - 1) for name in chosen}
    if depth and random.random() < 0.3:
        return [some_value(random, depth - 1) for _ in range(random.randrange(3))]
    return random.choice(["a", "b", "x", "", 0, 1, 1.0, True, False, None])


def some_object(random: Random, namespace: str, name: str, version: int) -> Any:
    """Returns a ConfigMap with some of :data:`FIELDS`."""
    labels = {one: random.choice("abx") for one in random.sample(FIELDS, random.randrange(3))}
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "uid": f"{namespace}/{name}",
            "resourceVersion": str(version),
            **({"labels": labels} if random.random() < 0.7 else {}),
        },
        **{one: some_value(random) for one in FIELDS if random.random() < 0.7},
    }


class InRego(RegoDriver):
    """Compiles a text once, for all replicas."""

    compiled: ClassVar[dict[tuple[str, str], RegoEvaluator]] = {}

    def compile(self, template: Template, code: Code) -> RegoEvaluator:
        """Returns what was compiled before, where it is the same text of the same kind."""
        key = template.kind, repr(code.source)
        if key not in self.compiled:
            self.compiled[key] = super().compile(template, code)
        return self.compiled[key]


class InCel(CelDriver):
    """The same for CEL."""

    compiled: ClassVar[dict[tuple[str, str], Evaluator]] = {}

    def compile(self, template: Template, code: Code) -> Any:
        """Returns what was compiled before, where it is the same text of the same kind."""
        key = template.kind, repr(code.source)
        if key not in self.compiled:
            self.compiled[key] = super().compile(template, code)
        return self.compiled[key]


class Replica:
    """The controllers, and a watch of ConfigMaps that brings what is to be kept."""

    def __init__(self, *, projects: bool) -> None:
        self.client = Client(targets=(AdmissionTarget(),), drivers=(InRego(), InCel()))
        self.watches = RequestedKinds()
        self.objects: dict[Key, Any] = {}
        self.is_behind = False
        self.policies = ClusterPolicies(
            self.client,
            Serving(),
            Pod("p", "waddle", "uid", ("webhook",)),
            (RequestedKinds(), self.watches),
            registry=Registry(),
            log=Log(lambda _: None).logger("x"),
            wait_for_broken=False,
            projects=projects,
        )
        self.reconciler = self.policies.reconciler
        self.reconciler.begin()
        metadata = {"name": "config", "namespace": "waddle", "uid": "c", "generation": 1}
        config = {"kind": "Config", **CONFIG, "metadata": metadata}
        self.take(CONFIG_KIND, Key("waddle", "config"), config)
        self.reconciler.take_policy(Event("synced", TEMPLATE))
        self.list_all()

    def take(self, gvk: Any, key: Key, document: Any) -> None:
        """A policy object changed, or is gone where there is no document."""
        if document is None:
            self.reconciler.take_policy(Event("delete", gvk, key, {}))
        else:
            self.reconciler.take_policy(Event("set", gvk, key, copy.deepcopy(document)))
        self.is_behind = self.is_behind or any(
            method == "project" for method, _ in self.watches.history
        )
        self.watches.history = []

    def change(self, key: Key, document: Any) -> None:
        """An object changed: a watch that lists anew tells of it later."""
        if document is None:
            self.objects.pop(key, None)
        else:
            self.objects[key] = document
        if not self.is_behind:
            self._notify(key)

    def list_all(self) -> None:
        """Take all objects again, from a new list."""
        for key in [Key(namespace, name) for namespace in NAMESPACES for name in NAMES]:
            self._notify(key)
        self.reconciler.take_data(Event("synced", CONFIG_MAP))
        self.is_behind = False

    def _notify(self, key: Key) -> None:
        document = copy.deepcopy(self.objects.get(key))
        if document is None:
            self.reconciler.take_data(Event("delete", CONFIG_MAP, key, {}))
            return
        project = self.watches.projections.get(CONFIG_MAP) or (lambda one: one)
        self.reconciler.take_data(Event("set", CONFIG_MAP, key, project(document)))

    def in_force(self) -> dict[str, int]:
        """Returns the generation of each template by which constraints are evaluated."""
        return {
            one.kind: one.document["metadata"]["generation"]
            for one in self.client.usable_templates
            if one.code
        }
