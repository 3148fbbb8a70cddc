"""`waddle console` over a cluster: the real API server, and one that is not there."""

import json
import os
import subprocess
from pathlib import Path
from urllib.parse import quote

import pytest
import yaml

from tests.behaviour.serving import REQUIRED_LABELS, pod
from tests.behaviour.stages import CRDS, ROOT, TEMPLATES, Stage, retry
from tests.cluster import write_kubeconfig
from tests.manifests import constraint_crd
from tests.patience import PATIENCE_SECONDS, until
from tests.policies import exception
from tests.ports import free_port
from tests.programs import of_the_system
from tests.webhook.admission_policies import making as admission_policies
from tests.webhook.cli.in_process import waddle
from tests.webhook.console.identity import RunningProvider
from tests.webhook.console.person import Person
from tests.webhook.console.pictures import SCRIPT
from tests.webhook.console.running import RunningConsole
from tests.webhook.console.signing import signing
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


def test_a_kept_revision_is_reported_with_its_difference(stage: Stage):
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


def test_the_api_server_s_own_policies_stand_beside_constraints(stage: Stage):
    """In whichever version the API server serves them, as they come and go."""
    root = "/apis/admissionregistration.k8s.io/v1"
    rule = {"apiGroups": ["example.com"], "resources": ["nothings"]}
    name = f"{stage.name}-own"
    own = admission_policies.policy("true", name=name, rule=rule)
    bound = admission_policies.binding(name, name)
    path = f"/policy?kind=ValidatingAdmissionPolicy&name={name}"
    made = []
    try:
        with over(stage) as console:
            console.ready()
            policies = f"{root}/validatingadmissionpolicies"
            stage.api.request("POST", policies, own)
            made.append(f"{policies}/{name}")
            until(lambda: console.get(path).status == 200, "the policy")
            assert console.json(path)["policy"]["state"] == "not asked"
            bindings = f"{root}/validatingadmissionpolicybindings"
            stage.api.request("POST", bindings, bound)
            made.append(f"{bindings}/{name}")
            until(lambda: console.json(path)["policy"]["state"] == "active", "its binding")
            assert console.json(path)["policy"]["action"] == "deny"
            kinds = {one["resource"]: one["state"] for one in console.json("/health")["kinds"]}
            for plural in ("validatingadmissionpolicies", "mutatingadmissionpolicies"):
                assert kinds[plural].startswith("followed"), kinds
            assert "validatingpolicies" not in kinds, "nobody asked for Kyverno's"
    finally:
        for one in reversed(made):
            stage.api.request("DELETE", one)


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


def test_a_group_and_exceptions_from_it_are_shown_with_what_is_said_of_each(stage: Stage):
    pod = stage.replica("a")
    root, name = "/apis/waddle.dev/v1alpha1", stage.name
    group = {
        "apiVersion": "waddle.dev/v1alpha1",
        "kind": "ConstraintGroup",
        "metadata": {"name": name},
        "spec": {"members": {"one": {"kind": stage.kind}}, "expression": "one()"},
    }
    group = retry(lambda: stage.api.request("POST", f"{root}/constraintgroups", group))
    stage.say(pod, group)
    own = exception("own", f"ConstraintGroup/{name}", namespace=name, reason=SCRIPT)
    retry(lambda: stage.api.request("POST", f"{root}/namespaces/{name}/policyexceptions", own))
    path = f"/policy?kind=ConstraintGroup&name={name}"
    try:
        with over(stage) as console:
            console.ready()
            until(lambda: console.get(path).status == 200, "the group")
            until(lambda: console.json(path)["policy"]["state"] == "active", "it is enforced")
            until(lambda: console.json(path)["exceptions"], "the exception from it")
            [shown] = console.json(path)["exceptions"]
            assert (shown["name"], shown["reason"]) == (f"{name}/own", SCRIPT)
            listed = console.json("/exceptions")["exceptions"]
            assert f"{name}/own" in {one["name"] for one in listed}
            assert SCRIPT.encode() not in console.get("/exceptions").body
    finally:
        stage.api.request("DELETE", f"{root}/constraintgroups/{name}")


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


