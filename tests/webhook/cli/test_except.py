"""``waddle except``: narrow exceptions for what reports, records and denials tell of."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.policies import constraint, template
from tests.webhook.cli.in_process import waddle
from webhook.api.gvk import GroupVersionKind
from webhook.exceptions.reading import read_exception
from webhook.reports.finding import Finding, ReportSubject
from webhook.reports.report import report
from webhook.reports.report_api import APIS

GOLDEN = Path(__file__).parents[3] / "tests" / "golden" / "decisions" / "client.ndjson"
PRIVILEGED = """package p
violation[{"msg": msg}] {
  c := input.review.object.spec.containers[_]
  c.securityContext.privileged
  msg := sprintf("%v is privileged", [c.name])
}
"""
DENIAL = """Error from server (Forbidden): error when creating "x.yaml": admission webhook \
"validation.gatekeeper.sh" denied the request: [none] agent is privileged
[none] web is privileged
"""


def written(*arguments: Any, text: str = "") -> list[dict[str, Any]]:
    """Returns the written exceptions; asserts that all of them can be read."""
    stdin = io.TextIOWrapper(io.BytesIO(text.encode()))
    run = waddle("except", *arguments, "--reason", "moving", stdin=stdin)
    assert run.returncode == 0, run.stderr
    documents: list[dict[str, Any]] = list(yaml.safe_load_all(run.stdout))
    for one in documents:
        read_exception(one)
    return documents


def test_a_denial_is_excused_and_no_more(tmp_path: Path) -> None:
    opened = {"annotations": {"waddle.dev/exceptions": "all"}}
    policies = tmp_path / "policies.yaml"
    policies.write_text(
        yaml.safe_dump_all(
            [template("Privileged", PRIVILEGED), constraint("Privileged", "none", metadata=opened)]
        )
    )
    arguments = ("-", "--object", "Pod/web", "-n", "shop", "-f", policies)
    (made,) = written(*arguments, text=DENIAL)
    assert made["metadata"]["namespace"] == "shop"
    assert made["spec"]["match"] == {
        "kinds": [{"apiGroups": [""], "kinds": ["Pod"]}],
        "name": "web",
    }
    messages = [one["message"] for one in made["spec"]["violations"]]
    assert messages == ["agent is privileged", "web is privileged"]

    def pod(name: str, *containers: str) -> dict[str, Any]:
        listed = [{"name": one, "securityContext": {"privileged": True}} for one in containers]
        metadata = {"name": name, "namespace": "shop"}
        return {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": metadata,
            "spec": {"containers": listed},
        }

    objects = tmp_path / "objects.yaml"
    objects.write_text(
        yaml.safe_dump_all([made, pod("web", "agent", "web", "other"), pod("db", "agent")])
    )
    run = waddle("test", "-f", policies, "-f", objects, "-o", "text")
    assert set(run.stdout.splitlines()) == {
        'v1/Pod shop/web: ["none"] Message: "other is privileged"',
        'v1/Pod shop/db: ["none"] Message: "agent is privileged"',
    }


def test_a_denial_with_messages_of_several_lines_is_excused(tmp_path: Path) -> None:
    """The exception had only the first line of a message, and excused nothing."""
    policies = tmp_path / "policies.yaml"
    policies.write_text(yaml.safe_dump(constraint("Privileged", "none")))
    arguments = ("-", "--object", "Pod/web", "-n", "shop", "-f", policies)
    text = "[none] first\n  second [of two]\n[none] third\n… and 2 more\n"
    for more in ("", f"\nWarning: [none] fourth\n{DENIAL}"):
        (written_exception,) = written(*arguments, text=text + more)
        messages = [item["message"] for item in written_exception["spec"]["violations"]]
        assert messages[:2] == ["first\n  second [of two]", "third"]
        assert messages[2:] == (
            ["fourth", "agent is privileged", "web is privileged"] if more else []
        )


def test_a_denial_by_other_constraints_too_is_excused_for_the_chosen(tmp_path: Path) -> None:
    """The files of all constraints of the denial were asked for."""
    policies = tmp_path / "policies.yaml"
    policies.write_text(yaml.safe_dump(constraint("Privileged", "none")))
    arguments = ("--object", "Pod/web", "-n", "shop", "-f", policies, "--constraint", "none")
    (written_exception,) = written("-", *arguments, text=f"{DENIAL}[other] no owner\n")
    assert written_exception["spec"]["constraints"] == [{"kind": "Privileged", "name": "none"}]


@pytest.mark.parametrize("message", ["x" * 5000, f"{'x' * 4095}…"])
def test_a_message_that_is_too_long_is_excused_by_its_beginning(message: str) -> None:
    """The API server refused such an exception, and a denial's cut message excused nothing."""
    subject = ReportSubject(GroupVersionKind("", "v1", "Pod"), "shop", "web", "u")
    listed = report(subject, [Finding("Labels", "owner", "fail", message)], APIS["wgpolicyk8s"], 0)
    (written_exception,) = written("-", text=json.dumps(listed))
    assert written_exception["spec"]["violations"] == [{"message": f"{'x' * 4095}*"}]


