"""Pod statuses: names that cannot collide, Gatekeeper's fields, and byPod."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webhook.api import pod_status as kinds
from webhook.api.pod_status import (
    CONSTRAINT,
    InvalidName,
    Pod,
    StatusError,
    by_pod,
    pack_name,
    pod_label,
    pod_status,
)

POD = Pod("waddle-webhook-abc", "waddle-system", "pod-uid", ("webhook", "status"))

CONSTRAINT_DOCUMENT = {
    "apiVersion": "constraints.gatekeeper.sh/v1beta1",
    "kind": "K8sRequiredLabels",
    "metadata": {"name": "ns-must-have-gk", "uid": "c-uid", "generation": 3},
}


@pytest.mark.parametrize(
    ("parts", "name"),
    [
        # The examples of Gatekeeper's own documentation and tests.
        (("gatekeeper-audit-abc", "k8srequiredlabels"), "gatekeeper--audit--abc-k8srequiredlabels"),
        (("a", "b"), "a-b"),
        (("a-b", "c"), "a--b-c"),
        (("a--b", "c"), "a----b-c"),
    ],
)
def test_names_are_packed_as_gatekeeper_packs_them(parts, name):
    assert pack_name(*parts) == name


@pytest.mark.parametrize("parts", [("",), ("a", ""), ("-a",), ("a-",)])
def test_a_part_that_cannot_be_distinguished_is_refused(parts):
    with pytest.raises(InvalidName):
        pack_name(*parts)


def test_names_beyond_what_the_api_server_takes_end_in_a_digest():
    long, other = "a" * 46 + "-" * 10 + "x" * 40, "a" * 46 + "-" * 10 + "y" * 40
    labels = {pod_label(long), pod_label(other)}
    assert len(labels) == 2
    for label in labels:
        assert len(label) <= 63
        assert label.startswith("a" * 46 + "-")
        assert label[46:48] != "--"
    assert pod_label("a" * 63) == "a" * 63
    names = {pack_name("pod" * 83, "kind", name) for name in ("a", "b")}
    assert len(names) == 2
    assert all(240 < len(name) <= 253 for name in names)


PARTS = st.lists(
    st.text("ab-.", min_size=1, max_size=5).filter(lambda s: s[0] != "-" and s[-1] != "-"),
    min_size=1,
    max_size=4,
)


@given(PARTS, PARTS)
def test_different_parts_never_share_a_name(ours, theirs):
    assert (pack_name(*ours) == pack_name(*theirs)) == (ours == theirs)


def test_a_constraint_status_has_gatekeepers_names_labels_and_fields():
    document = pod_status(
        POD, kinds.status_subject(kinds.CONSTRAINT, CONSTRAINT_DOCUMENT), enforced=True
    )

    assert document == {
        "apiVersion": "status.gatekeeper.sh/v1beta1",
        "kind": "ConstraintPodStatus",
        "metadata": {
            "name": "waddle--webhook--abc-k8srequiredlabels-ns--must--have--gk",
            "namespace": "waddle-system",
            "labels": {
                "internal.gatekeeper.sh/pod": "waddle-webhook-abc",
                "internal.gatekeeper.sh/constraint-name": "ns-must-have-gk",
                "internal.gatekeeper.sh/constraint-kind": "K8sRequiredLabels",
                "internal.gatekeeper.sh/constrainttemplate-name": "k8srequiredlabels",
            },
            "ownerReferences": [
                {"apiVersion": "v1", "kind": "Pod", "name": "waddle-webhook-abc", "uid": "pod-uid"}
            ],
        },
        "status": {
            "id": "waddle-webhook-abc",
            "constraintUID": "c-uid",
            "operations": ["status", "webhook"],
            "observedGeneration": 3,
            "enforced": True,
        },
    }


def test_a_template_status_carries_its_errors():
    template = {"metadata": {"name": "k8srequiredlabels", "uid": "t-uid", "generation": 7}}
    error = StatusError("rego_parse_error", "unexpected eof", "template.rego:3")
    document = pod_status(
        POD,
        kinds.status_subject(kinds.TEMPLATE, template),
        errors=[error],
        additions={"activeGeneration": 6},
    )

    assert document["kind"] == "ConstraintTemplatePodStatus"
    assert document["status"] == {
        "id": "waddle-webhook-abc",
        "templateUID": "t-uid",
        "operations": ["status", "webhook"],
        "observedGeneration": 7,
        "errors": [
            {
                "code": "rego_parse_error",
                "message": "unexpected eof",
                "location": "template.rego:3",
            }
        ],
        "activeGeneration": 6,
    }


def test_a_config_status_names_its_namespace():
    config = {"metadata": {"name": "config", "namespace": "waddle-system", "uid": "u"}}
    document = pod_status(POD, kinds.status_subject(kinds.CONFIG, config))

    assert document["metadata"]["name"] == "waddle--webhook--abc-waddle--system-config"
    assert document["metadata"]["labels"]["internal.gatekeeper.sh/config-name"] == "config"
    assert document["status"]["configUID"] == "u"


def test_by_pod_is_sorted_and_leaves_out_another_objects_statuses():
    subject = kinds.status_subject(kinds.CONSTRAINT, CONSTRAINT_DOCUMENT)
    stale = kinds.status_subject(
        kinds.CONSTRAINT,
        CONSTRAINT_DOCUMENT | {"metadata": {"name": "ns-must-have-gk", "uid": "earlier"}},
    )
    pods = [Pod(name, "waddle-system", name) for name in ("c", "a", "b")]
    statuses = [pod_status(pod, subject, enforced=True) for pod in pods]
    statuses.append(pod_status(Pod("d", "waddle-system", "d"), stale, enforced=True))
    statuses.append({"metadata": {"name": "without-status"}})

    entries = by_pod(statuses, CONSTRAINT, "c-uid")

    assert [entry["id"] for entry in entries] == ["a", "b", "c"]


def test_what_is_reported_of_a_very_long_expression_leaves_room_for_all_replicas_statuses():
    """A fault of CEL stands with its whole line in the status of every replica of a hundred."""
    entry = StatusError("ingest_error", "ERROR: " + "é" * 200_000).document()
    assert entry["message"].startswith("ERROR: éé")
    assert entry["message"].endswith("é…")
    assert len(str(entry).encode()) * 100 < 1_500_000
    assert StatusError("code", "as it is").document() == {"code": "code", "message": "as it is"}