def test_the_playground_decides_by_the_api_server_s_own_policies_as_commands_over_files_do(
    stage: Stage, tmp_path: Path
):
    """With their parameters, in the same words."""
    root, name = "/apis/admissionregistration.k8s.io/v1", f"{stage.name}-tried"
    rule = {"apiGroups": ["example.com"], "resources": ["nothings"]}
    kind = {"apiVersion": "v1", "kind": "ConfigMap"}
    reference = {"name": name, "namespace": stage.name, "parameterNotFoundAction": "Deny"}
    own = admission_policies.policy(
        "object.spec.size <= int(params.data.max)", name=name, rule=rule, paramKind=kind
    )
    bound = admission_policies.binding(name, name, paramRef=reference)
    parameters = {**kind, "metadata": {"name": name, "namespace": stage.name}, "data": {"max": "3"}}
    tried = {
        "apiVersion": "example.com/v1",
        "kind": "Nothing",
        "metadata": {"name": "n", "namespace": stage.name},
        "spec": {"size": 5},
    }
    file = tmp_path / "all.json"
    documents = [own, bound, parameters, tried]
    file.write_text(json.dumps({"kind": "List", "apiVersion": "v1", "items": documents}))
    by_files = json.loads(waddle("test", "-f", file, "-o", "json").stdout)
    (message,) = {one["msg"] for one in by_files}
    posts = {
        f"/api/v1/namespaces/{stage.name}/configmaps": parameters,
        f"{root}/validatingadmissionpolicies": own,
        f"{root}/validatingadmissionpolicybindings": bound,
    }
    made = []
    try:
        for folder, document in posts.items():
            stage.api.request("POST", folder, document)
            made.append(f"{folder}/{name}")
        with over(stage) as console:
            console.ready()
            form = {"mode": "review", "input": json.dumps(tried)}

            def found() -> list[str]:
                answer = console.post("/playground?format=json", form).json()["outcome"]
                return [one["message"] for one in answer.get("reviews", [{}])[0]["violations"]]

            until(lambda: found() == [message], f"the console says {message}")
    finally:
        for one in reversed(made):
            stage.api.request("DELETE", one)


def test_each_command_that_a_policy_s_page_shows_is_taken_by_the_api_server(stage: Stage):
    if of_the_system("kubectl") is None:
        pytest.skip("no kubectl on this machine")
    path = f"/policy?kind={stage.kind}&name={stage.name}"
    with over(stage) as console:
        console.ready()
        until(lambda: console.get(path).status == 200, "the constraint")
        offered = console.json(path)["commands"]
    assert {"remove it", "spare a namespace", "roll it out in stages"} <= {
        one["what"] for one in offered
    }
    for one in offered:
        dry = "" if " get " in one["command"] else " --dry-run=server"
        done = subprocess.run(
            ["bash", "-c", one["command"] + dry],
            env={**os.environ, "KUBECONFIG": str(stage.kubeconfig)},
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE_SECONDS,
        )
        assert done.returncode == 0, f"{one['command']}: {done.stderr}"


def test_a_kind_that_the_cluster_does_not_serve_is_reported_in_words(stage: Stage):
    with over(stage) as console:
        console.ready()

        def states() -> dict[str, str]:
            return {one["kind"]: one["state"] for one in console.json("/health")["kinds"]}

        until(lambda: "not served" in str(states()), "openreports.io is not installed here")
        page = console.get("/health").body.decode()
        assert "not served: its CRD is not installed" in page
        assert "404" not in page


@pytest.mark.parametrize("path", PAGES)
def test_an_api_server_that_is_not_there_is_reported_on_each_page(
    nowhere: RunningConsole, path: str
):
    assert nowhere.get(path).status == 200
    [line] = [
        one for one in nowhere.json(path)["shown"]["trouble"] if "cannot be asked since" in one
    ]
    assert line
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


RBAC = "/apis/rbac.authorization.k8s.io/v1"


def grant(stage: Stage, user: str, rule: dict[str, list[str]], *, everywhere: bool = False) -> None:
    """Let a user do something, in the stage's namespace or everywhere."""
    name = f"{stage.name}-{'-'.join(rule['resources'])}"
    scope = "" if everywhere else f"/namespaces/{stage.name}"
    kind = "ClusterRole" if everywhere else "Role"
    metadata = {"name": name, "labels": {"stage": stage.name}}
    role = {"metadata": metadata, "rules": [rule]}
    stage.api.request("POST", f"{RBAC}{scope}/{kind.lower()}s", role)
    binding = {
        "metadata": metadata,
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": name},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}],
    }
    stage.api.request("POST", f"{RBAC}{scope}/{kind.lower()}bindings", binding)


