"""`waddle migrate gatekeeper` says of each object whether it runs as it is."""

import base64
import json
import re

import pytest
import yaml

from tests.conformance.gatekeeper import waddle
from tests.programs import ROOT
from tests.provider_process import make_authority
from webhook.cli.migrate.rules import NUMBERS, PAGES, Judged, Note
from webhook.cli.migrate.run import as_table

DENIED = """
apiVersion: templates.gatekeeper.sh/v1
kind: ConstraintTemplate
metadata: {name: denied}
spec:
  crd:
    spec:
      names: {kind: Denied}
      validation:
        openAPIV3Schema:
          type: object
          properties: {word: {type: string}, n: {type: integer}, max: {type: integer}}
  targets:
    - target: admission.k8s.gatekeeper.sh
      rego: |
        package denied
        violation[{"msg": "no"}] { input.review.object.data.deny == input.parameters.word }
"""
FETCHING = (
    DENIED.replace("denied", "fetching")
    .replace("Denied", "Fetching")
    .replace("input.review.object.data.deny ==", "nobody_s_function(1) ==")
)
SYNCED = (
    DENIED.replace("denied", "synced")
    .replace("Denied", "Synced")
    .replace(
        "{name: synced}",
        "{name: synced, annotations: {metadata.gatekeeper.sh/requires-sync-data: '[]'}}",
    )
)

CA_BUNDLE = base64.b64encode(make_authority().certificate).decode()


def an_object(kind: str, name: str, api: str, **fields: object) -> str:
    return yaml.safe_dump({"apiVersion": api, "kind": kind, "metadata": {"name": name}, **fields})


CONSTRAINTS = "constraints.gatekeeper.sh/v1beta1"
ASSIGN = {"location": "spec.x", "applyTo": [{"groups": [""], "kinds": ["Pod"], "versions": ["v1"]}]}
GATEKEEPER = {
    "image": "openpolicyagent/gatekeeper:v3.23.1",
    "name": "manager",
    "args": [
        *("--operation=webhook", "--log-denies", "--zork=1", "--enable-external-data=true"),
        *("--audit-connection=audit-connection", "--metrics-backend=stackdriver"),
    ],
}


def deployment(container: object) -> str:
    pod = {"spec": {"containers": [container]}}
    return an_object("Deployment", "gatekeeper", "apps/v1", spec={"template": pod})


def judged(tmp_path, *documents):
    (tmp_path / "all.yaml").write_text("\n---\n".join(documents))
    run = waddle("migrate", "gatekeeper", "-f", tmp_path, "-o", "json")
    return run, {item["name"]: item for item in json.loads(run.stdout or "[]")}


def test_each_object_is_reported_with_what_differs_and_what_is_missing(tmp_path):
    run, found = judged(
        tmp_path,
        DENIED,
        FETCHING,
        SYNCED,
        an_object("Denied", "fine", CONSTRAINTS, spec={"parameters": {"word": "x", "n": 5}}),
        an_object("Denied", "large", CONSTRAINTS, spec={"parameters": {"max": 3_000_000}}),
        an_object("Nowhere", "lost", CONSTRAINTS),
        an_object("Provider", "p", "externaldata.gatekeeper.sh/v1beta1", spec={}),
        an_object(
            "Provider",
            "q",
            "externaldata.gatekeeper.sh/v1beta1",
            spec={"url": "https://q", "caBundle": CA_BUNDLE},
        ),
        an_object("ConfigMap", "foreign", "v1"),
    )
    assert run.returncode == 1
    assert {name: item["grade"] for name, item in found.items()} == {
        "denied": "same",
        "fetching": "missing",
        "synced": "differs",
        "fine": "same",
        "large": "differs",
        "lost": "missing",
        "p": "missing",
        "q": "differs",
    }
    assert "undefined function nobody_s_function" in found["fetching"]["notes"][0]["text"]
    assert found["p"]["notes"][0]["text"] == "invalid provider url. value: "
    assert found["q"]["notes"][0]["row"] == "Providers and `external_data`"
    assert "3000000" in found["large"]["notes"][0]["text"]
    assert found["denied"]["place"].endswith("all.yaml:2")


