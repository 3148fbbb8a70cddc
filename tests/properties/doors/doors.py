"""Each door's answer to a world, as findings of each object: constraint, message and actions."""

from __future__ import annotations

import asyncio
import base64
import io
import json
import re
import time
from typing import TYPE_CHECKING, Any

import yaml

from tests.json_patch import apply_patch
from tests.properties.doors.in_cluster import audits
from tests.webhook.cli.in_process import waddle
from webhook import Policies
from webhook.api.admission import read_review
from webhook.api.encoding import decode
from webhook.api.gvk import GroupVersionKind
from webhook.api.resource import Resource
from webhook.audit.namespaces import Namespaces
from webhook.audit.reviewer import Reviewer
from webhook.audit.scope import Scope
from webhook.cli.clients import compiled_policies
from webhook.console.files import FilesSource, Place
from webhook.console.picture import Shown
from webhook.console.playground import reviewed
from webhook.constraint.client import Client
from webhook.constraint.drivers.cel import CelDriver
from webhook.constraint.drivers.rego import RegoDriver
from webhook.constraint.limits import UNLIMITED
from webhook.constraint.targets.known import TARGETS
from webhook.log import Log
from webhook.metrics.registry import Registry
from webhook.policies.loader import PolicyLoader
from webhook.policies.replay import replay
from webhook.server.admission import Admission, AdmissionOptions
from webhook.server.mutation import Mutation, MutationOptions
from webhook.serving.revision import Serving

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from tests.properties.doors.worlds import Json, World
    from webhook.constraint.result import Responses
    from webhook.serving.revision import Revision

Finding = tuple[str, str, str]
"""Constraint as ``Kind/name``, message, and actions; of doors that do not tell actions empty."""

Findings = dict[str, frozenset[Finding]]
"""By the name of the object."""


SUITE_GROUPS = frozenset({"v1", "templates", "constraints", "mutations", "expansion"})

COMPILED = compiled_policies()
"""All worlds have the same few templates."""


class Files:
    """A world in files: a folder of policies, and one of objects."""

    def __init__(self, world: World, folder: Path) -> None:
        self.world = world
        self.policies = folder / "policies"
        self.objects = folder / "objects"
        self.policies.mkdir()
        self.objects.mkdir()
        _write(self.policies / "policies.yaml", world.policies)
        _write(self.objects / "objects.yaml", world.objects)
        self.log = Log(lambda _: None).logger("doors")
        self.stored: dict[str, Json] = {}
        """The objects as the server's mutators leave them."""

    def client(self) -> Client:
        """An empty client."""
        return Client(targets=TARGETS, drivers=[RegoDriver(cache=COMPILED), CelDriver()])


def _write(file: Path, documents: Iterable[Any]) -> None:
    """JSON is YAML, and quickly written."""
    file.write_text("\n---\n".join(map(json.dumps, documents)))


def serve(files: Files) -> Findings:
    """The webhooks of a server over files: first the mutating one, then the validating one."""
    serving, registry = Serving(), Registry()
    loader = PolicyLoader(
        files.client(), [files.policies], serving, registry=registry, log=files.log, retries=0
    )
    assert loader.load(), loader.faults()
    mutation = Mutation(serving, MutationOptions(10.0, on_error="reject"), registry, files.log)
    heard = _Heard()
    options = AdmissionOptions(10.0, mutation_on_error="reject")
    admission = Admission(serving, options, registry, files.log, heard)
    found: Findings = {}
    for obj in files.world.objects:
        answer: Any = mutation(read_review(review_of(obj)), b"", time.monotonic())
        assert answer.allowed, answer
        patch = [] if answer.patch is None else decode(base64.b64decode(answer.patch))
        stored = apply_patch(obj, patch)
        files.stored[obj["metadata"]["name"]] = stored
        heard.responses = None
        admission(read_review(review_of(stored)), b"", time.monotonic())
        found[obj["metadata"]["name"]] = _of_responses(heard.responses)
    return found


