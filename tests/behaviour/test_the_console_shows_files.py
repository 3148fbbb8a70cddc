"""`waddle console` over files: what is in force and what it finds, as pages, as JSON, as files."""

import csv
import http.client
import io
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlencode

import pytest

from tests.behaviour.serving import REQUIRED_LABELS, constraint, pod, write_policies
from tests.patience import PATIENCE_SECONDS, until
from tests.programs import ROOT
from tests.webhook.console.folder import console_over, write_decisions, write_folder
from tests.webhook.console.pictures import LONG, RIGHT_TO_LEFT, SCRIPT
from tests.webhook.console.running import RunningConsole
from webhook.console.application import FORM_BYTES_MAX

PAGES = (
    "/",
    "/policies",
    "/policy?kind=RequiredLabel&name=needs-owner",
    "/violations",
    "/resource?apiVersion=v1&kind=Pod&namespace=default&name=web",
    "/decisions",
    "/rollouts",
    "/playground",
    "/health",
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    broken = (
        REQUIRED_LABELS.replace("requiredlabel", "broken")
        .replace("RequiredLabel", "Broken")
        .replace("msg := sprintf", "msg := sprint")
    )
    folder = write_folder(tmp_path_factory.mktemp("console"), broken)
    write_decisions(folder)
    return folder


@pytest.fixture(scope="module")
def console(folder: Path) -> Iterator[RunningConsole]:
    with console_over(folder, f"--decisions={folder / 'decisions.jsonl'}") as running:
        yield running


@pytest.mark.parametrize("path", PAGES)
def test_each_page_is_html_that_runs_nothing_inline_and_json_of_the_same(
    console: RunningConsole, path: str
):
    page = console.get(path)
    assert page.status == 200
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    assert page.headers["content-security-policy"].startswith("default-src 'none'")
    assert page.headers["cache-control"] == "no-store"
    assert page.headers["x-content-type-options"] == "nosniff"
    assert SCRIPT.encode() not in page.body
    document = console.json(path)
    version = document["shown"]["version"]
    assert version
    assert version in page.body.decode()
    joined = path + ("&" if "?" in path else "?") + "format=json"
    assert console.get(joined).json()["shown"]["version"] == version


def test_the_overview_counts_policies_by_state_and_violations(console: RunningConsole):
    found = console.json("/")
    assert found["policies"]["byState"] == {
        "error": 1,
        "degraded": 0,
        "not asked": 0,
        "pending": 0,
        "not for admission": 0,
        "active": 3,
    }
    assert found["violations"]["total"] == 8
    assert found["violations"]["reviewed"] == 4
    assert [item["name"] for item in found["worst"]] == ["broken"]


def test_a_broken_template_is_shown_with_its_line_marked(console: RunningConsole):
    found = console.json("/policy?kind=ConstraintTemplate&name=broken")
    wrong = [line for line in found["sources"][0]["lines"] if line["error"]]
    assert [line["text"].strip() for line in wrong] == [
        'msg := sprint("label <%v> is missing", [input.parameters.label])'
    ]
    page = console.get("/policy?kind=ConstraintTemplate&name=broken").body.decode()
    assert 'class="wrong"' in page


def test_violations_are_found_by_text_grouped_and_written_as_csv_and_sarif(console: RunningConsole):
    query = urlencode({"q": "owner", "policy": "RequiredLabel/needs-owner"})
    found = console.json(f"/violations?{query}")
    assert {row["name"] for row in found["rows"]} == {"web", LONG, RIGHT_TO_LEFT, SCRIPT}
    by_policy = console.json("/violations?group=policy")["rows"]
    assert [row["violations"] for row in by_policy] == [4, 4]
    rows = console.get("/violations?format=csv&namespace=default")
    assert rows.headers["content-disposition"] == 'attachment; filename="violations.csv"'
    read = list(csv.DictReader(io.StringIO(rows.body.decode())))
    assert {row["name"] for row in read} == {"web"}
    sarif = console.get("/violations?format=sarif").json()
    assert len(sarif["runs"][0]["results"]) == 8


DESCRIBED = """\
apiVersion: templates.gatekeeper.sh/v1
kind: ConstraintTemplate
metadata:
  name: tagged
  annotations:
    metadata.gatekeeper.sh/title: Images have tags
    description: What latest is, changes.
    waddle.dev/severity: high
    waddle.dev/category: images
spec:
  crd: {spec: {names: {kind: Tagged}}}
  targets:
  - target: admission.k8s.gatekeeper.sh
    rego: |
      package tagged
      violation[{"msg": msg}] {
        image := input.review.object.spec.containers[i].image
        not contains(image, ":")
        msg := sprintf("spec.containers[%d].image: %v has no tag", [i, image])
      }
---
apiVersion: constraints.gatekeeper.sh/v1beta1
kind: Tagged
metadata: {name: tags}
spec: {match: {kinds: [{apiGroups: [""], kinds: ["Pod"]}]}}
---
apiVersion: constraints.gatekeeper.sh/v1beta1
kind: Tagged
metadata: {name: tags-of-services}
spec: {match: {kinds: [{apiGroups: [""], kinds: ["Service"]}]}}
"""
UNTAGGED = """\
apiVersion: v1
kind: Pod
metadata: {name: web}
spec:
  containers:
  - name: a
    image: app:1
  - name: b
    image: app
"""


def test_sarif_says_what_that_of_the_command_line_says(tmp_path: Path):
    write_policies(tmp_path / "policies", DESCRIBED)
    (tmp_path / "objects.yaml").write_text(UNTAGGED)
    given = [str(tmp_path / "policies"), str(tmp_path / "objects.yaml")]
    tested = subprocess.run(
        [sys.executable, "-m", "webhook", "test", *given, "-o", "sarif"],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        timeout=PATIENCE_SECONDS,
        check=False,
    )
    with console_over(tmp_path) as console:
        shown = console.get("/violations?format=sarif").json()
        rows = csv.DictReader(io.StringIO(console.get("/violations?format=csv").body.decode()))
        assert [row["place"] for row in rows] == [f"{tmp_path}/objects.yaml:9"]
    (run,), (expected,) = shown["runs"], json.loads(tested.stdout)["runs"]
    assert run["results"] == expected["results"]
    assert run["results"][0]["locations"][0]["physicalLocation"]["region"]["startLine"] == 9
    assert run["tool"] == expected["tool"]
    rule = run["tool"]["driver"]["rules"][0]
    assert rule["shortDescription"]["text"] == "Images have tags"
    assert rule["fullDescription"]["text"] == "What latest is, changes."


def test_a_resource_shows_all_that_it_violates(console: RunningConsole):
    query = urlencode({"apiVersion": "v1", "kind": "Pod", "namespace": "", "name": SCRIPT})
    found = console.json(f"/resource?{query}")
    assert {row["policy"] for row in found["rows"]} == {
        "RequiredLabel/needs-owner",
        "RequiredLabel/needs-team",
    }


def test_a_decision_is_found_by_the_uid_of_its_request(console: RunningConsole):
    found = console.json("/decisions?uid=uid-2")
    assert [record["name"] for record in found["records"]] == ["web-2"]
    everything = console.json("/decisions")
    assert [record["uid"] for record in everything["records"]] == ["uid-2", "uid-1", "uid-0"]
    assert everything["unreadable"] == 1
    assert everything["denialsPerMinute"][-3:] == [1, 0, 1]
    assert console.json("/decisions?verdict=allow")["matching"] == 1
    assert console.json("/decisions?user=ada")["matching"] == 1
    of_a_minute = console.json("/decisions?verdict=deny&minute=2026-01-01T00:02")["records"]
    assert [record["uid"] for record in of_a_minute] == ["uid-2"]
    assert console.json("/decisions?namespace=shop")["matching"] == 2
    assert console.json("/decisions?policy=RequiredLabel/needs-owner&verdict=deny")["matching"] == 2
    beside = console.json("/decisions?namespace=shop")["choices"]
    assert beside["verdict"] == [{"value": "deny", "found": 2}]
    assert beside["namespace"] == [
        {"value": "shop", "found": 2},
        {"value": "bank", "found": 1},
    ], "its own choice narrows no filter"
    assert beside["user"] == [{"value": "ada", "found": 1}, {"value": "bob", "found": 1}]
    assert console.json("/")["denialsPerMinute"][-3:] == [1, 0, 1]
    assert b"Denials a minute" in console.get("/").body


def test_the_playground_decides_by_the_policies_in_force(console: RunningConsole):
    form = {"mode": "review", "input": json.dumps(pod(team="a", owner="b"))}
    answer = console.post("/playground", form)
    assert answer.status == 200
    assert b"needs-team" in answer.body
    assert b"label &lt;&lt;script&gt;" in answer.body
    assert SCRIPT.encode() not in answer.body


def test_what_must_not_come_in_is_refused(console: RunningConsole):
    assert console.get("/", {"Host": "evil.example"}).status == 421
    form = {"mode": "cel", "policy": "1"}
    assert console.post("/playground", form, Origin="https://evil.example").status == 403
    assert console.get(f"/policies?q={'x' * 9000}").status == 414
    assert console.ask("POST", "/playground", b"x" * (FORM_BYTES_MAX + 1), {}).status == 413
    assert console.ask("POST", "/policies", b"", {}).status == 405
    assert console.ask("DELETE", "/", b"", {}).status == 405
    for path in ("/static/../console.py", "/static/%2e%2e%2fconsole.py", "/static/none.css", "/x"):
        answer = console.get(path)
        assert answer.status == 404
        assert answer.headers["content-security-policy"]
    missing = console.get(f"/policy?{urlencode({'kind': SCRIPT, 'name': SCRIPT})}")
    assert missing.status == 404
    assert SCRIPT.encode() not in missing.body
    assert console.json("/policy?kind=a&name=b")["status"] == 404


def test_style_and_script_are_there(console: RunningConsole):
    assert console.get("/static/console.css").headers["content-type"].startswith("text/css")
    assert console.get("/static/console.js").headers["content-type"].startswith("text/javascript")


def test_who_follows_is_informed_when_a_file_changes_and_the_page_shows_it(tmp_path: Path):
    policies = write_policies(tmp_path / "p", REQUIRED_LABELS, constraint("one", "owner"))
    with RunningConsole(f"--policies={policies}") as console:
        console.ready()
        connection = http.client.HTTPConnection("localhost", console.port, PATIENCE_SECONDS)
        connection.request("GET", "/events")
        stream = connection.getresponse()
        assert stream.getheader("content-type") == "text/event-stream; charset=utf-8"
        first = event(stream)
        (policies / "2.yaml").write_text(constraint("two", "team"))
        until(lambda: event(stream) != first, "an event for the change")
        until(lambda: console.json("/policies?q=two")["policies"], "the new constraint")
        (policies / "0.yaml").write_text("{[")
        until(lambda: console.json("/")["faults"], "what is wrong with the file")
        assert console.json("/policies")["position"]["total"] == 3
        connection.close()


def event(stream: http.client.HTTPResponse) -> bytes:
    """The data of the next event."""
    while True:
        line = stream.readline()
        assert line, "the stream ended"
        if line.startswith(b"data: "):
            return line


def test_nothing_to_show_is_a_page_too(tmp_path: Path):
    with RunningConsole(f"--policies={tmp_path}") as console:
        console.ready()
        assert b"There is no policy yet" in console.get("/").body
        assert console.json("/violations")["known"] is False
        for path in ("/policies", "/violations", "/decisions", "/rollouts", "/health"):
            assert console.get(path).status == 200


def test_a_start_that_cannot_be_says_why():
    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "webhook", "console", *arguments]
        return subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=PATIENCE_SECONDS
        )

    nothing = run()
    assert nothing.returncode == 64
    assert "--policies" in nothing.stderr
    missing = run("--policies=/nowhere/at/all")
    assert missing.returncode == 64
    assert "/nowhere/at/all" in missing.stderr


