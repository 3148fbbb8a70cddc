"""Validation before policies are applied: at admission, by request and in a pipeline."""

import datetime as dt
import http.client
import json
import ssl
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.behaviour.authority import Authority
from tests.behaviour.serving import (
    REQUIRED_LABELS,
    Answer,
    Server,
    await_true,
    constraint,
    pod,
    review,
    write_policies,
)
from tests.webhook.cli.in_process import waddle
from webhook.certificates.pairs import self_signed

PATH = "/v1/validate-policy"
TEMPLATE = yaml.safe_load(REQUIRED_LABELS)
ENDLESS = """
package requiredlabel
violation[{"msg": "m"}] {
  r := numbers.range(1, 3000)
  count([1 | r[i]; r[j]; r[k]; i + j + k == -1]) > 0
}
"""
SYNCED = """
apiVersion: v1
kind: ConfigMap
metadata: {name: settings, namespace: default}
"""


def endless() -> dict[str, Any]:
    """The template, never ending."""
    document: dict[str, Any] = yaml.safe_load(REQUIRED_LABELS)
    document["spec"]["targets"][0]["rego"] = ENDLESS
    return document


def named(label: str, name: str = "new") -> dict[str, Any]:
    """A constraint of the template, of any kind of object."""
    document: dict[str, Any] = yaml.safe_load(constraint(name, label))
    document["spec"].pop("match", None)
    return document