class _Heard:
    """A recorder that keeps what was found last."""

    def __init__(self) -> None:
        self.responses: Responses | None = None
        self.names = iter(lambda: "", 1)

    def answered(self, request: Any, responses: Responses | None, *rest: Any) -> Any:
        self.responses = responses
        return rest[-1]

    def unanswered(self, reviewed: Any, code: int, error: str) -> None:
        raise AssertionError(error)


def review_of(obj: Json) -> Json:
    """The AdmissionReview that an API server would send when the object is created."""
    group, _, version = obj["apiVersion"].rpartition("/")
    return {
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {
            "uid": "u",
            "kind": {"group": group, "version": version, "kind": obj["kind"]},
            "resource": {"group": group, "version": version, "resource": obj["kind"].lower()},
            "name": obj["metadata"]["name"],
            "namespace": obj["metadata"]["namespace"],
            "operation": "CREATE",
            "userInfo": {"username": "jane"},
            "object": obj,
        },
    }


def library(files: Files) -> Findings:
    """``Policies.load(…).review(…)``."""
    policies = Policies.load(files.policies)
    return {
        obj["metadata"]["name"]: frozenset(
            (one.constraint, one.message, ",".join(one.actions)) for one in policies.review(obj)
        )
        for obj in files.world.objects
    }


def library_of_reviews(files: Files) -> Findings:
    """The same of AdmissionReviews."""
    policies = Policies.load(files.policies)
    return {
        obj["metadata"]["name"]: frozenset(
            (one.constraint, one.message, ",".join(one.actions))
            for one in policies.review(review_of(obj))
        )
        for obj in files.world.objects
    }


def test_command(files: Files) -> Findings:
    """``waddle test``."""
    return _of_test(files, files.objects)


def test_command_of_reviews(files: Files) -> Findings:
    """``waddle test`` of AdmissionReviews."""
    folder = files.objects.parent / "reviews"
    folder.mkdir()
    _write(folder / "reviews.yaml", [review_of(obj) for obj in files.world.objects])
    return _of_test(files, folder)


def _of_test(files: Files, objects: Path) -> Findings:
    run = waddle("test", "-f", files.policies, "-f", objects, "-o", "json")
    assert "auditing objects" not in run.stderr, run.stderr
    found = _nothing(files.world)
    for item in json.loads(run.stdout) or ():
        constraint = item["constraint"]
        key = f"{constraint['kind']}/{constraint['metadata']['name']}"
        _note(found, item["violatingObject"], (key, item["msg"], item["enforcementAction"]))
    return found


def krm(files: Files) -> Findings:
    """``waddle krm``, the policies among the items."""
    document = {
        "apiVersion": "config.kubernetes.io/v1",
        "kind": "ResourceList",
        "items": [*files.world.policies, *files.world.objects],
    }
    return _of_krm(files, document)


def krm_of_folder(files: Files) -> Findings:
    """``waddle krm``, the policies in a folder."""
    document = {
        "apiVersion": "config.kubernetes.io/v1",
        "kind": "ResourceList",
        "items": [*files.world.namespaces.values(), *files.world.objects],
    }
    return _of_krm(files, document, "-f", files.policies)


def _of_krm(files: Files, document: Json, *arguments: str | Path) -> Findings:
    stdin = io.TextIOWrapper(io.BytesIO(json.dumps(document).encode()))
    run = waddle("krm", *arguments, stdin=stdin)
    assert run.stdout, run.stderr
    found = _nothing(files.world)
    for item in yaml.load(run.stdout, yaml.CSafeLoader).get("results") or ():
        tags = item["tags"]
        reference = {"metadata": {"name": item["resourceRef"]["name"]}}
        _note(found, reference, (tags["constraint"], item["message"], tags["action"]))
    return found


def check(files: Files) -> Findings:
    """``waddle check``: the violations that there will be then; it tells no actions."""
    run = waddle("check", "-f", files.policies, "-f", files.objects, "-o", "json")
    found = _nothing(files.world)
    for item in json.loads(run.stdout)["manifests"]["constraints"]:
        key = f"{item['kind']}/{item['name']}"
        for one in item["examples"]:
            name = one["object"].rpartition("/")[2]
            _note(found, {"metadata": {"name": name}}, (key, one["message"], ""))
    return found


