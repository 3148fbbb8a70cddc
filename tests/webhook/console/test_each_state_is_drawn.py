"""Every page and form of the console in each of its states: answered, and each branch of it drawn.

The documents are those that the console makes: of files, of a cluster's objects, of what somebody typed.
"""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import yaml
from jinja2 import DictLoader

from tests.behaviour.serving import REQUIRED_LABELS, SLOW, constraint, pod, thing, write_policies
from tests.policies import exception, template
from tests.webhook.console import living
from tests.webhook.console.assembled import pod as replica
from tests.webhook.console.assembled import policy, status_by
from tests.webhook.console.branches import MarkingEnvironment
from tests.webhook.console.client import ask
from tests.webhook.console.identity import RunningProvider
from tests.webhook.console.typed import CONSTRAINT, POLICY, decision
from tests.webhook.console.world import BELOW, DRAWING, WORLDS, World, marks
from webhook.api import pod_status
from webhook.api.gvk import GroupVersionKind
from webhook.api.pod_status import StatusError
from webhook.api.revision import digest_of, revision_object
from webhook.console import decisions
from webhook.console.application import ConsoleOptions
from webhook.console.assembly import ClusterObjects, kept_report, picture_of
from webhook.console.login import Login
from webhook.console.picture import Picture, ShownCertificate, clusters_of
from webhook.console.process import clusters_application
from webhook.console.provider import ProviderOptions
from webhook.console.rights import Rights
from webhook.console.sealing import Sealer
from webhook.controllers.requirements import missing_text
from webhook.reports.report_api import WGPOLICY

PAGES = (
    *("/", "/policies", "/violations", "/exceptions"),
    *("/decisions", "/rollouts", "/playground", "/health"),
)

State = Callable[[Path], None]
STATES: list[State] = []


def state(play: State) -> State:
    """A state of the console; what it shows is looked at by the state itself."""
    STATES.append(play)
    return play


CLUSTER: dict[str, Any] = {
    "place": "https://api.example",
    "version": "7",
    "taken": "2026-01-01T00:00:00Z",
}
BROKEN = REQUIRED_LABELS.replace("requiredlabel", "broken").replace("RequiredLabel", "Broken")
BROKEN = BROKEN.replace("msg := sprintf", "msg := sprint")


def records(count: int, verdict: str = "deny", **fields: Any) -> str:
    results = [
        {
            "constraint": {"kind": "RequiredLabel", "name": "needs-owner"},
            "enforcementAction": "deny",
            "message": "no owner",
        }
    ]
    made = [
        {
            **decision(f"web-{number}", verdict, *results),
            "timestamp": f"2026-01-01T00:{number % 60:02}:00.000001Z",
            **fields,
        }
        for number in range(count)
    ]
    return "".join(f"{json.dumps(one)}\n" for one in made)


@state
def nothing_was_read_yet(folder: Path) -> None:
    world = World(folder)
    for path in PAGES:
        assert "nothing has been read yet: try again in a moment" in world.go(path).text
    assert "not found: " in world.go("/policy", kind="A", name="b").text
    named = {"apiVersion": "v1", "kind": "Pod", "name": "web"}
    assert "It was not reviewed now" in world.go("/resource", **named).text
    review = {"mode": "review", "input": json.dumps(pod())}
    assert "no policy has been read yet" in world.go("/playground", review).text


@state
def files_with_nothing_in_them(folder: Path) -> None:
    world = World(folder).read()
    assert "There is no policy yet" in world.go("/").text
    assert "No policy is here yet" in world.go("/policies").text
    assert "No policy is found" in world.go("/policies", q="a").text
    assert "no manifests are given" in world.go("/violations").text
    assert "No decision log was given" in world.go("/decisions").text
    assert "Files have no roll-outs" in world.go("/rollouts").text
    assert "Files have no replicas" in world.go("/health").text
    named = {"apiVersion": "v1", "kind": "Pod", "name": "web"}
    assert "Violations are not known here" in world.go("/resource", **named).text


GOOD = {"apiVersion": "v1", "kind": "Pod", "name": "good"}


