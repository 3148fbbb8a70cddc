"""Each door's answer to a world, as findings of each object: constraint, message and actions."""

from __future__ import annotations

import asyncio
import base64
import io
import json
import re
import time
import warnings
from typing import TYPE_CHECKING, Any

import yaml

from tests.json_patch import apply_patch
from tests.properties.doors.findings import (
    exceptions_in,
    excusal,
    of_responses,
    without_excusals,
)
from tests.properties.doors.in_cluster import audits
from tests.properties.doors.replays import recorded, replay_faults, world_before, world_now
from tests.properties.doors.worlds import ANSWERS
from tests.webhook.cli.in_process import waddle
from webhook import Policies, PolicyWarning
from webhook.api.admission import read_review
from webhook.api.encoding import decode
from webhook.api.gvk import GroupVersionKind, plural_of
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
from webhook.constraint.result import Responses
from webhook.constraint.targets.known import TARGETS
from webhook.decisions.exporter.admission import (
    RecordedPolicies,
    ReviewOutcome,
    admission_record,
    calls_of,
    why,
)
from webhook.log import Log
from webhook.metrics.registry import Registry
from webhook.policies.loader import PolicyLoader
from webhook.policies.recorded_answers import RecordedAnswers, read_answers
from webhook.policies.replay import replay
from webhook.policy_kinds.known import kyverno_parts
from webhook.server.admission import Admission, AdmissionOptions
from webhook.server.mutation import Mutation, MutationOptions
from webhook.server.preparation import Preparations
from webhook.serving.revision import Serving

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from pathlib import Path

    from tests.properties.doors.findings import Finding, Findings
    from tests.properties.doors.worlds import Json, World
    from webhook import Violations
    from webhook.constraint.result import Result
    from webhook.external_data.exchange import ProviderRequest, ProviderResponse
    from webhook.serving.revision import Revision

SUITE_GROUPS = frozenset(
    {"v1", "templates", "constraints", "mutations", "expansion", "waddle", "groups"}
)

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
        self.answers = {name: folder / f"{name}.json" for name in ANSWERS}
        for name, file in self.answers.items():
            _write(file, [ANSWERS[name]])
        self.options = [
            word for one in self.answers.items() for word in ("--provider", "=".join(map(str, one)))
        ]
        """Options by which commands read the providers' answers."""
        self.ask = RecordedAnswers(
            {name: read_answers(file) for name, file in self.answers.items()}
        )
        self.log = Log(lambda _: None).logger("doors")
        self.stored: dict[str, Json] = {}
        """The objects as the server's mutators leave them."""
        self.provider_calls: dict[str, list[Json]] = {}
        """The provider calls in the server's records, by object."""
        self.excused: dict[str, Sequence[Result]] = {}
        """The server's results that exceptions excuse, by object."""
        self.excusing: set[str] = set()
        """The exceptions that excuse something, as ``waddle check`` lists them."""

    def client(self) -> Client:
        """An empty client."""
        return Client(targets=TARGETS, drivers=[RegoDriver(cache=COMPILED), CelDriver()])


def _write(file: Path, documents: Iterable[Any]) -> None:
    """JSON is YAML, and quickly written."""
    file.write_text("\n---\n".join(map(json.dumps, documents)))


class _Server:
    """The webhooks of a server over files: first the mutating one, then the validating one."""

    def __init__(self, files: Files) -> None:
        serving, registry = Serving(), Registry()
        loader = PolicyLoader(
            files.client(),
            [files.policies],
            serving,
            registry=registry,
            log=files.log,
            retries=0,
            kyverno="enforce",
        )
        assert loader.load(), loader.faults()
        preparations = Preparations(providers=_Asker(files.ask))
        self.listener = _Listener()
        self._mutation = Mutation(
            serving,
            MutationOptions(10.0, on_error="reject"),
            registry,
            files.log,
            preparations=preparations,
        )
        options = AdmissionOptions(10.0, mutation_on_error="reject")
        self._admission = Admission(
            serving, options, registry, files.log, self.listener, preparations=preparations
        )

    def admit(self, obj: Json, old: Json | None = None) -> Json:
        """The object as it would be stored; what was found was heard."""
        answer: Any = self._mutation(read_review(review_of(obj, old)), b"", time.monotonic())
        assert answer.allowed, answer
        patch = [] if answer.patch is None else decode(base64.b64decode(answer.patch))
        stored: Json = apply_patch(obj, patch)
        self.listener.responses = None
        self._admission(read_review(review_of(stored, old)), b"", time.monotonic())
        return stored

    def record(self, obj: Json | None, old: Json | None, operation: str) -> Json:
        """The record of a request with objects as they would be stored."""
        self.listener.record = None
        request = read_review(review_of(obj, old, operation))
        self._admission(request, b"", time.monotonic())
        assert self.listener.record is not None
        return self.listener.record