def test_who_signs_in_sees_what_rbac_lets_that_user_read(stage: Stage, tmp_path: Path):
    with RunningProvider(ada={}) as provider:
        user = f"{provider.issuer}#ada"  # as the API server's own flags would call her
        configuration = {"metadata": {"name": "settings"}, "data": {"a": "b"}}
        for kind in ("configmaps", "secrets"):
            path = f"/api/v1/namespaces/{stage.name}/{kind}"
            stage.api.request(
                "POST",
                path,
                configuration if kind == "configmaps" else {"metadata": {"name": "settings"}},
            )
        grant(
            stage,
            user,
            {
                "apiGroups": ["constraints.gatekeeper.sh"],
                "resources": [stage.kind.lower()],
                "verbs": ["list"],
            },
            everywhere=True,
        )
        try:
            with signing(tmp_path, provider, stage.options()) as console:
                until(lambda: console.get("/readyz").status == 200, "the console")
                person = Person(console.address)
                person.sign_in("ada")
                until(lambda: person.json("/policies").json()["policies"], "the constraint")
                found = person.json("/policies").json()
                assert [one["name"] for one in found["policies"]] == [stage.name]
                assert (
                    "list constrainttemplates.templates.gatekeeper.sh" in found["shown"]["hidden"]
                )
                where = (
                    f"/resource?apiVersion=v1&kind=ConfigMap&namespace={stage.name}&name=settings"
                )
                live = person.json(where).json()["live"]
                assert live == {"error": f"you have no right to get configmaps in {stage.name}"}
                secret = where.replace("ConfigMap", "Secret")
                live = person.json(secret).json()["live"]
                assert live == {"error": "the console never reads a Secret"}
            grant(stage, user, {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"]})
            # Answers are remembered for half a minute: another console has none.
            with signing(tmp_path, provider, stage.options()) as console:
                person = Person(console.address)
                person.sign_in("ada")
                until(lambda: "error" not in person.json(where).json()["live"], "her right")
                assert person.json(where).json()["live"]["resourceVersion"].isdigit()
        finally:
            for kind in ("clusterroles", "clusterrolebindings"):
                query = f"?labelSelector=stage%3D{stage.name}"
                stage.api.request("DELETE", f"{RBAC}/{kind}{query}")


def test_an_object_is_reviewed_as_it_is_now_by_the_policies_in_force(stage: Stage):
    kind = f"Live{stage.kind}"
    text = REQUIRED_LABELS.replace("requiredlabel", kind.lower()).replace("RequiredLabel", kind)
    template = retry(lambda: stage.api.request("POST", TEMPLATES, yaml.safe_load(text)))
    stage.api.request("POST", CRDS, constraint_crd(kind))
    made = {
        "apiVersion": "constraints.gatekeeper.sh/v1beta1",
        "kind": kind,
        "metadata": {"name": "live"},
        "spec": {"parameters": {"label": "owner"}},
    }
    path = f"/apis/constraints.gatekeeper.sh/v1beta1/{kind.lower()}"
    retry(lambda: stage.api.request("POST", path, made))
    settings = f"/api/v1/namespaces/{stage.name}/configmaps"
    stage.api.request("POST", settings, {"metadata": {"name": "settings"}})
    where = f"/resource?apiVersion=v1&kind=ConfigMap&namespace={stage.name}&name=settings"

    def messages(console: RunningConsole) -> list[str]:
        live = console.json(where)["live"]
        return [row["message"] for one in live.get("reviews", ()) for row in one["violations"]]

    try:
        with over(stage) as console:
            console.ready()
            until(lambda: messages(console) == ["label <owner> is missing"], "what is wrong now")
            page = console.get(where).body
            assert b"label &lt;owner&gt; is missing" in page
            labelled = {"metadata": {"labels": {"owner": "me"}}}
            stage.api.request(
                "PATCH",
                f"{settings}/settings",
                labelled,
                content_type="application/merge-patch+json",
            )
            [now] = console.json(where)["live"]["reviews"]
            assert now["violations"] == []
            # The stage's own template has no target: what cannot be decided is told, too.
            assert all(stage.kind in description for description in now["notDecided"])
            assert b"not decided" in console.get(where).body
            stage.api.request("DELETE", f"{settings}/settings")
            assert console.json(where)["live"] == {"error": "the object does not exist now"}
            for name in ("..", ".", "a/b", "%2e%2e"):
                odd = where.replace("name=settings", f"name={quote(name)}")
                assert "not a valid name of an object" in console.json(odd)["live"]["error"]
    finally:
        stage.api.request("DELETE", f"{TEMPLATES}/{template['metadata']['name']}")
        stage.api.request("DELETE", f"{CRDS}/{kind.lower()}.constraints.gatekeeper.sh")
