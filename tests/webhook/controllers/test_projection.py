"""Synced objects are kept as far as templates read them, and a template that reads more waits for it."""

import asyncio
import json
from typing import Any

from tests import policies
from tests.simulation.cluster_users import CONFIG
from tests.simulation.control_plane import CONFIG_MAPS
from tests.webhook.controllers.requested_kinds import CONFIG_MAP, RequestedKinds
from tests.webhook.controllers.session import NAMESPACE, TEMPLATES, Session, session
from webhook.api.config import CONFIG as CONFIG_KIND
from webhook.api.pod_status import Pod
from webhook.cluster.store import Key
from webhook.constraint.client import Client
from webhook.constraint.drivers.rego import RegoDriver
from webhook.constraint.review import AugmentedObject
from webhook.constraint.targets.admission import AdmissionTarget
from webhook.controllers.apply import projection
from webhook.controllers.apply.publication import ClusterPolicies
from webhook.log import Log
from webhook.metrics.registry import Registry
from webhook.policy_kinds.known import TEMPLATE, constraint_gvk
from webhook.serving.revision import Serving
from webhook.watch.queue import Event

CONFIGS = "config.gatekeeper.sh", "configs"
REQUIRES_CONFIG_MAPS = {
    "metadata.gatekeeper.sh/requires-sync-data": json.dumps(
        [[{"groups": [""], "versions": ["v1"], "kinds": ["ConfigMap"]}]]
    )
}


def reader(kind: str, path: str) -> Any:
    """A template that denies an object by what a ConfigMap says at a path."""
    rego = f"""package reader
violation[{{"msg": msg}}] {{
  of := data.inventory.namespace[_].v1.ConfigMap[_]
  of.{path} == "no"
  msg := "{kind}"
}}"""
    return policies.template(kind, rego)


def put(replica: Session, name: str, **fields: Any) -> None:
    body = {"metadata": {"name": name, "labels": {"long": "x" * 1000}}, **fields}
    replica.storage.create(CONFIG_MAPS, NAMESPACE, body)


def config_maps(replica: Session) -> dict[str, Any]:
    """Returns the ConfigMaps that policies see now."""
    revision = replica.serving.revision
    inventory: Any = {} if revision is None else revision.snapshot.inventory
    for name in ("namespace", NAMESPACE, "v1", "ConfigMap"):
        inventory = inventory.get(name) or {}
    return dict(inventory)


def messages(replica: Session) -> list[str]:
    """Returns the messages of the policies in force about a Pod."""
    assert replica.serving.revision is not None
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "x"}}
    return sorted(
        one.msg for one in replica.serving.revision.snapshot.review(AugmentedObject(pod)).results
    )


async def enforce(replica: Session, kind: str, path: str) -> None:
    """A template and a constraint of it are there; wait until it is in force."""
    replica.make(*TEMPLATES, reader(kind, path))
    plural = "constraints.gatekeeper.sh", kind.lower()
    await replica.until(lambda: plural in replica.storage.kinds, "the constraint's kind")
    replica.make(*plural, policies.constraint(kind, "c", kinds=["Pod"]))
    await replica.until(lambda: replica.serves(kind, "c"), "the constraint in force")


def begin(replica: Session) -> None:
    replica.storage.create(replica.storage.kinds[CONFIGS], NAMESPACE, CONFIG)
    put(replica, "a", data={"word": "no", "other": "no"})
    put(replica, "b", data={"word": "yes", "more": "no"})


def test_what_no_template_reads_is_not_kept_and_comes_before_one_that_does_is_in_force(tmp_path):
    async def run():
        async with session(
            tmp_path, "webhook", "generate", prepare=begin, projects=True
        ) as replica:
            await enforce(replica, "Alpha", "data.word")
            kept = {"a": {"data": {"word": "no"}}, "b": {"data": {"word": "yes"}}}
            await replica.until(lambda: config_maps(replica) == kept, "what is read")
            assert messages(replica) == ["Alpha"]

            put(replica, "c", data={"word": "no", "other": "no", "more": "x"})
            await replica.until(lambda: config_maps(replica).get("c") == {"data": {"word": "no"}})

            # From the first moment on it finds what it reads of all objects.
            await enforce(replica, "Beta", "data.other")
            assert messages(replica) == ["Alpha", "Beta"]
            both = {"data": {"word": "no", "other": "no"}}
            assert config_maps(replica) == {"a": both, "b": {"data": {"word": "yes"}}, "c": both}

    asyncio.run(run())


def test_what_is_read_no_more_is_dropped_after_a_while(tmp_path, monkeypatch):
    monkeypatch.setattr(projection, "NARROW_SECONDS", 0.0)
    monkeypatch.setattr(projection, "LOOK_SECONDS", 0.0)

    async def run():
        async with session(
            tmp_path, "webhook", "generate", prepare=begin, projects=True
        ) as replica:
            await enforce(replica, "Alpha", "data.word")
            await enforce(replica, "Beta", "data.more")
            replica.drop(*TEMPLATES, "alpha")
            kept = {"a": {"data": {}}, "b": {"data": {"more": "no"}}}
            await replica.until(lambda: config_maps(replica) == kept, "what is still read")
            assert messages(replica) == ["Beta"]

    asyncio.run(run())