def serve(files: Files) -> Findings:
    """A server, when the objects are made."""
    server = _Server(files)
    found: Findings = {}
    for obj in files.world.objects:
        name, stored = obj["metadata"]["name"], server.admit(obj)
        files.stored[name] = stored
        responses = server.listener.responses
        found[name] = of_responses(responses)
        files.excused[name] = () if responses is None else responses.excused
        files.provider_calls[name] = calls_of(
            (responses and responses.answers) or {}, include_answers=True
        )
    return found


class _Asker:
    """Providers that answer at once."""

    def __init__(self, ask: RecordedAnswers) -> None:
        self._ask = ask

    def known(self, request: ProviderRequest) -> None:
        """Keeps nothing."""

    def round(self, **_: Any) -> Any:
        return _Round(self._ask)


class _Round:
    """Requests that are answered as they are begun."""

    def __init__(self, ask: RecordedAnswers) -> None:
        self._ask = ask
        self.answers: dict[ProviderRequest, ProviderResponse] = {}

    def begin(self, request: ProviderRequest) -> None:
        self.answers.update(self._ask([request]))

    def done(self) -> bool:
        return True

    def add_done_callback(self, callback: Callable[[Any], object], /) -> None:
        callback(self)

    def cancel(self) -> bool:
        return False


class _Listener:
    """A recorder that keeps what was found last."""

    def __init__(self) -> None:
        self.responses: Responses | None = None
        self.record: Json | None = None
        self.names = iter(lambda: "", 1)

    def answered(self, request: Any, responses: Responses | None, *rest: Any) -> Any:
        self.responses = responses
        snapshot, answer = rest[0], rest[-1]
        outcome = ReviewOutcome(
            answer.allowed,
            answer.code,
            *why(answer.allowed, answer.code, answer.message),
            policies=RecordedPolicies.of(snapshot),
        )
        self.record = admission_record(
            "", request, responses, outcome, include_objects=True, include_answers=True
        )
        return answer

    def unanswered(self, reviewed: Any, code: int, error: str) -> None:
        raise AssertionError(error)


def review_of(obj: Json | None, old: Json | None = None, operation: str = "") -> Json:
    """The AdmissionReview that an API server would send when the object is made, or updated."""
    subject: Any = obj or old
    group, _, version = subject["apiVersion"].rpartition("/")
    return {
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {
            "uid": "u",
            "kind": {"group": group, "version": version, "kind": subject["kind"]},
            "resource": {
                "group": group,
                "version": version,
                "resource": plural_of(subject["kind"]),
            },
            "name": subject["metadata"]["name"],
            "namespace": subject["metadata"]["namespace"],
            "operation": operation or ("CREATE" if old is None else "UPDATE"),
            "userInfo": {"username": "jane", "groups": ["staff"]},
            "object": obj,
            **({} if old is None else {"oldObject": old}),
        },
    }