@state
def files_with_violations(folder: Path) -> None:
    folder.mkdir()
    log_file = folder / "decisions.jsonl"
    allowed = records(
        2, "allow", dryRun=True, errors=["out of time"], requestUsername="ada", failurePolicy="fail"
    )
    log_file.write_text(records(2) + records(1, resourceNamespace="") + allowed)
    good = thing("Pod", "good", labels={"owner": "a", "team": "b"}, resourceVersion="7")
    objects = [pod(), thing("Pod", "wide"), pod(owner="a"), thing("Namespace", "shop"), good]
    (folder / "objects.yaml").write_text(yaml.safe_dump_all(objects))
    severe = constraint("severe", "team", action="warn").replace(
        "metadata: {name: severe}",
        "metadata: {name: severe, annotations: {waddle.dev/severity: high}}",
    )
    twice = constraint("matches-nothing", "7").replace("[Pod, Namespace]", "[Pods]")
    parts = (REQUIRED_LABELS, constraint("needs-owner", "owner"), severe, BROKEN, "{[", twice)
    write_policies(folder / "policies", *parts, yaml.safe_dump(living.MUTATOR))
    options = ConsoleOptions(log_file, as_sarif=lambda _, rows: json.dumps(len(rows)))
    world = World(folder, options).read()
    overview = world.go("/").text
    assert "Denials a minute" in overview
    assert "Policies that need a look" in overview
    assert "Violations by namespace" in overview
    listed = world.go("/policies").text
    for one in world.shown.picture.policies:
        assert one.name in listed
        assert world.go("/policy", kind=one.kind, name=one.name).status == 200
    assert "selected>templates<" in world.go("/policies", category="template").text
    assert ">admission policies<" in listed
    assert ">Kyverno policies<" in listed
    assert "policys" not in listed
    assert "selected>error<" in world.go("/policies", state="error").text
    assert "Nothing is violated now" in world.go("/resource", **GOOD).text
    assert world.go("/violations").status == 200
    for group in ("policy", "namespace", "resource"):
        assert world.go("/violations", group=group).status == 200
    assert "None is found" in world.go("/violations", q="nowhere").text
    assert "1 violation. As" in world.go("/violations", q="shop", severity="high").text
    assert world.go("/violations", format="sarif").json() == 7
    for name, word in (("wide", "What it violates"), ("none", "No violation of it is known")):
        namespace = "" if name == "wide" else "default"
        named = {"apiVersion": "v1", "kind": "Pod", "namespace": namespace, "name": name}
        assert word in world.go("/resource", **named).text
    assert "5 of 5 decisions" in world.go("/decisions").text
    assert world.go("/decisions").text.count("by the entry that fails closed") == 2
    assert "selected>deny (3)<" in world.go("/decisions", verdict="deny").text
    assert "0 of 5 decisions" in world.go("/decisions", q="nowhere").text
    (folder / "policies" / "1.yaml").write_text(constraint("needs-owner", "[1]"))
    world.read()
    kept = world.go("/policy", kind="RequiredLabel", name="needs-owner").text
    assert "The last revision that could be used stays in force" in kept


@state
def a_log_that_is_long_or_gone(folder: Path) -> None:
    folder.mkdir()
    log_file = folder / "decisions.jsonl"
    log_file.write_text(records(1200) + "{no record\n")
    world = World(folder, ConsoleOptions(log_file)).read()
    assert "1 to 200 of 1200" in world.go("/decisions").text
    assert "1001 to 1200 of 1200" in world.go("/decisions", page="6").text
    patient, decisions.SECONDS_MAX = decisions.SECONDS_MAX, 0.0  # type: ignore[misc]
    try:
        assert "Only the beginning of the log" in world.go("/decisions").text
        form = {"mode": "recorded", "policy": POLICY + CONSTRAINT}
        assert "Only the beginning of the log" in world.go("/playground", form).text
    finally:
        decisions.SECONDS_MAX = patient  # type: ignore[misc]
    log_file.write_text("")
    assert "0 of 0 decisions" in world.go("/decisions").text
    world.console.denials.clear()  # counts are kept for half a minute
    assert "Denials a minute" not in world.go("/").text
    log_file.unlink()
    assert "No such file" in world.go("/decisions").text


@state
def more_than_a_page(folder: Path) -> None:
    many = [constraint(f"needs-{number:03}", "owner") for number in range(120)]
    write_policies(folder / "policies", REQUIRED_LABELS, *many)
    (folder / "objects.yaml").write_text(yaml.safe_dump_all([pod(), thing("Pod", "other")]))
    world = World(folder).read()
    for path in ("/policies", "/violations"):
        assert 'rel="next"' in world.go(path).text
        assert 'rel="prev"' in world.go(path, page="2").text
    template = yaml.safe_load(REQUIRED_LABELS)
    template["spec"]["targets"][0]["rego"] += "# a line\n" * 6000
    write_policies(folder / "policies", yaml.safe_dump(template))
    world.read()
    listed = world.go("/policy", kind="ConstraintTemplate", name="requiredlabel").text
    assert "more lines" in listed


