"""Any exception of an object's reader, for any kind, spoils that object alone.

For every kind that a session follows the reader raises what Python raises at its own bounds, and
what a bug raises. The others are in force, following goes on, the replica is ready, the fault is
counted as a bug, and the object's status says so where its kind has one.
"""

import ast
import asyncio
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import webhook.controllers
from tests.simulation.policies import constraint, template
from tests.webhook.controllers.session import (
    ALPHAS,
    EVERYTHING,
    NAMESPACE,
    TEMPLATES,
    Session,
    session,
    until_says,
)
from tests.webhook.mutation.documents import assign, label
from webhook.api import config
from webhook.constraint.client import Client
from webhook.controllers import object_writer
from webhook.controllers.apply.extensions import ExtensionController
from webhook.controllers.apply.policies import PolicyController
from webhook.controllers.apply.sync import SyncController
from webhook.controllers.follow.following import Following
from webhook.controllers.revisions import known as known_revisions
from webhook.controllers.status import status_index
from webhook.metrics.cluster import OBJECT_FAULTS
from webhook.mutation.registry import Mutators
from webhook.policy_kinds import parts
from webhook.replicas import pods

ERRORS = {error.__name__: error for error in (RecursionError, MemoryError, KeyError)}
BROKEN = {f"spoiled{name.lower()}": error for name, error in ERRORS.items()}
"""By the names of the objects; a kind may have no labels by the time that it is read."""

SPOILS = "spoils"
"""The label that says which error the reader of an object raises."""

MUTATIONS = "mutations.gatekeeper.sh"
STATUS = "status.gatekeeper.sh"
POD_SPEC = {"apiVersion": "v1", "kind": "Pod"}


def config_of(name: str) -> dict[str, Any]:
    del name
    return {"kind": "Config", "metadata": {"name": "config"}, "spec": {}}


def sync_set(name: str) -> dict[str, Any]:
    gvks = [{"group": "", "version": "v1", "kind": "ConfigMap"}]
    return {"kind": "SyncSet", "metadata": {"name": name}, "spec": {"gvks": gvks}}


def expansion(name: str) -> dict[str, Any]:
    spec = {
        "applyTo": [{"groups": ["apps"], "versions": ["v1"], "kinds": ["Deployment"]}],
        "templateSource": "spec.template",
        "generatedGVK": {"group": "", "version": "v1", "kind": "Pod"},
    }
    return {"kind": "ExpansionTemplate", "metadata": {"name": name}, "spec": spec}


def image(name: str) -> dict[str, Any]:
    document = assign(name, "spec.containers[name:*].image", {})
    document["kind"] = "AssignImage"
    document["spec"]["parameters"] = {"assignTag": ":1"}
    return document


def modify(name: str) -> dict[str, Any]:
    document = assign(name, "spec.args", {})
    document["kind"] = "ModifySet"
    document["spec"]["parameters"] = {"operation": "merge", "values": {"fromList": ["x"]}}
    return document


def revision(name: str) -> dict[str, Any]:
    return {"kind": "PolicyRevision", "metadata": {"name": name}, "spec": {}}


def status(name: str) -> dict[str, Any]:
    return {"metadata": {"name": name}, "status": {}}


def plain(name: str) -> dict[str, Any]:
    return {"metadata": {"name": name}}


def crd(name: str) -> dict[str, Any]:
    labels = {"gatekeeper.sh/constraint": "yes"}
    spec = {"group": "constraints.gatekeeper.sh", "names": {"kind": name.title()}, "versions": []}
    metadata = {"name": f"{name}.constraints.gatekeeper.sh", "labels": labels}
    return {"metadata": metadata, "spec": spec}


class Case(NamedTuple):
    """A kind, how its objects are made, and the readers that each of its objects goes through."""

    named: tuple[str, str]
    make: Callable[[str], dict[str, Any]]
    readers: tuple[tuple[Any, str], ...]
    statuses: str = ""
    """The kind of the status objects about it; empty where it has none."""
    namespace: str = ""
    one: bool = False
    """Whether there is one object of the kind, which changes."""


