"""Files change: decisions follow, and what is broken changes nothing but what is told."""

import json
import os
from pathlib import Path

from tests.behaviour.serving import (
    REQUIRED_LABELS,
    Server,
    await_true,
    constraint,
    pod,
    replace,
    review,
    thing,
    write_policies,
)

IN_CEL = """
apiVersion: templates.gatekeeper.sh/v1
kind: ConstraintTemplate
metadata: {name: incel}
spec:
  crd: {spec: {names: {kind: InCel}}}
  targets:
    - target: admission.k8s.gatekeeper.sh
      code:
        - engine: K8sNativeValidation
          source: {validations: [{expression: "has(object.metadata.labels.owner)"}]}
---
apiVersion: constraints.gatekeeper.sh/v1beta1
kind: InCel
metadata: {name: owned}
spec:
  match: {kinds: [{apiGroups: [""], kinds: [Pod]}]}
"""

FAILING_SERIES = 'waddle_reload_failing{subject="policies"}'


def message(server: Server) -> str:
    """The denial of a pod without labels."""
    found: str = server.admit(pod())["status"].get("message", "")
    return found


def test_a_changed_a_new_and_a_removed_file_take_effect(tmp_path: Path) -> None:
    policies = write_policies(tmp_path, REQUIRED_LABELS, constraint("needs-owner", "owner"))
    with Server(policies) as server:
        server.ready()
        assert message(server) == "[needs-owner] label <owner> is missing"
        replace(policies / "1.yaml", constraint("needs-owner", "team"))
        server.wait_for("policies in force", number=2)
        assert message(server) == "[needs-owner] label <team> is missing"
        (policies / "deeper").mkdir()
        (policies / "deeper" / "new.yaml").write_text(constraint("a-first", "cost"))
        await_true(lambda: "[a-first]" in message(server))
        (policies / "1.yaml").unlink()
        await_true(lambda: message(server) == "[a-first] label <cost> is missing")
        revision = server.metric("waddle_snapshot_revision")
        assert revision is not None
        event = server.wait_for("policies in force", revision=int(revision))
        assert event == [one for one in server.events if "revision" in one][-1]


def test_a_broken_file_leaves_the_last_good_revision_in_force(tmp_path: Path) -> None:
    policies = write_policies(tmp_path, REQUIRED_LABELS, constraint("needs-owner", "owner"))
    with Server(policies) as server:
        server.ready()
        replace(policies / "1.yaml", "{[ this is no YAML")
        event = server.wait_for("policy cannot be used; the earlier version stays in force")
        assert "1.yaml" in event["fault"]
        assert message(server) == "[needs-owner] label <owner> is missing"
        shown = server.get("health", "/readyz?verbose")
        assert shown.status == 200
        assert b"1.yaml" in shown.body
        assert server.metric(FAILING_SERIES) == 1
        replace(policies / "1.yaml", constraint("needs-owner", "team"))
        server.wait_for("all policies can be used again")
        assert message(server) == "[needs-owner] label <team> is missing"
        assert server.metric(FAILING_SERIES) == 0
        assert b"1.yaml" not in server.get("health", "/readyz?verbose").body


def test_of_a_template_that_never_was_in_force_nothing_is_said_to_stay(tmp_path: Path) -> None:
    policies = write_policies(tmp_path, REQUIRED_LABELS, constraint("needs-owner", "owner"))
    with Server(policies) as server:
        server.ready()
        broken = REQUIRED_LABELS.replace("sprintf", "no_such_function")
        never = broken.replace("requiredlabel", "never").replace("RequiredLabel", "Never")
        replace(policies / "never.yaml", never)
        server.wait_for("policy cannot be used")
        replace(policies / "garbled.yaml", "{[ this is no YAML")
        server.wait_for("policy cannot be used", number=2)
        events = [event for event in server.events if "policy cannot be used" in event["msg"]]
        assert {event["msg"] for event in events} == {"policy cannot be used"}
        assert message(server) == "[needs-owner] label <owner> is missing"


def test_a_template_that_asks_the_network_is_refused_and_not_in_force_without_effect(
    tmp_path: Path,
) -> None:
    """No server lends `http.send` a way out: it would find nothing and deny nobody."""
    policies = write_policies(tmp_path, REQUIRED_LABELS, constraint("needs-owner", "owner"))
    with Server(policies) as server:
        server.ready()
        rego = 'violation[{"msg": "x"}] { http.send({"method": "get", "url": "u"}).body }'
        asking = REQUIRED_LABELS.replace("requiredlabel", "asks").replace("RequiredLabel", "Asks")
        lines, _, _ = asking.partition("violation[")
        indent = lines.rpartition("\n")[2]
        replace(policies / "asks.yaml", f"{lines.removesuffix(indent)}{indent}{rego}\n")
        event = server.wait_for("policy cannot be used")
        assert "undefined function http.send" in event["fault"]