def loaded_policies(files: Files) -> Policies:
    """The library's policies; a group by chance may have members that are never asked."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PolicyWarning)
        return Policies.load(files.policies, providers=files.answers)


def library(files: Files) -> Findings:
    """``Policies.load(…).review(…)``."""
    policies = loaded_policies(files)
    return {
        obj["metadata"]["name"]: _of_violations(policies.review(obj)) for obj in files.world.objects
    }


def _of_violations(found: Violations) -> frozenset[Finding]:
    return frozenset(
        (one.constraint, one.message, ",".join(one.actions)) for one in found
    ) | frozenset(
        excusal(one.constraint, one.message, one.excuse.title)
        for one in (*found, *found.excused)
        if one.excuse is not None
    )


def library_of_reviews(files: Files) -> Findings:
    """The same of AdmissionReviews."""
    policies = loaded_policies(files)
    return {
        obj["metadata"]["name"]: _of_violations(policies.review(review_of(obj)))
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
    run = waddle("test", "-f", files.policies, "-f", objects, "-o", "json", *files.options)
    assert "auditing objects" not in run.stderr, run.stderr
    found = _nothing(files.world)
    for item in json.loads(run.stdout) or ():
        constraint = item["constraint"]
        metadata = constraint["metadata"]
        place = f"{metadata['namespace']}/" if "namespace" in metadata else ""
        key = f"{constraint['kind']}/{place}{metadata['name']}"
        action = item["enforcementAction"]
        actions = ",".join(item["scopedActions"]) if action == "scoped" else action
        _note(found, item["violatingObject"], (key, item["msg"], actions))
    return found


_EXCUSED = re.compile(r"^  excused  (\S+)  (.*)  \((.*?)(?: until \S+)?\)$")


def _excused_by_test(files: Files) -> Findings:
    """Returns the excused findings of ``waddle test``; it does not report weakened ones."""
    run = waddle("test", "-f", files.policies, "-f", files.objects, *files.options)
    found, subject = _nothing(files.world), ""
    for line in run.stdout.splitlines():
        if match := _EXCUSED.match(line):
            name = subject.rpartition("/")[2]
            _note(found, {"metadata": {"name": name}}, excusal(*match.groups()))
        else:
            subject = line
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
    run = waddle("krm", *arguments, *files.options, stdin=stdin)
    assert run.stdout, run.stderr
    found = _nothing(files.world)
    for item in yaml.load(run.stdout, yaml.CSafeLoader).get("results") or ():
        if "tags" not in item:  # a warning about policies, or that nothing was checked
            is_warning = item["severity"] == "warning"
            assert is_warning or item["message"].startswith("nothing was checked"), item
            continue
        tags = item["tags"]
        reference = {"metadata": {"name": item["resourceRef"]["name"]}}
        finding = tags["constraint"], item["message"]
        if tags["action"] != "excused":
            _note(found, reference, (*finding, tags["action"]))
        if "exception" in tags:
            _note(found, reference, excusal(*finding, tags["exception"]))
    return found


def check(files: Files) -> Findings:
    """``waddle check``: the violations that there will be then; it tells no actions."""
    run = waddle("check", "-f", files.policies, "-f", files.objects, "-o", "json", *files.options)
    found, manifests = _nothing(files.world), json.loads(run.stdout)["manifests"]
    files.excusing = {title for title, count in manifests.get("excused", {}).items() if count}
    for item in manifests["constraints"]:
        key = f"{item['kind']}/{item['name']}"
        for one in item["examples"]:
            name = one["object"].rpartition("/")[2]
            _note(found, {"metadata": {"name": name}}, (key, one["message"], ""))
    return found


def console(files: Files) -> Findings:
    """The console over files, with manifests."""
    place = Place((files.policies,), (files.objects,), files.ask)
    picture = FilesSource(place, files.client(), Shown(), files.log).read()
    found = _nothing(files.world)
    for one in picture.violations or ():
        _note(found, {"metadata": {"name": one.name}}, (one.policy, one.message, one.action))
    return found


def playground(files: Files) -> Findings:
    """The console's playground, by the policies in force."""
    source = FilesSource(Place((files.policies,), ()), files.client(), Shown(), files.log)
    source.read()
    found = _nothing(files.world)
    for obj in files.world.objects:
        typed = "\n---\n".join(map(json.dumps, (obj, {"providers": ANSWERS})))
        [shown] = reviewed(typed, source.policies())["reviews"]
        for row in shown["violations"]:
            finding = f"{row['kind']}/{row['name']}", row["message"]
            if row["action"] != "excused":
                _note(found, obj, (*finding, row["action"]))
            if row["exception"]:
                _note(found, obj, excusal(*finding, row["exception"]))
    return found


def audit(files: Files) -> Findings:
    """The audit of what is stored; reports ask the same reviewer."""
    revision = _revision(files)
    scope = Scope(revision.policies)
    known: Any = Namespaces(None, revision.snapshot.namespaces)  # type: ignore[arg-type]
    reviewer = Reviewer(scope, known, files.log, lambda: UNLIMITED, files.ask.ask)
    found: Findings = {}
    for obj in files.world.objects:
        name = obj["metadata"]["name"]
        if scope.is_excluded(obj["metadata"]["namespace"]):
            found[name] = frozenset()
            continue
        group, _, version = obj["apiVersion"].rpartition("/")
        gvk = GroupVersionKind(group, version, obj["kind"])
        resource = Resource(gvk, plural_of(obj["kind"]), namespaced=True)
        found[name] = of_responses(asyncio.run(reviewer.review(resource, files.stored[name])))
    return found