STATUS_READERS = ((status_index, "is_named_for_owner"), (status_index.StatusIndex, "_change"))
MUTATOR_READERS = ((Mutators, "add"), (ExtensionController, "take"))
CASES = {
    "ConstraintTemplate": Case(
        TEMPLATES,
        lambda name: template(name.title(), 0),
        ((Client, "add_template"), (PolicyController, "template")),
        "constrainttemplatepodstatuses",
    ),
    "constraint": Case(
        ALPHAS,
        lambda name: constraint("Alpha", name, 0),
        ((Client, "add_constraint"), (PolicyController, "constraint")),
        "constraintpodstatuses",
    ),
    "Namespace": Case(("", "namespaces"), plain, ((Client, "set_namespace"),)),
    "Pod": Case(("", "pods"), plain, ((pods, "is_ours"), (pods, "live")), namespace=NAMESPACE),
    "Config": Case(
        ("config.gatekeeper.sh", "configs"),
        config_of,
        ((config, "excluded_namespaces"), (SyncController, "config")),
        "configpodstatuses",
        NAMESPACE,
        one=True,
    ),
    "SyncSet": Case(
        ("syncset.gatekeeper.sh", "syncsets"),
        sync_set,
        ((config, "synced_kinds"), (SyncController, "sync_set")),
    ),
    "data": Case(("", "configmaps"), plain, ((Client, "add_data"),), namespace=NAMESPACE),
    "Assign": Case(
        (MUTATIONS, "assign"),
        lambda name: assign(name, f"spec.of.{name}", 1),
        MUTATOR_READERS,
        "mutatorpodstatuses",
    ),
    "AssignMetadata": Case(
        (MUTATIONS, "assignmetadata"),
        lambda name: label(name, name, "x"),
        MUTATOR_READERS,
        "mutatorpodstatuses",
    ),
    "AssignImage": Case((MUTATIONS, "assignimage"), image, MUTATOR_READERS, "mutatorpodstatuses"),
    "ModifySet": Case((MUTATIONS, "modifyset"), modify, MUTATOR_READERS, "mutatorpodstatuses"),
    "ExpansionTemplate": Case(
        ("expansion.gatekeeper.sh", "expansiontemplate"),
        expansion,
        ((parts, "read_expansion_template"), (ExtensionController, "take")),
        "expansiontemplatepodstatuses",
    ),
    "PolicyRevision": Case(
        ("policy.waddle.dev", "policyrevisions"), revision, ((known_revisions, "read_revision"),)
    ),
    "CustomResourceDefinition": Case(
        ("apiextensions.k8s.io", "customresourcedefinitions"),
        crd,
        ((Following, "_crds_changed"), (object_writer, "difference")),
    ),
    **{
        kind: Case((STATUS, plural), status, STATUS_READERS, namespace=NAMESPACE)
        for kind, plural in (
            ("ConstraintTemplatePodStatus", "constrainttemplatepodstatuses"),
            ("ConstraintPodStatus", "constraintpodstatuses"),
            ("ConfigPodStatus", "configpodstatuses"),
            ("MutatorPodStatus", "mutatorpodstatuses"),
            ("ExpansionTemplatePodStatus", "expansiontemplatepodstatuses"),
        )
    },
}


def error_of(value: Any) -> type[Exception] | None:
    """The error that what a reader was given is to raise: an object, a change of one, or some."""
    value = getattr(value, "object", value)
    if isinstance(value, list | tuple):
        return next((found for item in value if (found := error_of(item))), None)
    if not isinstance(value, Mapping):
        return None
    metadata = value.get("metadata") or {}
    label_value = (metadata.get("labels") or {}).get(SPOILS, "")
    return ERRORS.get(label_value) or BROKEN.get(metadata.get("name", ""))


