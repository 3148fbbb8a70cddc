"""Policies of a directory: told apart, kept in step, and every fault reported with its place."""

from __future__ import annotations

import json
import os

import pytest
import yaml

from tests.webhook.constraint.policies import client, constraint, pod, template
from webhook.api.config import excluded_namespaces, synced_kinds
from webhook.constraint.client import Client
from webhook.constraint.drivers.rego import RegoDriver
from webhook.constraint.review import AugmentedObject
from webhook.constraint.targets.admission import AdmissionTarget
from webhook.policies.directory import PolicyDirectory


class Folder:
    """A directory of policies with the client it fills."""

    def __init__(self, path):
        self.path = path
        self.client = client()
        self.directory = PolicyDirectory(self.client, [path])

    def write(self, name, *documents):
        """Write a file of these."""
        file = self.path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(yaml.safe_dump_all(documents))

    def load(self):
        """Bring the client in step."""
        return self.directory.load()

    def messages(self):
        """Returns the messages of a Pod's violations."""
        answer = self.client.snapshot.review(AugmentedObject(pod()))
        return [result.msg for result in answer.results]


@pytest.fixture
def folder(tmp_path):
    return Folder(tmp_path)


NEW = template(rego='package p\nviolation[{"msg": "new"}] { true }')
BROKEN = template(rego="package p\nviolation[{")
NAMESPACE = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}}


def test_templates_constraints_and_data_are_distinguished_in_any_order_and_depth(folder):
    folder.write("a.yaml", constraint())
    folder.write("deep/er/z.yml", template())
    (folder.path / "b.json").write_text(json.dumps(NAMESPACE))
    (folder.path / "notes.txt").write_text("{")

    report = folder.load()

    assert (report.templates, report.constraints, report.data) == (1, 1, 1)
    assert report.faults == ()
    assert report.changed
    assert folder.messages() == ["no"]
    assert list(folder.client.snapshot.namespaces) == ["shop"]


def test_nothing_changed_is_nothing_changed(folder):
    folder.write("a.yaml", template(), constraint(), NAMESPACE)
    folder.load()
    before = folder.client.snapshot

    report = folder.load()

    assert not report.changed
    assert before is folder.client.snapshot


def test_changes_and_removals_follow_the_files(folder):
    folder.write("t.yaml", template())
    folder.write("c.yaml", constraint(), NAMESPACE)
    folder.load()

    folder.write("t.yaml", NEW)
    assert folder.load().changed
    assert folder.messages() == ["new"]

    (folder.path / "c.yaml").unlink()
    report = folder.load()
    assert (report.templates, report.constraints, report.data) == (1, 0, 0)
    assert folder.messages() == []
    assert folder.client.snapshot.inventory == {}

    (folder.path / "t.yaml").unlink()
    assert folder.load().templates == 0


def test_a_broken_template_is_reported_and_its_last_good_revision_stays(folder):
    folder.write("t.yaml", template(), constraint())
    folder.load()
    folder.write("t.yaml", BROKEN, constraint())

    report = folder.load()

    (fault,) = report.faults
    assert fault.title == "ConstraintTemplate k8sdeny"
    assert f"{folder.path}/t.yaml" == fault.file
    assert "rego_parse_error" in fault.message
    assert folder.messages() == ["no"]
    folder.write("t.yaml", NEW, constraint())
    assert folder.load().faults == ()
    assert folder.messages() == ["new"]


def test_a_file_that_cannot_be_read_keeps_what_it_had(folder):
    folder.write("t.yaml", template(), constraint())
    folder.load()
    (folder.path / "t.yaml").write_text("a: [")

    report = folder.load()

    assert [f"{folder.path}/t.yaml"] == [fault.file for fault in report.faults]
    assert "line " in str(report.faults[0])
    assert folder.messages() == ["no"]


def test_a_folder_that_is_gone_is_a_fault_and_loses_nothing(folder, tmp_path):
    folder.write("t.yaml", template(), constraint())
    folder.load()
    tmp_path.rename(tmp_path.with_name("elsewhere"))

    report = folder.load()

    assert [fault.message for fault in report.faults] == ["No such file or directory"]
    assert folder.messages() == ["no"]


def test_one_bad_object_costs_only_itself(folder):
    folder.write(
        "all.yaml",
        template(),
        template("K8sBad", "package p\nviolation[{"),
        constraint("K8sBad", "orphan"),
        constraint("K8sDeny", "wrong", match={"kinds": 3}),
        constraint(),
        {"kind": "NoVersion", "metadata": {"name": "odd"}},
    )

    report = folder.load()

    assert [fault.title for fault in report.faults] == [
        "ConstraintTemplate k8sbad",
        "K8sBad orphan",
        "K8sDeny wrong",
        "NoVersion odd",
    ]
    assert folder.messages() == ["no"]
    assert 'template "k8sbad" has no revision that can be used' in str(report.faults[1])


