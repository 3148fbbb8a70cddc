"""Policies in files are put into service, and what is said of them."""

import json
from pathlib import Path

import pytest
import yaml

from tests.behaviour.serving import FAILING, REQUIRED_LABELS, constraint, write_policies
from tests.policies import FREE, config, exception, template
from tests.webhook.policies.loading import Loader
from webhook.api.gvk import gvk_of
from webhook.constraint.drivers.rego import RegoDriver
from webhook.constraint.review import AugmentedObject
from webhook.metrics.admission import ENGINE_FAULTS
from webhook.metrics.mutation import EXPANSION_TEMPLATES, MUTATORS
from webhook.metrics.policies import (
    CONSTRAINTS,
    INGESTIONS,
    SNAPSHOT,
    TEMPLATES,
)
from webhook.metrics.providers import KNOWN_PROVIDERS
from webhook.policies.manifests import Manifest
from webhook.review.policy_set import exclusions_of

MUTATOR = """
apiVersion: mutations.gatekeeper.sh/v1
kind: AssignMetadata
metadata: {name: owner}
spec: {location: metadata.labels.owner, parameters: {assign: {value: me}}}
"""

POD = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "shop"}}


def test_loading_publishes_and_counts(tmp_path: Path) -> None:
    write_policies(tmp_path, REQUIRED_LABELS, constraint("a", "b", action="warn"), FAILING)
    parts = Loader(tmp_path)
    assert parts.loader.not_ready() == "policies are not loaded yet"
    assert parts.loader.load() is True
    assert parts.loader.not_ready() == ""
    assert parts.serving.revision is not None
    snapshot = parts.serving.revision.snapshot
    assert len(snapshot.constraints) == 2
    gauges = parts.registry.gauges
    assert gauges[TEMPLATES] == {("active",): 2, ("error",): 0}
    assert gauges[CONSTRAINTS]["warn", "active"] == 1
    assert gauges[CONSTRAINTS]["deny", "active"] == 1
    assert gauges[CONSTRAINTS]["deny", "error"] == 0
    assert gauges[SNAPSHOT] == {(snapshot.digest,): 1}
    assert parts.registry.counters[INGESTIONS] == {("active",): 2}
    assert parts.loader.load() is True
    assert parts.registry.counters[INGESTIONS] == {("active",): 2}
    assert parts.messages == ["policies in force"]


def test_what_cannot_be_used_is_counted_by_its_kind(tmp_path: Path) -> None:
    """The metrics said that no mutator and no Provider had an error."""
    broken = MUTATOR.replace("name: owner", "name: broken").replace("labels.owner", "labels")
    other = MUTATOR.replace("name: owner", "name: tier").replace("labels.owner", "labels.tier")
    provider = """
apiVersion: externaldata.gatekeeper.sh/v1beta1
kind: Provider
metadata: {name: sig}
spec: {url: "https://sig.example/x", caBundle: QUJD}
"""
    expansion = """
apiVersion: expansion.gatekeeper.sh/v1alpha1
kind: ExpansionTemplate
metadata: {name: nowhere}
spec: {templateSource: ""}
"""
    write_policies(tmp_path, REQUIRED_LABELS, MUTATOR, broken, provider, expansion)
    parts = Loader(tmp_path)
    parts.loader.load()
    gauges = parts.registry.gauges
    assert gauges[MUTATORS] == {("active",): 1, ("error",): 1}
    assert gauges[KNOWN_PROVIDERS] == {("active",): 0, ("error",): 1}
    assert gauges[EXPANSION_TEMPLATES] == {("active",): 0, ("error",): 1}
    write_policies(tmp_path, REQUIRED_LABELS, MUTATOR, other, "", "")
    parts.loader.load()
    assert gauges[MUTATORS] == {("active",): 2, ("error",): 0}
    assert gauges[KNOWN_PROVIDERS] == {("active",): 0, ("error",): 0}


