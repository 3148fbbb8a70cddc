"""``waddle except``: narrow exceptions for what reports, records and denials tell of."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.behaviour.serving import review
from tests.policies import constraint, template
from tests.webhook.cli.in_process import Run, waddle
from webhook import Policies
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


def excepted(*arguments: Any, text: str = "") -> Run:
    """Runs the command with a text as its standard input."""
    stdin = io.TextIOWrapper(io.BytesIO(text.encode()))
    return waddle("except", *arguments, stdin=stdin)


def written(*arguments: Any, text: str = "") -> list[dict[str, Any]]:
    """Returns the written exceptions; asserts that all of them can be read."""
    run = excepted(*arguments, "--reason", "moving", text=text)
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


REFUSAL = 'admission webhook "validation.gatekeeper.sh" denied the request: '


@pytest.mark.parametrize(
    "text",
    [
        f"pod/a created\nError from server (Forbidden): {REFUSAL}[none] one\nservice/b unchanged\n",
        f"Error from server (Forbidden): {REFUSAL}[none] one\r\npod/a serverside-applied\r\n",
        f'error when applying patch:\n{{"data":"x [none] y"}}\nto:\nName: "web"\nfor: "a": {REFUSAL}[none] one\n',
        (
            f"12s   Warning   FailedCreate   replicaset/web-1   Error creating: {REFUSAL}[none] one\n"
            "13s   Normal   ScalingReplicaSet   deployment/web   Scaled up replica set web-1 to 1\n"
        ),
        f"items:\n- kind: Event\n  message: 'Error creating: {REFUSAL}[none]\n    one'\n",
        json.dumps({"kind": "Status", "message": f"{REFUSAL}[none] one"}),
        f"one or more objects failed to apply, reason: {REFUSAL}[none] one. Retrying attempt #1 at 10:00AM.",
        f"objects failed, reason: {REFUSAL}[none] one,{REFUSAL}[none] one (retried 5 times).",
        f"Pod/shop/web dry-run failed (Forbidden): {REFUSAL}[none] one\n",
        f"Error: 2 errors occurred:\n\t* {REFUSAL}[none] one\n\t* {REFUSAL}[none] one\n\n\nLast Helm logs:\n\nx\n",
    ],
)
def test_a_denial_is_read_as_programs_show_it(tmp_path: Path, text: str) -> None:
    """Words of the programs were taken for a part of the message, so nothing was excused."""
    policies = tmp_path / "policies.yaml"
    policies.write_text(yaml.safe_dump(constraint("Privileged", "none")))
    (item,) = written("-", "--object", "Pod/web", "-n", "shop", "-f", policies, text=text)
    assert item["spec"]["violations"] == [{"message": "one"}]


CREATED = f'Error from server (Forbidden): error when creating "pods.yaml": {REFUSAL}'


@pytest.mark.parametrize(
    "text",
    [
        f"{CREATED}[none] one\n{CREATED}[none] two\n[none] three\n",
        f"Error: 2 errors occurred:\n\t* {REFUSAL}[none] one\n\t* {REFUSAL}[none] two\n\n",
        f"objects failed, reason: {REFUSAL}[none] one,{REFUSAL}[none] two (retried 5 times).",
    ],
)
def test_refusals_of_several_objects_are_not_taken_for_one_object_s(
    tmp_path: Path, text: str
) -> None:
    """The exception of one Pod had the messages of all, and the other Pods had none."""
    policies = tmp_path / "policies.yaml"
    policies.write_text(yaml.safe_dump(constraint("Privileged", "none")))
    arguments = ("--object", "Pod/web", "-n", "shop", "-f", policies, "--reason", "r")
    run = excepted("-", *arguments, text=text)
    assert run.returncode == 2
    assert "it has refusals of several objects, 2 at least" in run.stderr
    assert not run.stdout


def test_what_a_controller_tried_again_is_of_one_object(tmp_path: Path) -> None:
    policies = tmp_path / "policies.yaml"
    policies.write_text(yaml.safe_dump(constraint("Privileged", "none")))
    arguments = ("--object", "Pod/web-*", "-n", "shop", "-f", policies)
    row = f"12s   Warning   FailedCreate   replicaset/web-1   Error creating: {REFUSAL}[none] "
    (item,) = written(
        "-", *arguments, text=f"{row}web-1-a is privileged\n{row}web-1-b is privileged\n"
    )
    assert len(item["spec"]["violations"]) == 2


def test_a_denial_by_one_of_two_constraints_of_a_name_is_not_guessed(tmp_path: Path) -> None:
    """The exception was from the last of them, and excused nothing."""
    policies = tmp_path / "policies.yaml"
    policies.write_text(yaml.safe_dump_all([constraint(kind, "none") for kind in ("A", "B")]))
    arguments = ("--object", "Pod/web", "-f", policies, "--reason", "r")
    run = excepted("-", *arguments, text=DENIAL)
    assert run.returncode == 2
    assert "A and B have a constraint none: give the file of only one" in run.stderr


def test_a_denial_of_a_namespaced_object_needs_its_namespace(tmp_path: Path) -> None:
    """The exception was of the cluster, for Pods of that name in all namespaces."""
    policies = tmp_path / "policies.yaml"
    policies.write_text(yaml.safe_dump(constraint("Privileged", "none")))
    arguments = ("-f", policies, "--reason", "r")
    run = excepted("-", "--object", "Pod/web", *arguments, text=DENIAL)
    assert (run.returncode, run.stdout) == (2, "")
    assert "a Pod is in a namespace: add -n NAMESPACE" in run.stderr
    for named in ("Node/web", "Custom.example.com/web"):
        assert excepted("-", "--object", named, *arguments, text=DENIAL).returncode == 0


@pytest.mark.parametrize(
    ("annotation", "option", "line"),
    [
        ("cluster", (), "Privileged none allows no exceptions of namespaces: add --cluster"),
        ("cluster", ("--cluster",), ""),
        ("none", ("--cluster",), "Privileged none allows no exceptions: its annotation"),
        ("all", (), ""),
    ],
)
def test_an_exception_that_its_constraint_does_not_allow_is_named(
    tmp_path: Path, annotation: str, option: tuple[str, ...], line: str
) -> None:
    """Without the annotation, which is the usual case, it was refused when it was applied."""
    policies = tmp_path / "policies.yaml"
    metadata = {"annotations": {"waddle.dev/exceptions": annotation}}
    policies.write_text(yaml.safe_dump(constraint("Privileged", "none", metadata=metadata)))
    arguments = ("--object", "Pod/web", "-n", "shop", "-f", policies, "--reason", "r", *option)
    run = excepted("-", *arguments, text=DENIAL)
    assert run.returncode == 0
    assert run.stderr.startswith(line) if line else not run.stderr


def test_what_the_api_server_would_refuse_is_not_written() -> None:
    """It was refused only when it was applied."""
    text = GOLDEN.read_text()
    run = excepted("-", "--reason", "r" * 2000, text=text)
    assert (run.returncode, run.stdout) == (2, "")
    assert "spec.reason" in run.stderr


def test_violations_of_other_policies_get_no_exception() -> None:
    """It was written for a constraint of the kind ValidatingPolicy, and excused nothing."""
    record = {
        "eventType": "decision",
        "resourceKind": "Pod",
        "resourceName": "web",
        "results": [{"constraint": {"kind": "ValidatingPolicy", "name": "c"}, "message": "no"}],
    }
    run = excepted("-", "--reason", "r", text=json.dumps(record))
    assert (run.returncode, run.stdout) == (1, "")
    assert "ValidatingPolicy c gets none" in run.stderr
    assert "Policies of Kyverno have their own" in run.stderr


def test_an_object_that_is_probably_another_is_warned_about(tmp_path: Path) -> None:
    """The exception of a kind without its group excused nothing, and nothing was said."""
    policies = tmp_path / "policies.yaml"
    policies.write_text(yaml.safe_dump(constraint("Privileged", "none")))
    arguments = ("--object", "Deployment/web", "-n", "shop", "-f", policies, "--reason", "r")
    run = excepted("-", *arguments, text=DENIAL)
    assert run.returncode == 0
    assert 'is Deployment of the group "apps" meant?' in run.stderr


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


def test_what_a_record_says_is_excused_unless_it_is_already() -> None:
    """A violation that an exception turned into a warning got another, which skips it."""
    of = {"constraint": {"kind": "K", "name": "c"}}
    record = {
        "eventType": "decision",
        "resourceKind": "Pod",
        "resourceName": "web",
        "results": [{**of, "message": "warned"}, {**of, "message": "denied"}],
        "excused": [{**of, "message": "warned", "exception": {"effect": "warn"}}],
    }
    (item,) = written("-", text=json.dumps(record))
    assert item["spec"]["violations"] == [{"message": "denied"}]


def test_records_may_have_any_character() -> None:
    """Records with a line separator of Unicode within a message were not read."""
    named = {"kind": "Labels", "name": "owner"}
    record = {
        "eventType": "decision",
        "resourceKind": "Pod",
        "resourceName": "web",
        "results": [{"constraint": named, "message": "one\u2028two\x85three"}],
    }
    line = json.dumps(record, ensure_ascii=False)
    (item,) = written("-", text=f"{line}\n{line}\n")
    assert item["spec"]["violations"][0] == {"message": "one\u2028two\x85three"}


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
        ("[none] no", ("--expires", "2020-01-01T00:00:00Z"), "--expires is in the past"),
        ("[none] no", ("--reason", ""), "--reason is empty"),
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


def test_a_connection_is_excused_by_the_name_in_its_request() -> None:
    """PodExecOptions have no name, so an exception by name excused nothing."""
    opened = {"annotations": {"waddle.dev/exceptions": "all"}}
    always = template("Always", 'package p\nviolation[{"msg": "always"}] { true }')
    values = [always, constraint("Always", "c", metadata=opened)]
    options = {"apiVersion": "v1", "kind": "PodExecOptions", "command": ["sh"]}
    executed = review(options, operation="CONNECT", name="web", namespace="shop")
    record = {
        "eventType": "decision",
        "operation": "CONNECT",
        "resourceKind": "PodExecOptions",
        "resourceNamespace": "shop",
        "resourceName": "web",
        "results": [{"constraint": {"kind": "Always", "name": "c"}, "message": "always"}],
    }
    (excuses,) = written("-", text=json.dumps(record))
    policies = Policies.load(values=[*values, excuses])
    assert not policies.review(executed)
    executed["request"]["name"] = "db"
    assert policies.review(executed)


def test_violations_beyond_the_most_of_an_exception_have_another() -> None:
    """The hundred-and-first violation was left out, and nothing was said."""
    violations = [{"constraint": {"kind": "K", "name": "c"}, "message": f"{n}"} for n in range(101)]
    record = {
        "eventType": "decision",
        "resourceKind": "Pod",
        "resourceName": "web",
        "results": violations,
    }
    items = written("-", text=json.dumps(record))
    listed = [entry["message"] for item in items for entry in item["spec"]["violations"]]
    assert listed == [str(n) for n in range(101)]
    assert len({item["metadata"]["name"] for item in items}) == 2


def test_an_exception_for_an_object_without_a_name_is_warned_about() -> None:
    """It was for all Pods of the namespace, and nothing was said."""
    record = {
        "eventType": "decision",
        "resourceKind": "Pod",
        "results": [{"constraint": {"kind": "K", "name": "c"}, "message": "no"}],
    }
    run = excepted("-", "--reason", "r", text=json.dumps(record))
    assert run.returncode == 0
    assert "does not name the object, so the exception is for every object" in run.stderr


def test_a_record_that_names_no_object_is_said_to_be_none() -> None:
    """An exception was written for objects of the kind `''`, which matches nothing."""
    record = {"eventType": "decision", "results": [{"constraint": {"kind": "K", "name": "c"}}]}
    stdin = io.TextIOWrapper(io.BytesIO(json.dumps(record).encode()))
    run = waddle("except", "-", "--reason", "moving", stdin=stdin)
    assert run.returncode == 2
    assert "does not have the object's kind" in run.stderr
    assert not run.stdout