def test_of_an_object_defined_twice_the_last_is_used_and_both_places_are_named(folder):
    folder.write("a.yaml", template(), constraint())
    folder.write("b.yaml", NEW)

    report = folder.load()

    assert report.faults == ()
    assert report.repeated == (
        (
            f'Resource named "k8sdeny" (from file: "{folder.path}/b.yaml:1") is already defined in '
            f'file: "{folder.path}/a.yaml:1": the one in {folder.path}/b.yaml:1 counts'
        ),
    )
    assert folder.messages() == ["new"]


def test_suites_and_the_revisions_of_a_mounted_configmap_are_left_alone(folder):
    folder.write("..2026_01_01/t.yaml", template(), constraint())
    folder.write(
        "suite.yaml",
        {"apiVersion": "test.gatekeeper.sh/v1alpha1", "kind": "Suite", "tests": []},
    )
    (folder.path / "t.yaml").symlink_to(folder.path / "..2026_01_01" / "t.yaml")

    report = folder.load()

    assert (report.templates, report.constraints, report.data) == (1, 1, 0)
    assert report.faults == ()


def test_lists_are_taken_apart_and_gatekeepers_configuration_is_handed_on(folder):
    config = {
        "apiVersion": "config.gatekeeper.sh/v1alpha1",
        "kind": "Config",
        "metadata": {"name": "config", "namespace": "gatekeeper-system"},
    }
    folder.write(
        "all.yaml",
        {"apiVersion": "v1", "kind": "List", "items": [template(), constraint(), pod(), config]},
    )

    report = folder.load()

    assert (report.templates, report.constraints, report.data) == (1, 1, 1)
    assert [config] == [item.document for item in report.configuration]


def test_data_that_changes_its_version_moves(folder):
    thing = {"apiVersion": "x.io/v1", "kind": "Thing", "metadata": {"name": "t"}}
    folder.write("d.yaml", thing)
    folder.load()
    folder.write("d.yaml", {**thing, "apiVersion": "x.io/v2"})
    folder.load()

    assert list(folder.client.snapshot.inventory["cluster"]) == ["x.io/v2"]