def test_a_template_that_does_not_compile_leaves_the_one_before_in_force(tmp_path: Path) -> None:
    policies = write_policies(tmp_path, REQUIRED_LABELS, constraint("needs-owner", "owner"))
    with Server(policies) as server:
        server.ready()
        replace(policies / "0.yaml", REQUIRED_LABELS.replace("sprintf", "no_such_function"))
        server.wait_for("policy cannot be used; the earlier version stays in force")
        assert message(server) == "[needs-owner] label <owner> is missing"
        errors = 'gatekeeper_constraint_template_ingestion_count_total{status="error"}'
        assert server.metric(errors) == 1
        assert server.metric('gatekeeper_constraint_templates{status="error"}') == 1


def test_a_mounted_config_map_s_swap_of_its_link_is_seen(tmp_path: Path) -> None:
    """The kubelet writes a new folder and renames a link to it over the old one."""

    def publish(number: int, label: str) -> None:
        revision = tmp_path / f"..revision{number}"
        write_policies(revision, REQUIRED_LABELS, constraint("needs-it", label))
        link = tmp_path / "..data_new"
        link.symlink_to(revision.name)
        link.rename(tmp_path / "..data")

    publish(1, "one")
    for name in ("0.yaml", "1.yaml"):
        (tmp_path / name).symlink_to(f"..data/{name}")
    with Server(tmp_path) as server:
        server.ready()
        assert message(server) == "[needs-it] label <one> is missing"
        for number, label in ((2, "two"), (3, "three")):
            publish(number, label)
            server.wait_for("policies in force", number=number)
            assert message(server) == f"[needs-it] label <{label}> is missing"


def test_a_change_that_nothing_reports_is_found_by_looking(tmp_path: Path) -> None:
    """The folder that a link leads to is not watched itself."""
    elsewhere = write_policies(
        tmp_path / "elsewhere", REQUIRED_LABELS, constraint("needs-it", "one")
    )
    policies = tmp_path / "policies"
    policies.mkdir()
    for name in ("0.yaml", "1.yaml"):
        (policies / name).symlink_to(elsewhere / name)
    with Server(policies, "--poll-interval=100ms") as server:
        server.ready()
        replace(elsewhere / "1.yaml", constraint("needs-it", "two"))
        server.wait_for("policies in force", number=2)
        assert message(server) == "[needs-it] label <two> is missing"


def test_a_config_s_excluded_namespaces_are_not_reviewed(tmp_path: Path) -> None:
    config = thing("Config", "config", "config.gatekeeper.sh/v1alpha1") | {
        "spec": {
            "match": [
                {"excludedNamespaces": ["kube-*"], "processes": ["webhook"]},
                {"excludedNamespaces": ["default"], "processes": ["audit"]},
            ]
        }
    }
    policies = write_policies(
        tmp_path, REQUIRED_LABELS, constraint("needs-owner", "owner"), json.dumps(config)
    )
    with Server(policies) as server:
        server.ready()
        excluded = server.admit(thing("Pod", namespace="kube-system"))
        assert excluded["allowed"] is True
        ignored = "Namespace is set to be ignored by Gatekeeper config"
        assert excluded["status"]["message"] == ignored
        assert server.admit(thing("Namespace", "kube-public"))["allowed"] is True
        assert server.admit(thing("Pod", namespace="default"))["allowed"] is False
        assert server.admit(thing("Namespace", "default"))["allowed"] is False


def test_a_server_with_nothing_to_enforce_is_not_ready(tmp_path: Path) -> None:
    policies = write_policies(tmp_path, "{[ this is no YAML")
    with Server(policies) as server:
        server.wait_for("policy cannot be used")
        answer = server.post(review(pod()))
        assert answer.status == 503
        assert answer.headers["retry-after"] == "0"
        assert answer.headers["connection"] == "close"
        await_true(lambda: b"0.yaml" in server.get("health", "/readyz").body)
        assert server.get("health", "/readyz").status == 503
        assert server.get("health", "/healthz").status == 200
        write_policies(tmp_path, REQUIRED_LABELS, constraint("needs-owner", "owner"))
        os.utime(tmp_path)
        server.wait_for("policies in force")
        assert server.get("health", "/readyz").status == 200
        # The one file may have been read before the other was there.
        await_true(lambda: server.admit(pod())["allowed"] is False)