class Certified(Server):
    """A server whose clients show a certificate."""

    client: ssl.SSLContext

    def connect(self, context: ssl.SSLContext | None = None) -> http.client.HTTPSConnection:
        """Connects with a client certificate, as the API server does."""
        return super().connect(context or self.client)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server with a constraint in force, that validates policies for who shows a certificate."""
    folder = tmp_path_factory.mktemp("policies")
    policies = write_policies(folder / "p", REQUIRED_LABELS, constraint("x", "owner"), SYNCED)
    pair, authority = self_signed(["localhost"], dt.datetime.now(tz=dt.UTC)), Authority()
    (folder / "tls.crt").write_bytes(pair.certificate)
    (folder / "tls.key").write_bytes(pair.key)
    (folder / "ca.crt").write_bytes(authority.pem)
    flags = (f"--cert-dir={folder}", "--client-ca-name=ca.crt", "--enable-validate-policy")
    with Certified(policies, "--evaluation-budget=100ms", *flags) as started:
        started.client = authority.client("kube-apiserver", folder)
        yield started.ready()


def test_policies_are_not_validated_unless_that_is_enabled(tmp_path: Path) -> None:
    """Any client of the port could find out synced objects, letter by letter."""
    policies = write_policies(tmp_path, REQUIRED_LABELS, constraint("x", "owner"))
    with Server(policies) as plain:
        answer = plain.ready().post({"items": [named("team")]}, PATH)
        assert answer.status == 404
        message = answer.json()["message"]
        assert message.endswith(
            "/v1/admitlabel; /v1/validate-policy needs --enable-validate-policy"
        )


def test_templates_are_admitted_while_a_large_source_is_validated(server: Server) -> None:
    """A request of 1.35 MB occupied the only thread for 20 s, and every template timed out."""
    rules = "\n".join(
        f'violation[{{"msg": "m"}}] {{ x{n} := {n}; x{n} > 1 }}' for n in range(30_000)
    )
    large = yaml.safe_load(REQUIRED_LABELS)
    large["metadata"]["name"] = "large"
    large["spec"]["crd"]["spec"]["names"]["kind"] = "Large"
    large["spec"]["targets"][0]["rego"] = f"package large\n{rules}"
    connection = server.connect()
    try:
        connection.request("POST", PATH, json.dumps(large))
        template = yaml.safe_load(REQUIRED_LABELS.replace("label <%v>", "the label <%v>"))
        assert server.admit(template)["allowed"] is True
        broken = yaml.safe_load(REQUIRED_LABELS.replace("msg := sprintf", "msg := sprintff"))
        assert server.admit(broken)["allowed"] is False
        assert connection.getresponse().status in (200, 504)  # it ends with its time
    finally:
        connection.close()


def test_requests_are_answered_while_much_yaml_is_read(server: Server) -> None:
    """The admission thread read it: two MiB took seconds, again with each call."""
    connection = server.connect()
    answered = 0
    try:
        with ThreadPoolExecutor(1) as pool:
            connection.request("POST", PATH, b"---\na\n" * 80_000)
            validated = pool.submit(connection.getresponse)
            while not validated.done() and answered < 20:
                assert server.admit(pod(owner="me"))["allowed"] is True
                answered += 1
            assert validated.result().status in (400, 504)
    finally:
        connection.close()
    assert answered == 20


def test_a_policy_that_does_not_end_is_not_admitted(server: Server) -> None:
    """A template is tried with the constraints in force, a constraint with its template."""
    verdict = server.admit(endless())
    assert verdict["allowed"] is False
    assert "RequiredLabel/x: does not end within its budget" in verdict["status"]["message"]
    assert server.admit(named("owner"))["allowed"] is True
    bad = named("owner")
    bad["metadata"]["annotations"] = {"waddle.dev/rollout": "deny"}
    assert "dryrun or warn" in server.admit(bad)["status"]["message"]


def validated(server: Server, policies: bytes | dict[str, Any]) -> Answer:
    """Returns the answer of validation; repeats the request after 429 and 504."""
    answers = [server.post(policies, PATH)]

    def is_answered() -> bool:
        if answers[-1].status in (429, 504):
            answers.append(server.post(policies, PATH))
        return answers[-1].status not in (429, 504)

    await_true(is_answered)
    return answers[-1]


def test_policies_are_validated_by_request_and_nothing_is_kept(server: Server) -> None:
    """Problems by object; and how many violations would come, of what is synced."""
    answer = validated(server, {"items": [named("team"), named("cost", "other")]})
    assert answer.status == 200
    found = answer.json()
    assert found["valid"] is True
    assert found["problems"] == []
    first = found["effect"]["constraints"][0]
    assert (first["name"], first["violationsBefore"], first["added"]) == ("new", 0, 1)
    assert found["effect"]["complete"] is True
    # A client of the port may lack the right to read the objects.
    assert "settings" not in answer.body.decode()
    assert server.admit(pod(owner="me"))["allowed"] is True

    broken = yaml.safe_load(REQUIRED_LABELS.replace("msg := sprintf", "msg := sprintff"))
    found = validated(server, broken).json()
    assert found["valid"] is False
    assert "template:4: rego_type_error" in found["problems"][0]["message"]
    text = f"{REQUIRED_LABELS}\n---\n{constraint('plain', 'owner')}".encode()
    assert validated(server, text).json()["valid"] is True


@pytest.mark.parametrize(
    ("body", "method", "status"),
    [
        (b"{", "POST", 400),
        (b"[]", "POST", 400),
        (b'{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x"}}', "POST", 400),
        (
            b'{"apiVersion": "templates.gatekeeper.sh/v1", "kind": "ConstraintTemplate"}',
            "POST",
            400,
        ),
        (b"", "PUT", 405),
    ],
)
def test_what_is_no_policy_is_refused(
    server: Server, body: bytes, method: str, status: int
) -> None:
    """With what was expected."""
    answer = server.post(body, PATH, method=method)
    assert answer.status == status
    assert answer.json()["message"]


def test_reviews_are_answered_while_policies_are_validated(server: Server) -> None:
    """Validation has a thread of its own."""
    connection = server.connect()
    try:
        connection.request("POST", PATH, yaml.safe_dump(endless()))
        for _ in range(5):
            assert server.post(review(pod(owner="me"))).verdict["allowed"] is True
        assert connection.getresponse().status in (200, 504)  # it ends with its time
    finally:
        connection.close()
    assert validated(server, yaml.safe_dump(endless()).encode()).status == 200


def test_check_says_in_a_pipeline_what_admission_would(tmp_path: Path) -> None:
    """By its exit code; and the effect on the manifests beside the policies."""
    good = tmp_path / "good.yaml"
    good.write_text(f"{REQUIRED_LABELS}\n---\n{yaml.safe_dump(named('owner'))}\n---{SYNCED}")
    found = waddle("check", "-f", good)
    assert found.returncode == 0
    assert "2 policies can be used" in found.stdout
    assert "RequiredLabel/new: 0 violations now, 1 then (+1 -0)" in found.stdout
    assert "ConfigMap default/settings: label <owner> is missing" in found.stdout
    bad = tmp_path / "bad.yaml"
    bad.write_text(yaml.safe_dump_all([endless(), named("owner")]))
    found = waddle("check", "-f", bad)
    assert found.returncode == 1
    assert "bad.yaml:21: RequiredLabel/new: does not end within its budget" in found.stdout
    (tmp_path / "none.yaml").write_text(SYNCED)
    assert waddle("check", "-f", tmp_path / "none.yaml").returncode == 2