@state
def what_is_typed(folder: Path) -> None:
    folder.mkdir()
    log_file = folder / "decisions.jsonl"
    mended = {
        "constraint": {"kind": "NoSample", "name": "no-sample"},
        "enforcementAction": "deny",
        "message": "m",
    }
    bare = {**decision("bare"), "object": None}
    wide = {**decision("sample"), "resourceNamespace": ""}
    lines = [decision("sample"), wide, decision("mended", "deny", mended), bare]
    log_file.write_text("".join(f"{json.dumps(one)}\n" for one in lines))
    write_policies(folder / "policies", REQUIRED_LABELS, constraint("needs-owner", "owner"))
    world = World(folder, ConsoleOptions(log_file)).read()

    def typed(mode: str, text: str = "", given: str = "", query: str = "") -> str:
        form = {"mode": mode, "policy": text, "input": given, "query": query}
        return world.go("/playground", form).text

    both = POLICY + CONSTRAINT
    sample = yaml.safe_dump(thing("Pod", "sample"))
    assert "denied" in typed("review", given=json.dumps(pod()))
    assert "allowed" in typed("review", given=json.dumps(pod(owner="a")))
    assert "an object with apiVersion and kind" in typed("review", given="a: b")
    assert "2 more objects were not reviewed" in typed(
        "review", given="\n---\n".join([sample] * 52)
    )
    assert "Choose to try new templates" in typed("review", both, sample)
    assert "Tried on samples" in typed("policy", both)
    assert "no samples" in typed("policy", both, sample)
    assert "Nothing is violated" in typed("policy", both, json.dumps(pod()))
    named = "metadata: {name: no-sample"
    excusable = both.replace(named, f"{named}, annotations: {{waddle.dev/exceptions: all}}")
    excuse = exception("for-samples", "NoSample/no-sample", match={"name": "sample"})
    excused = typed("policy", f"{excusable}\n---\n{yaml.safe_dump(excuse)}", sample)
    assert "ClusterPolicyException for-samples" in excused
    alone = typed("policy", POLICY, sample)
    assert "a template alone denies nothing" in alone
    assert "Nothing is violated" not in alone
    assert "var y is unsafe" in typed("policy", both.replace('"no samples"', "y"))
    assert "would have another verdict" in typed("recorded", both)
    assert "problem" not in typed("rego", "package p\nx := 1", query="data.p.x")
    assert "undefined" in typed("rego", "package p", query="data.p.x")
    assert "3" in typed("cel", "1 + 2")
    assert "Outcome" in typed("cel", "1 +")
    log_file.write_text("")
    assert "with their objects: 0" in typed("recorded", both)
    without = World(folder).read()
    assert "recorded decisions" not in without.go("/playground").text
    assert without.go("/playground", {"mode": "recorded", "policy": both}).status == 400


CONFIG = """
apiVersion: config.gatekeeper.sh/v1alpha1
kind: Config
metadata: {name: config, namespace: gatekeeper-system}
spec: {match: [{processes: ["*"], excludedNamespaces: [default]}]}
"""


@state
def what_cannot_be_decided(folder: Path) -> None:
    folder.mkdir()
    log_file = folder / "decisions.jsonl"
    log_file.write_text(f"{json.dumps(decision('web'))}\n")
    write_policies(folder / "policies", REQUIRED_LABELS, constraint("needs-owner", "owner"), CONFIG)
    (folder / "objects.yaml").write_text(yaml.safe_dump(pod()))
    world = World(folder, ConsoleOptions(log_file), seconds=0.2).read()
    review = {"mode": "review", "input": json.dumps(pod())}
    undecided = world.go("/playground", review).text
    assert ">undecided<" in undecided
    assert "not decided: <bdi>a Config excludes the namespace default" in undecided
    named = {"apiVersion": "v1", "kind": "Pod", "namespace": "default", "name": "web"}
    assert "not decided" in world.go("/resource", **named).text
    slow = {"mode": "policy", "policy": SLOW, "input": json.dumps(thing("ConfigMap"))}
    assert "not decided" in world.go("/playground", slow).text
    slow = {"mode": "recorded", "policy": SLOW.replace("ConfigMap", "Pod")}
    assert "1 could not be decided here" in world.go("/playground", slow).text