def test_a_broken_template_beside_good_ones_delays_readiness_only_if_asked_to(
    tmp_path: Path,
) -> None:
    broken = REQUIRED_LABELS.replace("requiredlabel", "broken").replace("RequiredLabel", "Broken")
    documents = [
        REQUIRED_LABELS,
        constraint("needs-owner", "owner"),
        broken.replace("sprintf", "no_such_function"),
    ]
    with Server(write_policies(tmp_path, *documents)) as server:
        server.ready()
        assert server.get("health", "/readyz").status == 200
    with Server(tmp_path, "--readiness-retries=-1") as server:
        server.wait_for("policy cannot be used")
        assert server.get("health", "/readyz").status == 503
        assert server.post(review(pod())).status == 503


def test_templates_of_an_engine_that_is_switched_off_do_not_keep_a_server_from_being_ready(
    tmp_path: Path,
) -> None:
    """The server warns about it, as in a cluster: no change of a file would mend it."""
    flag = "--enable-k8s-native-validation=false"
    with Server(write_policies(tmp_path, IN_CEL), flag) as server:
        server.ready()
        assert server.get("health", "/readyz").status == 200
        assert b"K8sNativeValidation (CEL)" in server.get("health", "/readyz?verbose").body
        for subject in (pod(), pod(owner="me")):
            verdict = server.admit(subject)
            assert verdict["allowed"]
            (warning,) = verdict["warnings"]
            assert warning.startswith("[owned] ")
            assert "K8sNativeValidation (CEL)" in warning
        assert server.metric("gatekeeper_constraint_templates_with_cel") == 1
        assert server.metric("waddle_constraints_without_engine") == 1
        write_policies(tmp_path, REQUIRED_LABELS, constraint("needs-owner", "owner"))
        server.wait_for("all policies can be used again")
        assert "warnings" not in server.admit(pod(owner="me"))
        assert server.admit(pod())["allowed"] is False
        assert server.metric("gatekeeper_constraint_templates_with_cel") == 0
        assert server.metric("waddle_constraints_without_engine") == 0


def test_templates_with_code_in_cel_are_counted(tmp_path: Path) -> None:
    documents = [REQUIRED_LABELS, constraint("needs-owner", "owner"), IN_CEL]
    with Server(write_policies(tmp_path, *documents)) as server:
        server.ready()
        assert server.metric("gatekeeper_constraint_templates_with_cel") == 1
        assert server.metric("waddle_constraints_without_engine") == 0
        assert server.admit(pod())["allowed"] is False


FOR_FILES = """
apiVersion: targets.waddle.dev/v1alpha1
kind: Target
metadata: {name: compose.example.com}
spec: {match: {images: {path: image}}}
---
apiVersion: templates.gatekeeper.sh/v1
kind: ConstraintTemplate
metadata: {name: twofold}
spec:
  crd: {spec: {names: {kind: Twofold}}}
  targets:
    - target: compose.example.com
      rego: |
        package p
        violation[{"msg": "of a file"}] { true }
    - target: admission.k8s.gatekeeper.sh
      rego: |
        package p
        violation[{"msg": "of a cluster"}] { true }
---
apiVersion: constraints.gatekeeper.sh/v1beta1
kind: Twofold
metadata: {name: twofold}
spec: {match: {images: [a]}}
---
apiVersion: templates.gatekeeper.sh/v1
kind: ConstraintTemplate
metadata: {name: forplans}
spec:
  crd: {spec: {names: {kind: ForPlans}}}
  targets:
    - target: validation.resourcechange.terraform.cloud.google.com
      rego: |
        package p
        violation[{"msg": "of a plan"}] { true }
---
apiVersion: constraints.gatekeeper.sh/v1beta1
kind: ForPlans
metadata: {name: forplans}
"""


def test_policies_for_files_lie_beside_those_for_a_cluster_and_are_not_asked(
    tmp_path: Path,
) -> None:
    policies = write_policies(tmp_path, FOR_FILES)
    with Server(policies) as server:
        event = server.ready().wait_for("policies in force")
        assert (event["templates"], event["constraints"]) == (1, 1)
        assert message(server) == "[twofold] of a cluster"
        assert server.metric(FAILING_SERIES) == 0
        write_policies(policies, FOR_FILES.replace("[a]}}", "[a], paths: []}}"))
        server.wait_for("policy cannot be used; the earlier version stays in force")
        assert message(server) == "[twofold] of a cluster"