def console(files: Files) -> Findings:
    """The console over files, with manifests."""
    place = Place((files.policies,), (files.objects,))
    picture = FilesSource(place, files.client(), Shown(), files.log).read()
    found = _nothing(files.world)
    for one in picture.violations or ():
        _note(found, {"metadata": {"name": one.name}}, (one.policy, one.message, one.action))
    return found


def playground(files: Files) -> Findings:
    """The console's playground, by the policies in force."""
    source = FilesSource(Place((files.policies,), ()), files.client(), Shown(), files.log)
    source.read()
    found: Findings = {}
    for obj in files.world.objects:
        [shown] = reviewed(json.dumps(obj), source.policies())["reviews"]
        found[obj["metadata"]["name"]] = frozenset(
            (f"{row['kind']}/{row['name']}", row["message"], row["action"])
            for row in shown["violations"]
        )
    return found


def audit(files: Files) -> Findings:
    """The audit of what is stored; reports ask the same reviewer."""
    revision = _revision(files)
    scope = Scope(revision.policies)
    known: Any = Namespaces(None, revision.snapshot.namespaces)  # type: ignore[arg-type]
    reviewer = Reviewer(scope, known, files.log, lambda: UNLIMITED)
    found: Findings = {}
    for obj in files.world.objects:
        name = obj["metadata"]["name"]
        if scope.is_excluded(obj["metadata"]["namespace"]):
            found[name] = frozenset()
            continue
        group, _, version = obj["apiVersion"].rpartition("/")
        gvk = GroupVersionKind(group, version, obj["kind"])
        resource = Resource(gvk, obj["kind"].lower(), namespaced=True)
        found[name] = _of_responses(asyncio.run(reviewer.review(resource, files.stored[name])))
    return found


def replayed(files: Files, by_server: Findings) -> list[str]:
    """What a replay of the server's decisions finds that it did not, or not any more."""
    serving = Serving()
    loader = PolicyLoader(
        files.client(), [files.policies], serving, registry=Registry(), log=files.log, retries=0
    )
    loader.load()
    revision = serving.revision
    assert revision is not None
    records = [_record(files.stored[name], found) for name, found in by_server.items()]
    from webhook.policies.policy_files import PolicyFiles

    policies, _ = PolicyFiles(files.client(), [files.policies]).load()
    told = replay(records, policies)
    changed = [f"{one.record['resourceName']}: {one.added} {one.removed}" for one in told.changes]
    return changed + ([f"{told.other_violations} others"] if told.other_violations else [])


def verified(files: Files, by_server: Findings) -> list[str]:
    """What a suite that expects the server's findings of each constraint does not find.

    A suite names templates, constraints, mutators and expansions: a world with more has no suite. Its policies see no Namespace, as
    gator's do not.
    """
    world, folder = files.world, files.objects.parent / "suite"
    kinds: dict[str, list[Json]] = {}
    for item in world.policies:
        kinds.setdefault(item["apiVersion"].partition(".")[0], []).append(item)
    if not kinds.keys() <= SUITE_GROUPS:
        return []
    folder.mkdir()
    _write(folder / "namespaces.yaml", world.namespaces.values())
    _write(folder / "mutators.yaml", kinds.get("mutations", ()))
    _write(folder / "expansions.yaml", kinds.get("expansion", ()))
    for obj in world.objects:
        _write(folder / f"{obj['metadata']['name']}.yaml", [obj])
    tests = []
    for item in kinds["constraints"]:
        if item["kind"] == "Teams":
            continue
        name = item["metadata"]["name"]
        _write(folder / f"{name}.yaml", [item])
        _write(
            folder / f"{name}-template.yaml",
            [one for one in kinds["templates"] if one["metadata"]["name"] == item["kind"].lower()],
        )
        test = {
            "name": name,
            "template": f"{name}-template.yaml",
            "constraint": f"{name}.yaml",
            "cases": [
                _case(obj["metadata"]["name"], f"{item['kind']}/{name}", by_server)
                for obj in world.objects
            ],
        }
        for key, of_kind in (("mutators", "mutations"), ("expansion", "expansion")):
            if of_kind in kinds:
                test[key] = f"{'expansions' if key == 'expansion' else key}.yaml"
        tests.append(test)
    if not tests:
        return []
    suite = {"apiVersion": "test.gatekeeper.sh/v1alpha1", "kind": "Suite", "tests": tests}
    _write(folder / "suite.yaml", [suite])
    run = waddle("verify", folder)
    return [] if run.returncode == 0 else [run.stdout + run.stderr]


