"""Reports as documents, and when one differs from another."""

import copy

import pytest

from tests.webhook.reports.made import finding, subject
from webhook.api.gvk import GroupVersionKind
from webhook.reports.finding import VERDICTS, settled
from webhook.reports.report import difference, finding_in, is_ours, report, subject_in
from webhook.reports.report_api import APIS, OPENREPORTS, WGPOLICY

NAMESPACE = GroupVersionKind("", "v1", "Namespace")


def new_report(*findings, seconds=100, about=None, api=WGPOLICY):
    return report(about or subject(), settled(findings or [finding()]), api, seconds)


def stored(document):
    """Returns a document as the API server stores it."""
    document = copy.deepcopy(document)
    document["metadata"] |= {"uid": "of-report", "resourceVersion": "7", "generation": 1}
    return document


@pytest.mark.parametrize("api", APIS.values(), ids=APIS)
def test_a_report_has_the_fields_that_viewers_need(api):
    document = new_report(
        finding("b", verdict="warn", action="warn"),
        finding("a", severity="high", category="Pods"),
        api=api,
    )
    assert document["kind"] == api.namespaced.gvk.kind
    assert document["apiVersion"] == api.namespaced.gvk.group_version
    assert document["metadata"]["name"] == "uid-of-web"
    assert document["metadata"]["namespace"] == "shop"
    assert document["metadata"]["ownerReferences"] == [
        {"apiVersion": "v1", "kind": "Pod", "name": "web", "uid": "uid-of-web"}
    ]
    assert document["scope"] == {
        "apiVersion": "v1",
        "kind": "Pod",
        "namespace": "shop",
        "name": "web",
        "uid": "uid-of-web",
    }
    assert document["summary"] == {"pass": 0, "fail": 1, "warn": 1, "error": 0, "skip": 0}
    assert document["results"] == [
        {
            "source": "waddle",
            "policy": "RequireRunAsNonRoot",
            "rule": "a",
            "result": "fail",
            "scored": True,
            "message": "a is not met",
            "severity": "high",
            "category": "Pods",
            "timestamp": {"seconds": 100, "nanos": 0},
            "properties": {"enforcementAction": "deny"},
        },
        {
            "source": "waddle",
            "policy": "RequireRunAsNonRoot",
            "rule": "b",
            "result": "warn",
            "scored": False,
            "message": "b is not met",
            "timestamp": {"seconds": 100, "nanos": 0},
            "properties": {"enforcementAction": "warn"},
        },
    ]
    assert document.get("source") == ("waddle" if api is OPENREPORTS else None)
    assert is_ours(document)


def test_a_cluster_wide_resource_has_a_cluster_report():
    document = new_report(about=subject("shop", "", NAMESPACE))
    assert document["kind"] == "ClusterPolicyReport"
    assert "namespace" not in document["metadata"]
    assert "namespace" not in document["scope"]


def test_the_summary_counts_every_verdict():
    document = new_report(*(finding(verdict, verdict=verdict) for verdict in VERDICTS))
    assert document["summary"] == dict.fromkeys(VERDICTS, 1)


def test_without_findings_there_is_no_report():
    assert report(subject(), (), WGPOLICY, 0) is None


def test_what_a_report_says_can_be_read_back():
    findings = settled([finding("a", severity="low"), finding("b", verdict="pass", action="")])
    document = new_report(*findings)
    assert tuple(map(finding_in, document["results"])) == findings
    assert subject_in(document["scope"]) == subject()


def test_nothing_is_written_when_only_time_has_passed():
    assert difference(stored(new_report(seconds=100)), new_report(seconds=200)) is None


def test_nothing_is_written_for_another_version_of_the_same_kind():
    first = subject("scaler", gvk=GroupVersionKind("autoscaling", "v1", "HorizontalPodAutoscaler"))
    later = first._replace(gvk=first.gvk._replace(version="v2"))
    assert difference(stored(new_report(about=first)), new_report(about=later)) is None


def test_a_result_that_is_found_again_keeps_its_time():
    current = stored(new_report(finding("a"), seconds=100))
    found = difference(current, new_report(finding("a"), finding("b"), seconds=200))
    assert found.action == "replace"
    times = {item["rule"]: item["timestamp"]["seconds"] for item in found.document["results"]}
    assert times == {"a": 100, "b": 200}


def test_the_whole_set_of_results_is_replaced():
    current = stored(new_report(finding("stale"), finding("kept")))
    found = difference(current, new_report(finding("kept")))
    assert [item["rule"] for item in found.document["results"]] == ["kept"]
    assert found.document["summary"]["fail"] == 1


@pytest.mark.parametrize(
    "change",
    [
        lambda document: document["summary"].update(fail=2),
        lambda document: document["results"][0].update(source="another"),
        lambda document: document["results"][0].pop("properties"),
        lambda document: document["results"].append(document["results"][0]),
        lambda document: document.update(results=[]),
        lambda document: document["scope"].update(name="another"),
        lambda document: document["metadata"].update(ownerReferences=[]),
    ],
    ids=["summary", "source", "action", "twice", "emptied", "scope", "owner"],
)
def test_what_somebody_changed_in_a_report_is_put_right(change):
    current = stored(new_report())
    change(current)
    found = difference(current, new_report())
    assert found.action == "replace"
    assert difference(stored(found.document), new_report()) is None


def test_labels_and_annotations_of_others_stay():
    current = stored(new_report())
    current["metadata"]["labels"]["team"] = "a"
    current["metadata"]["annotations"] = {"note": "b"}
    found = difference(current, new_report(finding("other")))
    assert found.document["metadata"]["labels"]["team"] == "a"
    assert found.document["metadata"]["annotations"] == {"note": "b"}
    assert found.document["metadata"]["resourceVersion"] == "7"


def test_a_report_without_findings_left_is_deleted():
    current = stored(new_report())
    assert difference(current, None).action == "delete"
    assert difference(None, None) is None
    assert difference(None, new_report()).action == "create"