@pytest.mark.parametrize(
    ("kind", "version", "spec", "grade", "row"),
    [
        (
            "Assign",
            "mutations.gatekeeper.sh/v1",
            ASSIGN | {"parameters": {"assign": {"value": "v"}}},
            "differs",
            "the mutating webhook",
        ),
        (
            "Assign",
            "mutations.gatekeeper.sh/v1",
            ASSIGN | {"parameters": {"assign": {"value": 3}}},
            "differs",
            "mutators: integers",
        ),
        (
            "Assign",
            "mutations.gatekeeper.sh/v1",
            ASSIGN | {"parameters": {"assign": {"externalData": {"provider": "p"}}}},
            "differs",
            "the mutating webhook",
        ),
        (
            "SyncSet",
            "syncset.gatekeeper.sh/v1alpha1",
            {"gvks": [{"group": "", "version": "v1", "kind": "Secret"}]},
            "differs",
            "rights of the manifests",
        ),
        (
            "SyncSet",
            "syncset.gatekeeper.sh/v1alpha1",
            {"gvks": [{"group": "", "version": "v1", "kind": "Pod"}]},
            "same",
            None,
        ),
        (
            "Connection",
            "connection.gatekeeper.sh/v1alpha1",
            {"driver": "disk"},
            "missing",
            "export of audit and admission violations",
        ),
    ],
)
def test_what_is_beside_policies_is_reported_too(tmp_path, kind, version, spec, grade, row):
    _, found = judged(tmp_path, an_object(kind, "it", version, spec=spec))
    assert found["it"]["grade"] == grade
    assert row is None or row in [note["row"] for note in found["it"]["notes"]]


def test_each_flag_of_gatekeeper_s_deployment_is_read(tmp_path):
    run, found = judged(tmp_path, deployment(GATEKEEPER), deployment({"image": "nginx"}))
    assert run.returncode == 1
    texts = " ".join(note["text"] for note in found["gatekeeper"]["notes"])
    assert "--zork" in texts
    assert "--metrics-backend" in texts
    assert "--audit-connection has no effect" in texts
    assert "--log-denies" not in texts
    assert "--operation" not in texts


def test_what_the_webhook_of_gatekeeper_says_is_reported_as_values_of_the_chart(tmp_path):
    rule = {"operations": ["CREATE", "UPDATE", "DELETE"], "resources": ["*"]}
    webhook = {"name": "validation.gatekeeper.sh", "failurePolicy": "Fail", "timeoutSeconds": 10}
    name = "gatekeeper-validating-webhook-configuration"
    kind, version = "ValidatingWebhookConfiguration", "admissionregistration.k8s.io/v1"
    _, found = judged(
        tmp_path, an_object(kind, name, version, webhooks=[webhook | {"rules": [rule]}])
    )
    texts = [note["text"] for note in found[name]["notes"]]
    assert "set webhook.failurePolicy=Fail in the chart" in texts
    assert "set webhook.timeoutSeconds=10 in the chart" in texts
    assert "set webhook.operations={CREATE,UPDATE,DELETE} in the chart" in texts


def test_the_table_has_a_line_for_each_object_and_counts_them(tmp_path):
    (tmp_path / "all.yaml").write_text(DENIED)
    run = waddle("migrate", "gatekeeper", "-f", tmp_path)
    assert run.returncode == 0
    assert re.match(r"as it is  ConstraintTemplate/denied \(.*all\.yaml:2\)\n", run.stdout)
    assert run.stdout.endswith(
        "1 object: 1 run unchanged, 0 run with differences, 0 have no equivalent\n"
    )


def test_where_nothing_of_gatekeeper_is_there_is_no_answer(tmp_path):
    (tmp_path / "all.yaml").write_text(an_object("ConfigMap", "foreign", "v1"))
    assert waddle("migrate", "gatekeeper", "-f", tmp_path).returncode == 2
    assert waddle("migrate", "gatekeeper", "-f", tmp_path / "none").returncode == 2


def test_a_file_that_cannot_be_read_is_named_and_the_rest_judged(tmp_path):
    (tmp_path / "all.yaml").write_text(DENIED)
    (tmp_path / "chart.yaml").write_text("kind: Pod\nmetadata:\n  name: {{ .Values.name }}\n")
    run = waddle("migrate", "gatekeeper", "-f", tmp_path)
    assert run.returncode == 2
    assert "chart.yaml" in run.stderr
    assert "ConstraintTemplate/denied" in run.stdout


def test_every_row_that_is_reported_is_a_row_of_the_page():
    for row, page in PAGES.items():
        lines = (ROOT / page).read_text().splitlines()
        rows = [line.split(" | ")[0].removeprefix("| ") for line in lines if line.startswith("| ")]
        assert [item for item in rows if item.startswith(row)], row


def test_the_table_names_the_page_of_a_row():
    note = Note("differs", "4000000 in a message", NUMBERS)
    (line,) = [
        line
        for line in as_table([Judged("Constraint", "it", "", (note,))]).splitlines()
        if note.text in line
    ]
    assert line.endswith(f"[docs/compatibility/reviews.md: {NUMBERS}]")


def test_policies_of_our_own_library_run_as_they_are():
    run = waddle("migrate", "gatekeeper", "-f", ROOT / "policies", "-o", "json")
    assert run.returncode == 0, run.stdout
    assert {item["grade"] for item in json.loads(run.stdout)} <= {"same", "differs"}