def test_a_fault_of_the_compiler_is_counted_as_the_engines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise KeyError("a bug that a test has planted")

    monkeypatch.setattr(RegoDriver, "compile", broken)
    write_policies(tmp_path, REQUIRED_LABELS)
    parts = Loader(tmp_path)
    parts.loader.load()
    assert parts.registry.counters[ENGINE_FAULTS] == {("RequiredLabel",): 1}
    assert "bug: a template cannot be compiled" in parts.messages


def test_what_is_mended_is_in_force_before_that_is_said(tmp_path: Path) -> None:
    write_policies(tmp_path, REQUIRED_LABELS, constraint("a", "b"))
    parts = Loader(tmp_path)
    assert parts.loader.load() is True
    before = parts.serving.revision
    (tmp_path / "1.yaml").write_text("{[")
    assert parts.loader.load() is False
    write_policies(tmp_path, REQUIRED_LABELS, constraint("a", "c"))
    assert parts.loader.load() is True
    assert parts.serving.revision is not before
    assert parts.messages[-2:] == ["policies in force", "all policies can be used again"]


def test_who_reads_a_line_of_the_log_finds_metrics_and_probes_so(tmp_path: Path) -> None:
    parts = Loader(tmp_path)
    for broken in (False, True, False):
        write_policies(tmp_path, REQUIRED_LABELS, constraint("a", "b" if broken else "c"), MUTATOR)
        (tmp_path / "3.yaml").write_text("{[" if broken else "")
        parts.found.clear()
        parts.loader.load()
        assert set(parts.found) == {parts.state()}, parts.messages
    assert set(parts.messages) == {
        "mutators in force",
        "policies in force",
        "policy cannot be used",
        "all policies can be used again",
    }


def test_a_fault_is_logged_once_however_often_it_is_seen(tmp_path: Path) -> None:
    write_policies(tmp_path, REQUIRED_LABELS, constraint("a", "b"), "{[")
    parts = Loader(tmp_path)
    assert [parts.loader.load() for _ in range(3)] == [False] * 3
    assert parts.messages.count("policy cannot be used") == 1
    assert len(parts.loader.faults()) == 1
    assert parts.loader.not_ready() == ""


def test_what_is_in_force_is_logged_once_though_a_broken_template_is_tried_anew(
    tmp_path: Path,
) -> None:
    broken = REQUIRED_LABELS.replace("violation[", "violation[[").replace("Required", "Broken")
    of_broken = constraint("b", "c").replace("Required", "Broken")
    good = REQUIRED_LABELS, constraint("a", "b")
    write_policies(tmp_path, *good, broken.replace("required", "broken"), of_broken)
    parts = Loader(tmp_path)
    assert [parts.loader.load() for _ in range(3)] == [False] * 3
    assert parts.messages.count("policies in force") == 1
    write_policies(tmp_path, REQUIRED_LABELS, constraint("a", "c"))
    parts.loader.load()
    assert parts.messages.count("policies in force") == 2


def test_retries_put_off_readiness_so_many_loads(tmp_path: Path) -> None:
    write_policies(tmp_path, REQUIRED_LABELS, constraint("a", "b"), "{[")
    parts = Loader(tmp_path, retries=2)
    ready = []
    for _ in range(4):
        parts.loader.load()
        ready.append(parts.serving.revision is not None)
    assert ready == [False, False, True, True]


def test_with_nothing_to_enforce_no_number_of_retries_makes_it_ready(tmp_path: Path) -> None:
    write_policies(tmp_path, "{[")
    parts = Loader(tmp_path)
    for _ in range(5):
        parts.loader.load()
    assert parts.serving.revision is None
    assert "0.yaml" in parts.loader.not_ready()


def test_an_empty_directory_is_served_as_it_is(tmp_path: Path) -> None:
    parts = Loader(tmp_path)
    assert parts.loader.load() is True
    assert parts.serving.revision is not None


def config_manifest(*match: object) -> Manifest:
    """A Config with these entries."""
    document = config(match=list(match))
    assert gvk_of(document).kind == "Config"
    return Manifest(document, "config.yaml")