def test_what_is_no_object_is_skipped_and_named_and_a_mistyped_object_is_a_fault(folder):
    folder.write("all.yaml", template(), constraint())
    folder.write("kustomization.yaml", {"resources": ["all.yaml"]})
    folder.write("chart/values.yaml", {"replicas": 3}, {"kind": "DaemonSet"})
    folder.write("chart/Chart.yaml", {"apiVersion": "v2", "name": "x", "version": "1"})
    folder.write("patches.yaml", [{"op": "add", "path": "/a", "value": {"kind": "b"}}])
    folder.write("typo.yaml", {"apVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}})

    report = folder.load()

    assert [item.rpartition("/")[2] for item in report.skipped] == [
        "kustomization.yaml",
        "patches.yaml",
        "Chart.yaml",
        "values.yaml",
    ]
    assert [fault.title for fault in report.faults] == ["Pod p"]


def suite(*cases, **test):
    return {
        "apiVersion": "test.gatekeeper.sh/v1alpha1",
        "kind": "Suite",
        "tests": [{"template": "t.yaml", "constraint": "c.yaml", "cases": list(cases), **test}],
    }


def test_what_suites_are_tried_on_is_no_policy_and_no_data(folder):
    folder.write("t.yaml", template())
    folder.write("c.yaml", constraint())
    folder.write("inputs/pod.yaml", pod())
    folder.write("inputs/stock.yaml", NAMESPACE)
    folder.write("inputs/wrong.yaml", constraint(name="wrong", match={"kinds": 3}))
    case = {"object": "inputs/pod.yaml", "inventory": ["inputs/stock.yaml", 3]}
    folder.write("labels.yaml", suite(case, {"object": "./c.yaml"}))
    folder.write("tests/refused.yaml", suite(constraint="../inputs/wrong.yaml", invalid=True))
    folder.write("tests/odd.yaml", {**suite(), "tests": ["x"]})

    report = folder.load()

    assert report.faults == ()
    assert (report.templates, report.constraints, report.data) == (1, 1, 0)


def config(*kinds, **spec):
    listed = [{"group": "", "version": "v1", "kind": kind} for kind in kinds]
    return {
        "apiVersion": "config.gatekeeper.sh/v1alpha1",
        "kind": "Config",
        "metadata": {"name": "config", "namespace": "gatekeeper-system"},
        "spec": {"sync": {"syncOnly": listed}, **spec},
    }


def test_configs_of_one_name_that_differ_in_what_they_sync_are_one(folder):
    folder.write("a.yaml", config("Pod", "Service"))
    folder.write("b.yaml", config("Service", "Namespace"))
    folder.write("c.yaml", config())

    report = folder.load()

    assert report.faults == ()
    (found,) = report.configuration
    assert sorted(gvk.kind for gvk in synced_kinds(found.document)) == [
        "Namespace",
        "Pod",
        "Service",
    ]


def test_configs_of_one_name_that_exclude_otherwise_are_named(folder):
    folder.write("a.yaml", config("Pod"))
    folder.write("b.yaml", config(match=[{"processes": ["*"], "excludedNamespaces": ["x"]}]))

    report = folder.load()

    (line,) = report.repeated
    assert line.endswith(f": the one in {folder.path}/b.yaml:1 counts")
    (found,) = report.configuration
    assert excluded_namespaces(found.document, "webhook") == ("x",)


DECLARED = {
    "apiVersion": "targets.waddle.dev/v1alpha1",
    "kind": "Target",
    "metadata": {"name": "t.example.com"},
    "spec": {"match": {"images": {"path": "image"}}},
}


def test_a_target_lies_beside_its_policies_and_changes_with_them(folder):
    folder.write("b.yaml", template(target={"target": "t.example.com"}))
    folder.write("c.yaml", constraint(match={"images": ["a"]}))
    folder.write("target.yaml", DECLARED)

    report = folder.load()
    assert (report.templates, report.constraints, report.faults) == (1, 1, ())

    folder.write("target.yaml", {**DECLARED, "spec": {"match": {"paths": {}}}})
    report = folder.load()
    assert report.templates == 1
    assert [fault.title for fault in report.faults] == ["K8sDeny c"]

    folder.write("target.yaml", DECLARED)
    assert folder.load().faults == ()
    assert not folder.load().changed, "what is as it was is not compiled again"

    (folder.path / "target.yaml").unlink()
    report = folder.load()
    assert (report.templates, report.constraints) == (0, 0)
    assert 'target "t.example.com" not recognized' in str(report.faults[0])


def test_a_target_that_cannot_be_used_is_reported_with_its_place(folder):
    folder.write("target.yaml", {**DECLARED, "spec": {"zork": 1}})
    folder.write("ours.yaml", {**DECLARED, "metadata": {"name": "json"}})

    faults = sorted(str(fault) for fault in folder.load().faults)

    assert "ours.yaml:1: Target json: invalid Target: json comes with Waddle" in faults[0]
    assert "target.yaml:1: Target t.example.com: invalid Target" in faults[1]


def test_a_pipe_among_policies_is_not_waited_for(folder):
    os.mkfifo(folder.path / "a.yaml")
    (folder.path / "b.yaml").symlink_to(folder.path / "b.yaml")
    folder.write("c.yaml", template())

    report = folder.load()

    assert report.templates == 1
    (fault,) = report.faults
    assert "b.yaml" in str(fault)


class FailingTarget(AdmissionTarget):
    """A target that has a fault about one object."""

    def process_data(self, obj):
        """Returns the target's data, except for one object."""
        assert obj["metadata"]["name"] != "odd"
        return super().process_data(obj)


@pytest.mark.parametrize("kind", [5, None, [], ["string", "null"], {}, True])
def test_one_object_that_meets_a_fault_of_ours_costs_only_itself(tmp_path, kind):
    schema = {"type": "object", "properties": {"n": {"type": kind}}}
    documents = [
        template("K8sOdd", schema=schema, version="v1beta1"),
        template(),
        constraint(),
        pod("odd"),
        pod("even"),
    ]
    (tmp_path / "all.yaml").write_text(yaml.safe_dump_all(documents))
    subject = Client(targets=[FailingTarget()], drivers=[RegoDriver()])
    report = PolicyDirectory(subject, [tmp_path]).load()
    assert [item.name for item in subject.snapshot.constraints] == ["c"]
    assert report.data == 1
    messages = [fault.message for fault in report.faults]
    assert "it cannot be used for a fault of Waddle: AssertionError" in messages
    assert len(messages) == (1 if kind is None else 2)


def test_templates_are_announced_before_the_first_of_them_is_added(tmp_path):
    announced = []
    subject = client()

    def announce(documents):
        announced.append([one["metadata"]["name"] for one in documents])
        assert subject.snapshot.entries == ()

    for kind in ("K8sB", "K8sA"):
        (tmp_path / f"{kind}.yaml").write_text(yaml.safe_dump(template(kind=kind)))
    PolicyDirectory(subject, [tmp_path], announce=announce).load()
    assert announced == [["k8sa", "k8sb"]]
    assert len(subject.snapshot.entries) + len(subject.snapshot.spare) == 2