def test_a_console_that_has_to_stop_ends_what_follows_it_without_a_fault(folder: Path):
    with RunningConsole(f"--policies={folder / 'policies'}") as console:
        console.ready()
        connection = http.client.HTTPConnection("localhost", console.port, PATIENCE_SECONDS)
        connection.request("GET", "/events")
        stream = connection.getresponse()
        assert stream.readline() == b"retry: 5000\n"
    # Its log has no fault, which leaving it has seen.
    assert stream.read().endswith(b"\n\n")
    connection.close()


REQUIRING_TEAM = f"{REQUIRED_LABELS}\n---\n{constraint('typed', 'team')}"


@pytest.mark.parametrize("given", ["", json.dumps(pod()), "{[", json.dumps({"kind": "Pod"})])
@pytest.mark.parametrize("policy", ["", REQUIRING_TEAM, "{[", "1 + 1"])
@pytest.mark.parametrize("mode", ["review", "policy", "recorded", "rego", "cel"])
def test_whatever_is_typed_into_the_playground_a_page_answers(
    console: RunningConsole, mode: str, policy: str, given: str
):
    """New templates and constraints were answered by 500 as a page, and by 200 as JSON."""
    form = {"mode": mode, "policy": policy, "input": given, "query": "data.a.b"}
    page = console.post("/playground", form)
    assert page.status == 200, page.body.decode()[-2000:]
    assert b"Outcome" in page.body