def test_a_config_excludes_from_the_webhook_what_names_it_or_all() -> None:
    found = exclusions_of(
        [
            config_manifest(
                {"excludedNamespaces": ["a", "b-*"], "processes": ["webhook", "audit"]},
                {"excludedNamespaces": ["c"], "processes": ["*"]},
                {"excludedNamespaces": ["d"], "processes": ["sync"]},
                {"excludedNamespaces": ["e"]},
                {"processes": ["*"]},
                {"excludedNamespaces": "f", "processes": ["*"]},
                "nonsense",
            ).document
        ]
    )
    assert [name for name in ("a", "b-1", "c", "d", "e", "f") if found.webhook(name)] == [
        "a",
        "b-1",
        "c",
    ]


def test_templates_without_constraints_are_ready_and_say_that_nothing_is_enforced(
    tmp_path: Path,
) -> None:
    write_policies(tmp_path, REQUIRED_LABELS, "kind: Broken\nmetadata: {name: b}")
    parts = Loader(tmp_path)
    parts.loader.load()
    assert parts.loader.not_ready() == ""
    assert parts.serving.revision is not None
    assert parts.loader.faults()[-1] == "1 template, 0 constraints: nothing is enforced"
    assert "no constraint is in force: every request is allowed" in parts.messages


@pytest.mark.parametrize(
    "broken",
    [
        "{[",
        "kind: RequiredLabel\napiVersion: constraints.gatekeeper.sh/v1beta1\n  metadata:",
        "kind: Missing\napiVersion: constraints.gatekeeper.sh/v1beta1\nmetadata: {name: m}",
    ],
    ids=["unreadable", "unreadable constraint", "refused constraint"],
)
def test_a_file_that_may_hold_the_only_constraints_leaves_no_replica_ready_without_them(
    tmp_path: Path, broken: str
) -> None:
    write_policies(tmp_path, REQUIRED_LABELS, broken)
    parts = Loader(tmp_path)
    parts.loader.load()
    of_constraints = "constraints.gatekeeper.sh" in broken
    assert (parts.serving.revision is None) is of_constraints


def test_what_is_skipped_is_said_once(tmp_path: Path) -> None:
    write_policies(tmp_path, REQUIRED_LABELS, constraint("a", "b"), "replicas: 3")
    parts = Loader(tmp_path)
    assert [parts.loader.load() for _ in range(3)] == [True] * 3
    assert parts.messages == [
        "policies in force",
        "files that hold no Kubernetes object are skipped",
    ]


def test_violations_without_a_message_are_logged_once(tmp_path: Path) -> None:
    """Whether they have one may be known only when objects are reviewed."""
    rule = "violation[x] { x := input.review.object.metadata }"
    policy = template("RequiredLabel", f"package p\n{rule}\n", schema=FREE)
    write_policies(tmp_path, yaml.safe_dump(policy), constraint("a", "b"))
    parts = Loader(tmp_path)
    parts.loader.load()
    parts.loader.advise_on_messages()
    assert "violations deny nothing" not in parts.messages

    assert parts.serving.revision is not None
    parts.serving.revision.snapshot.review(AugmentedObject(POD))
    parts.loader.advise_on_messages()
    parts.loader.advise_on_messages()
    assert parts.messages.count("violations deny nothing") == 1


def test_an_exception_that_has_ended_is_logged_once_with_its_place(tmp_path: Path) -> None:
    write_policies(tmp_path, REQUIRED_LABELS, constraint("a", "b"))
    ended = exception("e", "RequiredLabel/a", match={"name": "p"}, expires="2026-01-01T00:00:00Z")
    (tmp_path / "ended.yaml").write_text(yaml.safe_dump(ended))
    parts = Loader(tmp_path)
    assert parts.loader.load()
    assert parts.loader.load()
    lines = map(json.loads, parts.lines)
    (line,) = (line for line in lines if "as intended" in line["msg"])
    place = f"{tmp_path}/ended.yaml:1: ClusterPolicyException e: "
    assert line["policy"].startswith(f"{place}it ended at 2026-01-01T00:00:00Z")
