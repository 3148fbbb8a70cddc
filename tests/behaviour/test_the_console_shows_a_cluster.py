"""`waddle console` over a cluster: the real API server, and one that is not there."""

import json

import pytest
import yaml

from tests.behaviour.serving import REQUIRED_LABELS, pod
from tests.behaviour.stages import CRDS, ROOT, TEMPLATES, Stage, retry
from tests.cluster import write_kubeconfig
from tests.patience import until
from tests.ports import free_port
from tests.webhook.console.pictures import SCRIPT
from tests.webhook.console.running import RunningConsole
from webhook.api.pod_status import StatusError
from webhook.api.revision import digest_of, revision_object

PAGES = ("/", "/policies", "/violations", "/rollouts", "/playground", "/health", "/decisions")


def over(stage: Stage) -> RunningConsole:
    return RunningConsole(*stage.options())


def test_each_replica_s_word_about_a_policy_is_shown_as_soon_as_it_is_said(stage: Stage):
    first, second = stage.replica("a"), stage.replica("b")
    stage.say(first, stage.constraint)
    path = f"/policy?kind={stage.kind}&name={stage.name}"
    with over(stage) as console:
        console.ready()
        until(lambda: console.get(path).status == 200, "the constraint")

        def enforcing() -> tuple[str, int, int]:
            found = console.json(path)["policy"]
            return found["state"], found["enforcing"], found["counted"]

        until(lambda: enforcing() == ("degraded", 1, 2), "one of two enforces it")
        assert (
            console.json(path)["resourceVersion"] == stage.constraint["metadata"]["resourceVersion"]
        )
        until(lambda: "b" in str(console.json("/health")["replicas"]), "the replica that is behind")
        stage.say(second, stage.constraint)
        until(lambda: enforcing() == ("active", 2, 2), "both enforce it")
        stage.say(second, stage.constraint, errors=[StatusError("", SCRIPT)])
        until(lambda: enforcing()[0] == "degraded", "one has a fault")
        page = console.get(path).body
        assert b"&lt;script&gt;" in page
        assert SCRIPT.encode() not in page
        assert {item["name"] for item in console.json("/")["worst"]} >= {stage.name}
        shown = console.json("/")["shown"]
        assert shown["version"].isdigit()
        assert shown["place"].startswith("https://")
        for each in PAGES:
            assert console.get(each).status == 200


def test_a_kept_revision_is_told_with_its_difference(stage: Stage):
    kept = revision_object(stage.constraint, digest_of(stage.constraint))
    stage.api.request("POST", "/apis/policy.waddle.dev/v1alpha1/policyrevisions", kept)
    stage.change()
    path = f"/policy?kind={stage.kind}&name={stage.name}"
    with over(stage) as console:
        console.ready()
        until(lambda: console.get(path).status == 200, "the constraint")
        until(lambda: console.json(path)["revisions"], "the revision")
        [revision] = console.json(path)["revisions"]
        assert "+enforcementAction: warn" in revision["difference"]
        assert "rollback-to=1" in console.get(path).body.decode()


def test_violations_come_from_policy_reports_and_go_with_them(stage: Stage):
    for file in (ROOT / "manifests" / "reports" / "wgpolicyk8s").glob("*reports.yaml"):
        manifest = yaml.safe_load(file.read_text())
        stage.api.apply(f"{CRDS}/{manifest['metadata']['name']}", manifest)
    reports = f"/apis/wgpolicyk8s.io/v1alpha2/namespaces/{stage.name}/policyreports"
    report = {
        "apiVersion": "wgpolicyk8s.io/v1alpha2",
        "kind": "PolicyReport",
        "metadata": {"name": "r", "labels": {"app.kubernetes.io/managed-by": "waddle"}},
        "scope": {
            "apiVersion": "v1",
            "kind": "Pod",
            "namespace": stage.name,
            "name": "web",
            "uid": "u",
        },
        "results": [
            {
                "policy": stage.kind,
                "rule": stage.name,
                "result": "fail",
                "message": SCRIPT,
                "source": "waddle",
                "severity": "high",
                "properties": {"action": "deny"},
            }
        ],
        "summary": {"fail": 1},
    }
    retry(lambda: stage.api.request("POST", reports, report))
    where = f"/violations?namespace={stage.name}"
    with over(stage) as console:
        console.ready()
        until(lambda: console.json(where)["rows"], "the violation")
        [row] = console.json(where)["rows"]
        assert (row["policy"], row["message"]) == (f"{stage.kind}/{stage.name}", SCRIPT)
        resource = f"/resource?apiVersion=v1&kind=Pod&namespace={stage.name}&name=web"
        assert console.json(resource)["rows"] == [row]
        stage.api.request("DELETE", f"{reports}/r")
        until(lambda: not console.json(where)["rows"], "it is gone")


def test_the_playground_decides_by_what_the_cluster_holds(stage: Stage):
    kind = f"Label{stage.kind}"
    text = REQUIRED_LABELS.replace("requiredlabel", kind.lower()).replace("RequiredLabel", kind)
    template = retry(lambda: stage.api.request("POST", TEMPLATES, yaml.safe_load(text)))
    try:
        with over(stage) as console:
            console.ready()
            name = template["metadata"]["name"]
            path = f"/policy?kind=ConstraintTemplate&name={name}"
            until(lambda: console.get(path).status == 200, "the template")
            new = {
                "apiVersion": "constraints.gatekeeper.sh/v1beta1",
                "kind": kind,
                "metadata": {"name": "new"},
                "spec": {"parameters": {"label": "owner"}},
            }
            form = {"mode": "policy", "policy": yaml.safe_dump(new), "input": json.dumps(pod())}
            answer = console.post("/playground?format=json", form).json()["outcome"]
            [violation] = answer["reviews"][0]["violations"]
            assert violation["message"] == "label <owner> is missing"
            form = {"mode": "review", "input": json.dumps(pod())}
            answer = console.post("/playground?format=json", form).json()["outcome"]
            assert answer["reviews"][0]["error"] == ""
    finally:
        stage.api.request("DELETE", f"{TEMPLATES}/{template['metadata']['name']}")


@pytest.mark.parametrize("path", PAGES)
def test_an_api_server_that_is_not_there_is_told_on_each_page(nowhere: RunningConsole, path: str):
    assert nowhere.get(path).status == 200
    [told] = [
        one for one in nowhere.json(path)["shown"]["trouble"] if "cannot be asked since" in one
    ]
    assert told
    assert b"cannot be asked since" in nowhere.get(path).body


@pytest.fixture(scope="module")
def nowhere(tmp_path_factory: pytest.TempPathFactory):
    """A console whose API server does not answer."""
    file = tmp_path_factory.mktemp("nowhere") / "config"
    write_kubeconfig(file, f"http://127.0.0.1:{free_port()}")
    with RunningConsole("--kubeconfig", str(file)) as console:
        console.ready()
        until(lambda: console.json("/")["shown"]["trouble"], "what is wrong")
        yield console