def statuses_of(document: dict[str, Any]) -> list[dict[str, Any]]:
    """Returns statuses of three replicas: one enforces it, one is behind, one cannot use it."""
    errors = [StatusError("", "not so")]
    older = {"activeGeneration": 1, "since": "2026-01-01T00:00:00Z"}
    newer = [StatusError("", "not so either")]
    return [
        status_by("a", document),
        status_by("b", document, errors=newer, additions=older),
        status_by("c", document, errors=errors, enforced=False, additions={"activeGeneration": 0}),
    ]


def rich_cluster() -> Picture:
    document = policy()
    said_of_it = {
        "metadata.gatekeeper.sh/title": "A label",
        "description": "Each object says whose it is.",
        "owner": "platform",
    }
    named = living.named("requiredlabel", annotations=said_of_it)
    template = living.TEMPLATE | {"metadata": named}
    before = policy(metadata={"generation": 1}, spec={"parameters": {"label": "old"}})
    kept = [revision_object(one, digest_of(one)) for one in (before, document)]
    broken = revision_object(before, digest_of(before))
    broken["metadata"] = {**broken["metadata"], "name": "broken"}
    broken["spec"] = {**broken["spec"], "content": "AAAA"}
    terminating = replica("t")
    terminating["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    done = living.rolled_out()
    done["metadata"] = living.named("done", annotations={"waddle.dev/rollout": "dryrun after=1h"})
    steps = [{"action": "deny", "since": "2026-01-01T00:00:00Z"}]
    done["status"] = {
        "rollout": {"observedGeneration": 1, "state": "Complete", "action": "deny", "steps": steps}
    }
    begun = living.rolled_out()
    begun["metadata"] = {**begun["metadata"], **living.named("begun")}
    record = begun["status"]["rollout"]
    begun["status"] = {"rollout": {**record, "action": "dryrun", "steps": record["steps"][:1]}}
    rows = [
        {"policy": "RequiredLabel", "rule": "owner", "source": "waddle", **one}
        for one in (
            {
                "result": "fail",
                "message": "m",
                "severity": "high",
                "properties": {"action": "deny"},
            },
            {"result": "error", "message": "n", "timestamp": {"seconds": 1_700_000_000}},
        )
    ]
    scope = {"apiVersion": "v1", "kind": "Pod", "namespace": "shop", "name": "web", "uid": "u"}
    report = {"metadata": {"name": "r", "namespace": "shop"}, "scope": scope, "results": rows}
    certificates = [
        ShownCertificate(
            "one", "a", "2099-01-01T00:00:00Z", "2099-01-01T00:00:00Z", is_trusted=True
        ),
        ShownCertificate("two", "b", "2020-01-01T00:00:00Z", is_trusted=True),
        ShownCertificate("three", "c", is_trusted=False, why="of another authority"),
        ShownCertificate("four", "d", why="cannot be reached from here"),
        ShownCertificate(
            "five", "e", "2099-01-01T00:00:00Z", "2020-01-01T00:00:00Z", is_trusted=True
        ),
    ]
    return picture_of(
        ClusterObjects(
            [
                template,
                document,
                living.rolled_out(),
                done,
                begun,
                living.MUTATOR | {"metadata": living.named("m")},
            ],
            statuses_of(document),
            [replica("a"), replica("b", ready=False), replica("c"), terminating],
            [*kept, broken, {"metadata": {"name": "spoiled"}, "spec": {}}],
            [kept_report(report, WGPOLICY.namespaced)],
            kinds=[
                {"kind": "Pod", "group": "", "objects": 1, "state": "followed", "resource": "pods"}
            ],
            trouble=["the API server cannot be asked since noon"],
            certificates=certificates,
            namespace="waddle-system",
            **CLUSTER,
        )
    )


@state
def a_cluster_that_lives(folder: Path) -> None:
    world = World(folder).read().show(rich_cluster())
    for path in PAGES:
        assert world.go(path).status == 200
    for one in world.shown.picture.policies:
        assert world.go("/policy", kind=one.kind, name=one.name).status == 200
    assert "they differ" in world.go("/").text
    assert " ago</time>" in world.go("/violations", sort="newest").text
    assert "selected>high (1)<" in world.go("/violations", severity="high").text
    assert "generation 1" in world.go("/policies").text


@state
def a_cluster_whose_replicas_are_alike(folder: Path) -> None:
    document = policy()
    audited = policy(status={"totalViolations": 0})
    statuses = [status_by(name, document) for name in "ab"]
    replicas = [replica("a"), replica("b")]
    world = World(folder).read()
    world.show(picture_of(ClusterObjects([audited], statuses, replicas, reports=[], **CLUSTER)))
    assert "alike" in world.go("/").text
    assert "It enforces everything" in world.go("/health").text
    assert "There are no violations." in world.go("/violations").text
    assert "None." in world.go("/policy", kind="RequiredLabel", name="owner").text
    two = [policy(), policy("other")]
    behind = [status_by("a", one) for one in two]
    world.show(picture_of(ClusterObjects(two, behind, replicas, **CLUSTER)))
    assert "2 policies" in world.go("/").text
    silent = [StatusError("", "")]
    statuses = [status_by("a", document), status_by("b", document, errors=silent, enforced=False)]
    world.show(picture_of(ClusterObjects([document], statuses, replicas, **CLUSTER)))
    assert "1 policy" in world.go("/").text
    assert "error</li>" in world.go("/health").text
    noted = {"b": ("not ready: <clock>",)}
    world.show(picture_of(ClusterObjects([document], statuses, replicas, notes=noted, **CLUSTER)))
    assert "<bdi>not ready: &lt;clock&gt;</bdi>" in world.go("/health").text
    assert "no audit has published any" in world.go("/violations").text


@state
def a_cluster_with_exceptions(folder: Path) -> None:
    of_owner = "RequiredLabel/owner"
    first = exception("e", of_owner, of_owner, namespace="shop", owner="ops", ticket="OPS-1")
    ever = exception("ever", "RequiredLabel/*", match={"name": "x"}, expires=None, permanent=True)
    never_ends = "it is permanent: nothing will remind"
    ever["status"] = {
        "state": "Active",
        "lastUsed": "2026-01-01T00:00:00Z",
        "message": never_ends,
    }
    known = picture_of(ClusterObjects([policy(), first, ever], **CLUSTER))
    world = World(folder).read().show(known)
    shown = world.go("/exceptions").text
    assert "for ever" in shown
    assert never_ends in shown
    assert "OPS-1" in shown
    owner = next(one for one in known.policies if one.category == "constraint")
    assert "What is excused" in world.go("/policy", kind=owner.kind, name=owner.name).text


@state
def a_cluster_that_syncs_objects(folder: Path) -> None:
    kinds = ("Pod", "Service")
    sync = {"syncOnly": [{"group": "", "version": "v1", "kind": kind} for kind in kinds]}
    config = {"kind": "Config", "metadata": {"name": "config"}, "spec": {"sync": sync}}
    reader = synced_reader("data.inventory.namespace[_].v1.Pod[_].spec.nodeName")
    waits = status_by(
        "a",
        reader,
        kind=pod_status.TEMPLATE,
        errors=[StatusError("missing_data", missing_text((frozenset({PODS}),)))],
        enforced=False,
    )
    objects = ClusterObjects([reader], [waits], [replica("a")], sync_sources=[config], **CLUSTER)
    world = World(folder).read().show(picture_of(objects))
    page = world.go("/health").text
    assert "Kept of synced objects" in page
    assert "<bdi>spec.nodeName</bdi>" in page
    assert "names alone" in page
    assert "/policy?kind=ConstraintTemplate&amp;name=reader" in page
    whole = synced_reader("data.inventory.namespace[_].v1.Pod[_]")
    world.show(picture_of(replace(objects, policies=[whole], statuses=[])))
    assert "whole: <bdi>read by reader</bdi>" in world.go("/health").text


@state
def a_cluster_without_anything(folder: Path) -> None:
    world = World(folder).read().show(picture_of(ClusterObjects(**CLUSTER)))
    assert "There is no policy yet" in world.go("/").text
    assert "No replica of the webhook is known" in world.go("/health").text
    assert "No constraint is rolled out" in world.go("/rollouts").text


PODS = GroupVersionKind("", "v1", "Pod")


def synced_reader(path: str) -> dict[str, Any]:
    """A template that compares synced objects with the reviewed one."""
    rego = f'package p\nviolation[{{"msg": "no"}}] {{ {path} == input.review.object }}'
    return template("Reader", rego, metadata={"uid": "u-reader", "generation": 1})


class Grants:
    """An API server that is asked what somebody may."""

    def __init__(self, *plurals: str) -> None:
        self.plurals = plurals

    async def request(
        self, method: str, path: str, *, body: Any = None, deadline_seconds: float = 30.0
    ) -> Any:
        del method, path, deadline_seconds
        resource = body["spec"]["resourceAttributes"]["resource"]
        return {"status": {"allowed": resource in self.plurals or "*" in self.plurals}}


@state
def who_signs_in(folder: Path) -> None:
    with RunningProvider() as provider:
        out = see_as_somebody(folder, provider.issuer)
    assert "Sign out there, too" in out
    assert "Sign out there, too" not in see_as_somebody(folder, "http://127.0.0.1:9")


def see_as_somebody(folder: Path, issuer: str) -> str:
    """Look as who may read nothing and as who never signed in; the page of who signs out."""
    sealer = Sealer(b"k" * 48)
    provider = ProviderOptions(issuer, "me", "http://localhost/oidc/callback")
    grants = Grants()
    options = ConsoleOptions(
        login=Login(provider, sealer, 60.0, now=lambda: 100.0),
        rights=Rights(lambda: grants, now=lambda: 0.0),
    )
    cookie = f"waddle={sealer.seal('session', ['ada', ['a'], 'Ada'], 160.0)}"
    write_policies(folder / "policies", REQUIRED_LABELS, constraint("needs-owner", "owner"))
    world = World(folder, options, {"cookie": cookie}).read().show(rich_cluster())
    assert "There is no policy that you may read" in world.go("/").text
    assert "No policy that you may read is here" in world.go("/policies").text
    assert "You may not see the replicas" in world.go("/health").text
    assert "What you may not read, or not everywhere" in world.go("/").text
    hidden = world.go("/playground", {"mode": "review", "input": json.dumps(pod())}).text
    assert "1 more violation by policies that you may not read" in hidden
    stranger = World(folder, options).read().show(rich_cluster())
    assert stranger.go("/").status in (303, 401)
    assert "Not signed in" in stranger.go("/oidc/callback", state="forged").text
    return stranger.go("/logout", {}).text


@state
def several_clusters(folder: Path) -> None:
    shown = clusters_of(("a", "b c", "b/c"))
    assert [one.root for one in shown] == ["/clusters/a", "/clusters/b-c", "/clusters/b-c-2"]
    worlds = [World(folder / str(one), ConsoleOptions(clusters=shown)) for one in range(3)]
    worlds[0].show(rich_cluster()).console.drawing = BELOW
    worlds[1].show(Picture("cluster", "", "1", "", sees_pods=False))
    consoles = {one: world.console for one, world in zip(shown, worlds, strict=True)}
    application = clusters_application(consoles, {"localhost"}, DRAWING)
    page = ask(application, "/", {}, None)
    assert "<bdi>b/c</bdi>" in page.text
    assert "nothing has been read yet: try again in a moment" in page.text
    assert 'aria-current="true"' in ask(application, "/clusters/a/policies", {}, None).text
    assert ask(application, "/clusters/c/", {}, None).status == 404
    assert ask(application, "/clusters/a/nowhere", {}, None).status == 404
    assert ask(application, "/readyz", {}, None).status == 503


def test_every_page_and_form_is_answered_in_each_state_and_every_branch_is_drawn(tmp_path: Path):
    environment = marks()
    for name in environment.list_templates():
        environment.get_template(name)
    try:
        for number, play in enumerate(STATES):
            play(tmp_path / f"{number}")
    finally:
        while WORLDS:
            WORLDS.pop().console.playground.stop()
    never = sorted(environment.known - environment.drawn - marks(BELOW).drawn)
    assert not never, "\n".join(f"{name}:{line} {way}" for name, line, way in never)


def test_a_branch_that_is_not_drawn_is_found():
    text = (
        "{% if a %}1{% elif b %}2{% else %}3{% endif %}"
        "{% for one in many %}4{% endfor %}{{ 5 if c else 6 }}{{ 7 if d }}"
    )
    environment = MarkingEnvironment(loader=DictLoader({"t": text}))
    given = {"a": False, "b": True, "many": [], "c": False, "d": False}
    assert environment.get_template("t").render(given) == "26"
    drawn = {way for _, _, way in environment.drawn}
    assert len(environment.known) == 8
    assert drawn == {"if 1", "else 1", "else 2"}