def _case(name: str, constraint: str, by_server: Findings) -> Json:
    messages = [message for key, message, _ in by_server[name] if key == constraint]
    expected: list[Json] = [
        {"message": f"^{re.escape(message)}$", "violations": 1} for message in messages
    ]
    return {
        "name": name,
        "object": f"{name}.yaml",
        "inventory": ["namespaces.yaml"],
        "assertions": [*expected, {"violations": len(messages) or "no"}],
    }


def _record(obj: Json, found: frozenset[Finding]) -> Json:
    actions = {action for _, _, action in found}
    verdict = next((one for one in ("deny", "warn", "dryrun") if one in actions), "allow")
    group, _, version = obj["apiVersion"].rpartition("/")
    return {
        "eventType": "decision",
        "verdict": verdict,
        "constraintsEvaluated": 1,
        "operation": "CREATE",
        "resourceGroup": group,
        "resourceAPIVersion": version,
        "resourceKind": obj["kind"],
        "resourceName": obj["metadata"]["name"],
        "resourceNamespace": obj["metadata"]["namespace"],
        "requestUsername": "jane",
        "object": obj,
        "results": [
            {
                "constraint": dict(zip(("kind", "name"), key.split("/"), strict=True)),
                "message": message,
            }
            for key, message, _ in found
        ],
    }


def _revision(files: Files) -> Revision:
    serving = Serving()
    loader = PolicyLoader(
        files.client(), [files.policies], serving, registry=Registry(), log=files.log, retries=0
    )
    loader.load()
    assert serving.revision is not None
    return serving.revision


def _of_responses(responses: Responses | None) -> frozenset[Finding]:
    if responses is None:
        return frozenset()
    return frozenset(
        ("/".join(one.constraint.key), one.msg, ",".join(one.actions)) for one in responses.results
    )


def _nothing(world: World) -> Findings:
    return {obj["metadata"]["name"]: frozenset() for obj in world.objects}


def _note(found: Findings, obj: Json, finding: Finding) -> None:
    """Add a finding about one of the world's objects; of others nothing is asked."""
    name = obj["metadata"]["name"]
    if name in found:
        found[name] |= {finding}


DOORS: dict[str, Callable[[Files], Findings]] = {
    "library": library,
    "library, AdmissionReviews": library_of_reviews,
    "test": test_command,
    "test, AdmissionReviews": test_command_of_reviews,
    "krm": krm,
    "krm, a folder": krm_of_folder,
    "check": check,
    "console": console,
    "playground": playground,
    "audit and reports": audit,
}
"""What is compared with the server, each after it."""


def differences(world: World, folder: Path) -> list[str]:
    """What a door says that the server does not, or the other way round."""
    files = Files(world, folder)
    by_server = serve(files)
    told = []
    answers = {door: ask(files) for door, ask in DOORS.items()}
    answers |= audits(folder, world, files.stored, files.policies)
    for door, found in answers.items():
        for name, findings in by_server.items():
            expected = findings
            if door == "check":
                expected = frozenset((key, message, "") for key, message, _ in findings)
            if found[name] != expected:
                missing, more = expected - found[name], found[name] - expected
                told.append(f"{world}\n{door}: {name}: lacks {set(missing)}, adds {set(more)}")
    told += [f"{world}\nreplay: {line}" for line in replayed(files, by_server)]
    told += [f"{world}\nverify: {line}" for line in verified(files, by_server)]
    return told