def break_reader(monkeypatch: pytest.MonkeyPatch, owner: Any, name: str) -> list[str]:
    """Have a reader raise what an object's label says; the errors that it raised."""
    as_it_is, raised = getattr(owner, name), []

    def reader(*arguments: Any, **options: Any) -> Any:
        if (error := error_of(arguments)) is not None:
            raised.append(error.__name__)
            raise error("of one object")
        return as_it_is(*arguments, **options)

    monkeypatch.setattr(owner, name, reader)
    return raised


def put(replica: Session, case: Case, error: str) -> None:
    """Make an object of a kind whose reader raises, or change the only one there is."""
    name = f"spoiled{error.lower()}"
    document = case.make(name)
    document["metadata"]["labels"] = {**document["metadata"].get("labels", {}), SPOILS: error}
    served = replica.storage.kinds[case.named]
    name = document["metadata"]["name"]
    if case.one and (known := replica.get(*case.named, name, case.namespace)):
        changed = {**document, "metadata": {**known["metadata"], **document["metadata"]}}
        replica.storage.replace(served, case.namespace, name, changed, "")
    else:
        replica.make(*case.named, document, case.namespace)


def statuses_in_error(replica: Session, case: Case) -> set[str]:
    """Returns the names, by labels, of objects whose statuses have errors."""
    found = set()
    for item in replica.all(STATUS, case.statuses):
        if item.get("status", {}).get("errors"):
            found |= {
                value for key, value in item["metadata"]["labels"].items() if key.endswith("-name")
            }
    return found


READERS = [
    pytest.param(case, reader, id=f"{kind}-{reader[1]}")
    for kind, case in CASES.items()
    for reader in case.readers
]


@pytest.mark.parametrize(("case", "reader"), READERS)
def test_an_object_whose_reader_raises_spoils_nothing_else(tmp_path, monkeypatch, case, reader):
    raised = break_reader(monkeypatch, *reader)
    first, *others = ERRORS

    def prepare(replica: Session) -> None:
        if case is not CASES["SyncSet"]:
            replica.make(*CASES["SyncSet"].named, sync_set("data"))
        if case is not CASES["constraint"]:
            put(replica, case, first)  # readiness does not wait for it, either

    async def run() -> None:
        async with session(tmp_path, *EVERYTHING, prepare=prepare) as replica:
            replica.make(*TEMPLATES, template("Alpha", 0))
            await replica.until(lambda: ALPHAS in replica.storage.kinds, "the constraint's kind")
            for error in [first] * (case is CASES["constraint"]) + others:
                put(replica, case, error)
                await replica.until(partial(raised.__contains__, error), error)
            replica.make(*ALPHAS, constraint("Alpha", "after", 0))
            await replica.until(
                lambda: replica.serves("Alpha", "after"), "what came after is in force"
            )
            await until_says(replica, "Active", *ALPHAS, "after")
            await until_says(replica, "Active", *TEMPLATES, "alpha")
            await replica.until(lambda: replica.states[-1] == "", "it is ready")
            assert replica.following.client is not None
            assert sum(replica.registry.counters[OBJECT_FAULTS].values()) >= len(ERRORS)
            if case.statuses:
                about = {"config"} if case.one else BROKEN.keys()
                await replica.until(
                    lambda: about <= statuses_in_error(replica, case), "statuses say so"
                )

    asyncio.run(run())


BROAD = {
    "prevalidation.py": 2,  # whoever applies it tells; what threads raise is told to who waits
    "object_faults.py": 2,
    "sync.py": 1,  # takes the object out, and raises on
}


def test_the_boundary_is_in_one_place():
    """Another handler of all exceptions would have to count, log and report, too."""
    found = {}
    for path in Path(webhook.controllers.__path__[0]).rglob("*.py"):
        handlers = [
            node
            for node in ast.walk(ast.parse(path.read_text()))
            if isinstance(node, ast.ExceptHandler)
            and (node.type is None or ast.unparse(node.type) in ("Exception", "BaseException"))
        ]
        if handlers:
            found[path.name] = len(handlers)
    assert found == BROAD