def test_the_playground_shows_what_a_new_policy_denies(console: RunningConsole):
    form = {"mode": "policy", "policy": REQUIRING_TEAM, "input": json.dumps(pod()), "query": ""}
    page = console.post("/playground", form).body.decode()
    assert "label &lt;team&gt; is missing" in page
    assert "deny" in page


def test_a_policy_that_the_choice_does_not_use_is_not_passed_over_in_silence(
    console: RunningConsole,
):
    form = {"mode": "review", "policy": REQUIRING_TEAM, "input": json.dumps(pod()), "query": ""}
    page = console.post("/playground", form).body.decode()
    assert "Choose to try new templates and constraints" in page
    assert "Nothing is violated" not in page


def test_policies_about_other_things_than_admissions_are_no_errors_of_our_own_library():
    """Templates for Terraform and Dockerfiles: the first page said 32 errors."""
    with RunningConsole(f"--policies={ROOT / 'policies'}") as console:
        console.ready()
        overview = console.json("/")
        states = overview["policies"]["byState"]
        assert (states["error"], states["degraded"]) == (0, 0)
        assert states["not for admission"] > 0
        assert overview["worst"] == []
        listed = [item["state"] for item in console.json("/policies")["policies"]]
        assert listed[0] == "active", "those that no admission meets come last"
        page = console.get("/policies?state=not+for+admission")
        assert page.status == 200
        assert b"not for admission" in page.body


def test_the_review_of_an_object_names_the_gravest_violations_first():
    """In the order of the list of violations: an object can have many warnings and one denial."""
    privileged = pod()
    privileged["spec"] = {"containers": [{"name": "app", "securityContext": {"privileged": True}}]}
    form = {"mode": "review", "policy": "", "input": json.dumps(privileged), "query": ""}
    with RunningConsole(f"--policies={ROOT / 'policies'}") as console:
        console.ready()
        page = console.post("/playground", form).body.decode()
        actions = re.findall(r'<li><span class="action \w+">(\w+)<', page)
        places = [("deny", "warn", "dryrun").index(action) for action in actions]
        assert len(set(places)) > 1
        assert places == sorted(places)
