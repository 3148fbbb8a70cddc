"""Records of mutations: who changed what, who could not and who would, without what must not leave."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import jsonschema_rs
import orjson
import pytest

from tests.programs import ROOT
from tests.webhook.mutation.documents import CREATE, assign, image, known, label, pod
from webhook import log
from webhook.api.admission import read_request
from webhook.api.gvk import gvk_of
from webhook.decisions.configuration import parse
from webhook.decisions.exporter.encoding import Origin
from webhook.decisions.exporter.exporter import Exporter
from webhook.decisions.exporter.recorder import AdmissionRecorder
from webhook.decisions.exporter.settings import read_settings
from webhook.external_data.exchange import ProviderRequest, ProviderResponse
from webhook.mutation.patch import patch_between
from webhook.mutation.previewing import previewed
from webhook.server import verdict
from webhook.serving.recorder import MutationReviewed

if TYPE_CHECKING:
    from webhook.external_data.exchange import ProviderAnswers

PREVIEW = {"annotations": {"waddle.dev/mode": "preview"}}


def workload() -> dict[str, Any]:
    """A Pod that some mutators fail for."""
    found = pod("app:v1")
    return {**found, "spec": {**found["spec"], "text": "t"}}


def recorded(
    obj: dict[str, Any],
    *documents: dict[str, Any],
    answers: ProviderAnswers | None = None,
    **settings: Any,
) -> dict[str, Any]:
    """The record of an object's mutation."""
    found = read_settings(parse(orjson.dumps({"sidecarURL": "unix:///s", **settings}), "test"))
    exporter = Exporter(found, Origin(), log.Log(lambda _: None).logger("test"))
    snapshot, gvk = known(*documents).snapshot, gvk_of(obj)
    mutated = snapshot.mutate(obj, CREATE, on_error="skip")
    request = read_request(
        {
            "uid": "1",
            "kind": {"group": gvk.group, "version": gvk.version, "kind": gvk.kind},
            "operation": "CREATE",
            "object": obj,
        }
    )
    reviewed = MutationReviewed(
        request,
        mutated,
        patch_between(obj, mutated.object),
        previewed(snapshot, obj, mutated.object, CREATE, gvk, lambda _: None),
        (1.0, 1.5),
        answers,
    )
    recorded_answer = AdmissionRecorder(exporter).mutated(reviewed, verdict.allowed("1"))
    (line,) = bytes(exporter.outbox.take(10**6)).splitlines()
    record: dict[str, Any] = orjson.loads(line)
    jsonschema_rs.validator_for(
        orjson.loads((ROOT / "docs" / "decision-record.schema.json").read_bytes())
    ).validate(record)
    assert recorded_answer.decision_id == record["id"]
    return record


def as_preview(document: dict[str, Any]) -> dict[str, Any]:
    """The mutator, only previewed."""
    return {**document, "metadata": {**document["metadata"], **PREVIEW}}


def test_a_record_names_the_mutators_of_each_pass_and_what_they_changed() -> None:
    record = recorded(
        workload(),
        image("registry", "spec.containers[name: *].image", assignDomain="r.example"),
        label("owner", "owner", "nobody"),
        assign("wrong", "spec.text.x", 1),
    )
    assert record["enforcementPoint"] == "mutation.gatekeeper.sh"
    assert record["verdict"] == "allow"
    assert record["allowed"] is True
    assert record["mutation"] == {
        "iterations": 2,
        "passes": [["AssignImage//registry:0", "AssignMetadata//owner:0"]],
        "patch": [
            {"op": "add", "path": "/metadata/labels", "value": {"owner": "nobody"}},
            {"op": "replace", "path": "/spec/containers/0/image", "value": "r.example/app:v1"},
        ],
        "skipped": [
            {
                "mutator": "Assign.mutations.gatekeeper.sh /wrong",
                "message": "mismatch between path entry (type: object) and received object "
                "(type: string). Path: x",
            }
        ],
    }


def test_a_record_says_what_previewed_mutators_would_change_beyond_that() -> None:
    record = recorded(
        workload(),
        label("owner", "owner", "nobody"),
        as_preview(image("registry", "spec.containers[name: *].image", assignDomain="r.example")),
        as_preview(assign("wrong", "spec.text.x", 1)),
    )
    found = record["mutation"]
    assert [item["path"] for item in found["patch"]] == ["/metadata/labels"]
    assert found["preview"] == ["AssignImage//registry:0"]
    assert found["previewPatch"] == [
        {"op": "replace", "path": "/spec/containers/0/image", "value": "r.example/app:v1"}
    ]
    assert found["previewSkipped"][0]["mutator"] == "Assign.mutations.gatekeeper.sh /wrong"


@pytest.mark.parametrize(
    ("masks", "shown"),
    [
        (["object.spec.containers[*].env[*].value"], [{"name": "a", "value": "**masked**"}]),
        (["object.spec.containers[*].env"], "**masked**"),
        (["object.spec"], "**masked**"),
        (["object.metadata"], [{"name": "a", "value": "secret"}]),
    ],
)
def test_what_is_masked_in_objects_is_masked_in_patches(masks: list[str], shown: Any) -> None:
    env = [{"name": "a", "value": "secret"}]
    mutator = assign("env", "spec.containers[name: *].env", env)
    for documents, name in (([mutator], "patch"), ([as_preview(mutator)], "previewPatch")):
        record = recorded(pod("app:v1"), *documents, mask=masks)
        assert record["mutation"][name][0]["value"] == shown
        assert (record.get("masked") is None) is (shown == env)


def test_what_is_masked_in_objects_is_no_key_of_a_provider() -> None:
    answer = ProviderResponse((("app:v1", "app@sha256:1"),), (), 200)
    answers = {ProviderRequest("p", ("app:v1",)): answer}
    settings = {"mask": ["object.spec.containers[*].image"], "includeAnswers": True}
    (call,) = recorded(pod("app:v1"), answers=answers, **settings)["externalData"]
    assert (call["keys"], call["responses"]) == (["**masked**"], [["**masked**"] * 2])


def test_of_a_secret_what_mutators_put_into_its_data_never_leaves() -> None:
    applies = [{"groups": [""], "versions": ["v1"], "kinds": ["Secret"]}]
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}}
    record = recorded(secret, assign("data", "stringData.key", "secret", applyTo=applies))
    assert record["mutation"]["patch"] == [
        {"op": "add", "path": "/stringData", "value": "**masked**"}
    ]
    assert "secret" not in orjson.dumps(record["mutation"]["patch"]).decode().replace(
        "/stringData", ""
    )


def test_a_patch_that_is_too_large_is_left_out_and_that_is_said() -> None:
    record = recorded(
        pod("app:v1"), assign("large", "spec.large", "x" * 10_000), maxRecordBytes=2048
    )
    assert "patch" not in record["mutation"]
    assert "mutation.patch" in record["truncated"]
    assert record["mutation"]["passes"] == [["Assign//large:0"]]