class Bench:
    """The controllers of a replica that projects, whose watches bring what a test says."""

    def __init__(self, *requiring: str) -> None:
        """``requiring``: kinds of templates that come before Config, and require ConfigMaps."""
        self.lines: list[bytes] = []
        self.client = Client(targets=(AdmissionTarget(),), drivers=(RegoDriver(),))
        self.watches = RequestedKinds()
        self.policies = ClusterPolicies(
            self.client,
            Serving(),
            Pod("p", NAMESPACE, "uid", ("webhook",)),
            (RequestedKinds(), self.watches),
            registry=Registry(),
            log=Log(self.lines.append).logger("x"),
            wait_for_broken=False,
            projects=True,
        )
        self.reconciler = self.policies.reconciler
        self.reconciler.begin()
        for kind in requiring:
            self.take(kind, "data.word", annotations=REQUIRES_CONFIG_MAPS)
        metadata = {"name": "config", "namespace": NAMESPACE, "uid": "c", "generation": 1}
        config = {"kind": "Config", **CONFIG, "metadata": metadata}
        self.reconciler.take_policy(Event("set", CONFIG_KIND, Key(NAMESPACE, "config"), config))
        assert self.watches.requested == set()  # Until it is known what templates read.
        self.reconciler.take_policy(Event("synced", TEMPLATE))
        assert self.watches.requested == {CONFIG_MAP}

    def take(self, kind: str, path: str, generation: int = 1, **metadata: Any) -> None:
        """A template, and a constraint of it."""
        document = reader(kind, path)
        document["metadata"] |= {"uid": kind, "generation": generation, **metadata}
        name = document["metadata"]["name"]
        self.reconciler.take_policy(Event("set", TEMPLATE, Key("", name), document))
        one = policies.constraint(kind, "c", kinds=["Pod"], metadata={"uid": "c"})
        self.reconciler.take_policy(Event("set", constraint_gvk(kind), Key("", "c"), one))

    def drop(self, kind: str) -> None:
        self.reconciler.take_policy(Event("delete", TEMPLATE, Key("", kind.lower()), {}))

    def put(self, name: str, **data: str) -> None:
        """A ConfigMap, as the watch brings it by what is to be kept."""
        whole = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": name, "namespace": NAMESPACE, "uid": name, "labels": {"a": "b"}},
            "data": data,
        }
        project = self.watches.projections.get(CONFIG_MAP) or (lambda one: one)
        key = Key(NAMESPACE, name)
        self.reconciler.take_data(Event("set", CONFIG_MAP, key, project(whole)))

    def remove(self, name: str) -> None:
        self.reconciler.take_data(Event("delete", CONFIG_MAP, Key(NAMESPACE, name), {}))

    def listed(self) -> None:
        self.reconciler.take_data(Event("synced", CONFIG_MAP))

    @property
    def kept(self) -> dict[str, Any]:
        inventory: Any = self.client.snapshot.inventory
        for name in ("namespace", NAMESPACE, "v1", "ConfigMap"):
            inventory = inventory.get(name) or {}
        return dict(inventory)

    @property
    def messages(self) -> list[str]:
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "x"}}
        found = self.client.snapshot.review(AugmentedObject(pod)).results
        return sorted(one.msg for one in found)

    def status_of(self, kind: str) -> str:
        self.reconciler.published()
        (found,) = [
            one["status"]
            for one in self.reconciler.statuses().values()
            if one["kind"] == "ConstraintTemplatePodStatus" and one["status"]["templateUID"] == kind
        ]
        return str(found)

    def history(self) -> list[tuple[str, str]]:
        history, self.watches.history = self.watches.history, []
        return history


WAITS = "not evaluated until its data is synced"


def test_templates_that_require_data_are_in_force_with_its_first_list():
    bench = Bench("Alpha", "Beta")
    assert bench.messages == []
    bench.put("a", word="no", other="x")
    bench.listed()
    assert bench.messages == ["Alpha", "Beta"]
    assert bench.kept == {"a": {"data": {"word": "no"}}}
    assert WAITS not in bench.status_of("Alpha")


def test_a_new_generation_waits_for_what_it_reads_and_the_one_before_stays():
    bench = Bench()
    bench.take("Alpha", "data.word")
    bench.put("a", word="no", other="yes")
    bench.listed()
    assert bench.messages == ["Alpha"]
    bench.history()

    bench.take("Alpha", "data.other", generation=2)
    assert bench.history() == [("project", "ConfigMap")]
    assert bench.messages == ["Alpha"]
    assert WAITS in bench.status_of("Alpha")
    assert "'activeGeneration': 1" in bench.status_of("Alpha")
    bench.put("a", word="no", other="yes")
    assert bench.messages == ["Alpha"]  # There may be more objects.
    bench.listed()
    assert bench.messages == []
    assert WAITS not in bench.status_of("Alpha")
    assert "'activeGeneration': 2" in bench.status_of("Alpha")