def replayed(files: Files, by_server: Findings) -> list[str]:
    """Returns the differences between a replay of the decisions and the server's findings."""
    records = [
        _record(files.stored[name], without_excusals(found))
        | {
            "externalData": files.provider_calls[name],
            "excused": [*map(_excused, files.excused[name])],
        }
        for name, found in by_server.items()
    ]
    from webhook.policies.policy_files import PolicyFiles

    foreign = kyverno_parts("enforce")
    policies, _ = PolicyFiles(files.client(), [files.policies], foreign=foreign).load()
    replays = replay(records, policies)
    changed = [
        f"{one.record['resourceName']}: {one.added} {one.removed}" for one in replays.changes
    ]
    return changed + ([f"{replays.other_violations} others"] if replays.other_violations else [])


def verified(files: Files, by_server: Findings) -> list[str]:
    """Returns the server's findings that a suite with these expectations does not confirm.

    A suite names templates, constraints, mutators, expansions and exceptions: a world with more has
    no suite. Its policies see no Namespace, as gator's do not.
    """
    world, folder = files.world, files.objects.parent / "suite"
    kinds: dict[str, list[Json]] = {}
    for item in world.policies:
        group = (
            "groups" if item["kind"] == "ConstraintGroup" else item["apiVersion"].partition(".")[0]
        )
        kinds.setdefault(group, []).append(item)
    if not kinds.keys() <= SUITE_GROUPS:
        return []
    folder.mkdir()
    _write(folder / "namespaces.yaml", world.namespaces.values())
    _write(folder / "mutators.yaml", kinds.get("mutations", ()))
    _write(folder / "expansions.yaml", kinds.get("expansion", ()))
    _write(folder / "exceptions.yaml", kinds.get("waddle", ()))
    for obj in world.objects:
        _write(folder / f"{obj['metadata']['name']}.yaml", [obj])
    tests = []
    for item in (*kinds["constraints"], *kinds.get("groups", ())):
        is_group = item["kind"] == "ConstraintGroup"
        if item["kind"] == "Teams" or (is_group and "Teams" in json.dumps(item)):
            continue
        name = item["metadata"]["name"]
        # Beside a group stand the constraints that it refers to, in its file, and all templates.
        _write(folder / f"{name}.yaml", [item, *(kinds["constraints"] if is_group else ())])
        _write(
            folder / f"{name}-template.yaml",
            [
                one
                for one in kinds["templates"]
                if is_group or one["metadata"]["name"] == item["kind"].lower()
            ],
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
        for key, of_kind in (
            ("mutators", "mutations"),
            ("expansion", "expansion"),
            ("exceptions", "waddle"),
        ):
            if of_kind in kinds:
                test[key] = f"{'expansions' if key == 'expansion' else key}.yaml"
        tests.append(test)
    if not tests:
        return []
    suite: Json = {"apiVersion": "test.gatekeeper.sh/v1alpha1", "kind": "Suite", "tests": tests}
    suite["providers"] = {name: f"../{file.name}" for name, file in files.answers.items()}
    _write(folder / "suite.yaml", [suite])
    run = waddle("verify", folder)
    return [] if run.returncode == 0 else [run.stdout + run.stderr]


def _case(name: str, constraint: str, by_server: Findings) -> Json:
    messages = [
        message for key, message, _ in without_excusals(by_server[name]) if key == constraint
    ]
    expected: list[Json] = [
        {"message": f"^{re.escape(message)}$", "violations": 1} for message in messages
    ]
    return {
        "name": name,
        "object": f"{name}.yaml",
        "inventory": ["namespaces.yaml"],
        "assertions": [*expected, {"violations": len(messages) or "no"}],
    }


def _excused(result: Result) -> Json:
    kind, name = result.constraint.key
    return {"constraint": {"kind": kind, "name": name}, "message": result.msg}


def _record(obj: Json, found: frozenset[Finding]) -> Json:
    actions = {action for _, _, listed in found for action in listed.split(",")}
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
                "constraint": dict(zip(("kind", "name"), key.split("/", 1), strict=True)),
                "message": message,
            }
            for key, message, _ in found
        ],
    }