def test_a_record_is_excused() -> None:
    (made,) = written(GOLDEN)
    assert made["spec"]["constraints"] == [{"kind": "K8sRequiredLabels", "name": "must-have-owner"}]
    assert made["spec"]["match"]["name"] == "web-1"


def test_a_record_with_cut_messages_is_excused_by_their_beginnings() -> None:
    named = {"kind": "Labels", "name": "owner"}
    record = {
        "eventType": "decision",
        "resourceKind": "Pod",
        "resourceName": "web",
        "results": [{"constraint": named, "message": "x" * 256}],
        "truncated": ["results.details", "results.message", "results"],
    }
    (written_exception,) = written("-", text=json.dumps(record))
    assert written_exception["spec"]["violations"] == [{"message": f"{'x' * 256}*"}]


def test_what_a_report_says_is_excused_unless_it_is_already() -> None:
    subject = ReportSubject(GroupVersionKind("apps", "v1", "Deployment"), "shop", "web", "u")
    found = [
        Finding("Privileged", "none", "fail", "[Implied by e] agent is privileged"),
        Finding("Privileged", "other", "warn", "x"),
        Finding("Labels", "owner", "pass"),
        Finding("Labels", "tier", "skip", "no tier", exception="PolicyException shop/e"),
    ]
    listed = {"kind": "List", "items": [report(subject, found, APIS["wgpolicyk8s"], 0)]}
    made = written("-", text=json.dumps(listed))
    named = {tuple(one["spec"]["constraints"][0].values()) for one in made}
    assert named == {("Privileged", "none"), ("Privileged", "other")}
    assert made[0]["spec"]["violations"] == [{"message": "agent is privileged"}]
    (wide,) = written("-", "--cluster", "--constraint", "other", text=json.dumps(listed))
    assert wide["kind"] == "ClusterPolicyException"
    assert wide["spec"]["match"]["namespaces"] == ["shop"]


@pytest.mark.parametrize(
    ("text", "arguments", "says"),
    [
        ("hello", (), "not a policy report, a decision record or a denial"),
        ("[none] no", (), "does not name its object"),
        ("[none] no", ("--object", "Pod/a"), "the kind of the constraint none"),
        ("[none] no", ("--for", "soon"), "--for is not a duration"),
        ("[none] no", ("--expires", "soon"), "--expires is not a time"),
    ],
)
def test_what_cannot_be_read_is_reported(text: str, arguments: tuple[str, ...], says: str) -> None:
    stdin = io.TextIOWrapper(io.BytesIO(text.encode()))
    run = waddle("except", "-", "--reason", "r", *arguments, stdin=stdin)
    assert run.returncode not in (0, 1)
    assert says in run.stderr


def test_an_object_whose_name_has_dots_is_excused_by_its_whole_name() -> None:
    """The written exception could not be read before: a constraint's match takes no dots."""
    name = "widgets.example.com"
    subject = ReportSubject(
        GroupVersionKind("apiextensions.k8s.io", "v1", "CustomResourceDefinition"), "", name, "u"
    )
    listed = report(
        subject, [Finding("Labels", "owner", "fail", "no owner")], APIS["wgpolicyk8s"], 0
    )
    (made,) = written("-", text=json.dumps(listed))
    assert made["spec"]["match"]["name"] == name
    assert read_exception(made).object_name == name


def test_a_record_that_names_no_object_is_said_to_be_none() -> None:
    """An exception was written for objects of the kind `''`, which matches nothing."""
    record = {"eventType": "decision", "results": [{"constraint": {"kind": "K", "name": "c"}}]}
    stdin = io.TextIOWrapper(io.BytesIO(json.dumps(record).encode()))
    run = waddle("except", "-", "--reason", "moving", stdin=stdin)
    assert run.returncode == 2
    assert "does not have the object's kind" in run.stderr
    assert not run.stdout