def test_a_new_template_waits_and_its_constraint_comes_with_it():
    bench = Bench()
    bench.take("Alpha", "data.word")
    bench.put("a", word="yes", other="no")
    bench.listed()
    bench.take("Beta", "data.other")
    assert bench.messages == []
    assert WAITS in bench.status_of("Beta")
    bench.put("a", word="yes", other="no")
    bench.listed()
    assert bench.messages == ["Beta"]


def test_a_template_that_reads_no_more_than_others_does_not_wait():
    bench = Bench()
    bench.take("Alpha", "data.word")
    bench.put("a", word="no")
    bench.listed()
    bench.history()
    bench.take("Beta", "data.word")
    assert bench.messages == ["Alpha", "Beta"]
    assert bench.history() == []


def test_a_kind_without_objects_is_not_waited_for():
    bench = Bench()
    bench.take("Alpha", "data.word")
    bench.take("Beta", "data.other")  # Nothing has come yet: all that comes has both.
    bench.put("a", word="no", other="no", more="no")
    bench.listed()
    assert bench.kept == {"a": {"data": {"word": "no", "other": "no"}}}
    assert bench.messages == ["Alpha", "Beta"]

    bench.take("Gamma", "data.more")
    assert bench.messages == ["Alpha", "Beta"]
    bench.remove("a")  # As where the API server serves the kind no more.
    bench.policies.retry()
    bench.put("b", more="no")
    assert bench.messages == ["Gamma"]


def test_two_templates_may_wait_and_the_later_one_waits_for_a_list_of_its_own():
    bench = Bench()
    bench.take("Alpha", "data.word")
    bench.put("a", word="no", other="no", more="no")
    bench.listed()
    bench.take("Beta", "data.other")
    bench.take("Gamma", "data.more")
    assert bench.messages == ["Alpha"]
    bench.put("a", word="no", other="no", more="no")
    bench.listed()
    assert bench.messages == ["Alpha", "Beta", "Gamma"]


def test_a_template_that_reads_objects_whole_has_them_whole():
    bench = Bench()
    bench.take("Alpha", "data.word")
    bench.put("a", word="no", other="x")
    bench.listed()
    bench.take("Beta", "data[_]")
    bench.put("a", word="yes", other="no")
    bench.listed()
    assert bench.kept == {"a": {"data": {"word": "yes", "other": "no"}}}
    assert bench.messages == ["Beta"]


def test_a_template_whose_code_is_broken_has_nothing_listed():
    bench = Bench()
    bench.take("Alpha", "data.word")
    bench.put("a", word="no")
    bench.listed()
    bench.history()
    bench.take("Beta", "data.other } violation[")
    assert bench.history() == []
    assert bench.messages == ["Alpha"]


def test_code_that_is_used_and_cannot_be_read_has_objects_whole(monkeypatch):
    bench = Bench()
    bench.put("a", word="no")
    bench.listed()
    monkeypatch.setattr(projection, "inventory_reads", lambda template: None)
    bench.take("Alpha", "data.word")
    assert bench.watches.projections == {CONFIG_MAP: None}
    assert bench.messages == []
    bench.put("a", word="no")
    bench.listed()
    assert bench.messages == ["Alpha"]
    assert bench.kept["a"]["metadata"]["labels"] == {"a": "b"}


def test_less_is_kept_a_while_after_a_template_is_gone(monkeypatch):
    bench = Bench()
    bench.take("Alpha", "data.word")
    bench.take("Beta", "data.other")
    bench.put("a", word="no", other="no")
    bench.listed()
    bench.drop("Beta")
    bench.policies.retry()
    assert bench.kept == {"a": {"data": {"word": "no", "other": "no"}}}
    monkeypatch.setattr(projection, "NARROW_SECONDS", -1.0)
    monkeypatch.setattr(projection, "LOOK_SECONDS", -1.0)
    bench.history()
    bench.policies.retry()
    bench.policies.retry()
    assert bench.history() == [("narrow", "ConfigMap")]
    assert bench.kept == {"a": {"data": {"word": "no"}}}
    assert bench.policies.data.kept == {CONFIG_MAP: (len('{"data":{"word":"no"}}'), False)}
    bench.take("Beta", "data.other")  # It is listed again.
    assert bench.messages == ["Alpha"]


def test_the_log_says_which_paths_of_a_kind_are_kept():
    bench = Bench()

    def logged() -> list[list[str]]:
        bench.policies.retry()
        bench.policies.log_in_force()
        lines = list(map(json.loads, bench.lines))
        bench.lines.clear()
        return [line["paths"] for line in lines if line.get("kind") == "v1/ConfigMap"]

    assert logged() == [[]]
    bench.take("Alpha", "data.word")
    bench.take("Beta", "metadata.labels.app")
    assert logged() == [["data.word", "metadata.labels.app"]]
    assert logged() == []
    bench.take("Gamma", "data[_]")
    assert logged() == [["data[*]", "data.word", "metadata.labels.app"]]