def _revision(files: Files) -> Revision:
    serving = Serving()
    loader = PolicyLoader(
        files.client(),
        [files.policies],
        serving,
        registry=Registry(),
        log=files.log,
        retries=0,
        kyverno="enforce",
    )
    loader.load()
    assert serving.revision is not None
    return serving.revision


def _nothing(world: World) -> Findings:
    return {obj["metadata"]["name"]: frozenset() for obj in world.objects}


def _note(found: Findings, obj: Json, finding: Finding) -> None:
    """Add a finding about one of the world's objects; of others nothing is asked."""
    name = obj["metadata"]["name"]
    if name in found:
        found[name] |= {finding}


WITHOUT_EXCUSALS = frozenset({"test", "test, AdmissionReviews", "check", "console"})
"""Doors that do not say of each violation by which exception it is excused."""

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
"""The ways in that are compared with the server."""


def updates(files: Files) -> dict[str, Findings]:
    """Returns the findings about updates of the objects, by way in."""
    world, folder = files.world, files.objects.parent / "updates"
    changes = list(zip(world.objects, world.olds or world.objects, strict=True))
    server, by_server = _Server(files), {}
    for obj, old in changes:
        server.admit(obj, old)
        by_server[obj["metadata"]["name"]] = of_responses(server.listener.responses)
    folder.mkdir()
    _write(folder / "reviews.yaml", [review_of(obj, old) for obj, old in changes])
    loaded = loaded_policies(files)
    return {
        "server": by_server,
        "library": {
            obj["metadata"]["name"]: _of_violations(loaded.review(review_of(obj, old)))
            for obj, old in changes
        },
        "test": _of_test(files, folder),
    }


def replayed_changes(files: Files) -> list[str]:
    """Returns the differences between replays by these policies and these policies' records."""
    world, by_time = world_now(files.world), []
    for title, then in (("before", world_before(world)), ("now", world)):
        folder = files.policies.parent / title
        folder.mkdir()
        held = Files(then, folder)
        by_time.append(recorded(world, _Server(held).record))
    before, now = by_time
    return replay_faults(before, now, held.policies, held.options)


def differences(world: World, folder: Path) -> list[str]:
    """Returns the differences between the server's findings and those of each other way in."""
    files = Files(world, folder)
    by_server = serve(files)
    lines = []
    of_updates = updates(files)
    for door, found in of_updates.items():
        of_server = of_updates["server"]
        if door in WITHOUT_EXCUSALS:
            of_server = {name: without_excusals(findings) for name, findings in of_server.items()}
        if found != of_server:
            lines.append(f"{world}\nupdates: {door}: {found}, not {of_server}")
    answers = {door: ask(files) for door, ask in DOORS.items()}
    answers |= audits(folder, world, files)
    for door, found in answers.items():
        for name, findings in by_server.items():
            expected = without_excusals(findings) if door in WITHOUT_EXCUSALS else findings
            if door == "check":
                expected = frozenset((key, message, "") for key, message, _ in expected)
            if found[name] != expected:
                missing, more = expected - found[name], found[name] - expected
                lines.append(f"{world}\n{door}: {name}: lacks {set(missing)}, adds {set(more)}")
    # The Namespaces stand in files, too, and are checked like other objects.
    loaded = loaded_policies(files)
    beside = [_of_violations(loaded.review(one)) for one in world.namespaces.values()]
    excusing = set().union(*map(exceptions_in, (*by_server.values(), *beside)))
    if files.excusing != excusing:
        lines.append(f"{world}\ncheck: {files.excusing} excuse, not {excusing}")
    for name, findings in _excused_by_test(files).items():
        skipped = of_responses(Responses(excused=tuple(files.excused[name])))
        if findings != skipped:
            lines.append(f"{world}\ntest: {name}: {findings} excused, not {skipped}")
    lines += [f"{world}\nreplay: {line}" for line in replayed(files, by_server)]
    lines += [f"{world}\nreplay of records: {line}" for line in replayed_changes(files)]
    lines += [f"{world}\nverify: {line}" for line in verified(files, by_server)]
    return lines
