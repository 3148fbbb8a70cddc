"""Verdicts, codes and messages over HTTPS."""

import ssl
from typing import Any

import pytest

from tests.behaviour.serving import Server, pod, review, thing


def test_a_violation_denies_with_the_constraint_s_name_in_front(server: Server) -> None:
    verdict = server.admit(pod(team="a"))
    assert verdict["allowed"] is False
    assert verdict["uid"] == "705ab4f5-6393-11e8-b7cc-42010a800002"
    assert verdict["status"]["code"] == 403
    assert verdict["status"]["reason"] == "Forbidden"
    assert verdict["status"]["message"] == "[needs-owner] label <owner> is missing"


def test_a_warning_allows_with_code_299(server: Server) -> None:
    verdict = server.admit(pod(owner="me"))
    assert verdict["allowed"] is True
    assert verdict["status"]["code"] == 299
    assert verdict["warnings"] == ["[likes-team] label <team> is missing"]


def test_a_denial_carries_warnings_too(server: Server) -> None:
    verdict = server.admit(pod())
    assert verdict["status"]["code"] == 403
    assert verdict["warnings"] == ["[likes-team] label <team> is missing"]


def test_dryrun_says_nothing_to_the_user(server: Server) -> None:
    verdict = server.admit(pod(owner="me", team="a"))
    assert verdict["allowed"] is True
    assert verdict["status"]["code"] == 200
    assert "warnings" not in verdict


@pytest.mark.parametrize("version", ["v1", "v1beta1"])
def test_the_answer_has_the_version_of_the_question(server: Server, version: str) -> None:
    answer = server.post(review(pod(), version=version)).json()
    assert answer["apiVersion"] == f"admission.k8s.io/{version}"
    assert answer["kind"] == "AdmissionReview"


def test_delete_reviews_the_old_object(server: Server) -> None:
    verdict = server.admit(pod(team="a"), operation="DELETE")
    assert verdict["status"]["message"] == "[needs-owner] label <owner> is missing"


def test_delete_without_an_old_object_is_refused_in_gatekeeper_s_words(server: Server) -> None:
    verdict = server.admit(pod(), operation="DELETE", oldObject=None)
    assert verdict["allowed"] is False
    assert verdict["status"]["code"] == 500
    assert "oldObject cannot be nil for DELETE operations" in verdict["status"]["message"]
    assert verdict["status"]["message"].startswith("error reviewing resource web: ")


@pytest.mark.parametrize(
    "user",
    [
        "system:serviceaccount:gatekeeper-system:gatekeeper-admin",
        "system:serviceaccount:waddle-system:waddle",
    ],
)
def test_the_webhook_does_not_police_itself(server: Server, user: str) -> None:
    verdict = server.admit(pod(), userInfo={"username": user})
    assert verdict["allowed"] is True
    assert verdict["status"]["message"] == "Gatekeeper does not self-manage"


def test_a_failed_evaluation_is_a_violation_of_its_constraint(server: Server) -> None:
    verdict = server.admit(thing("Secret"))
    assert verdict["status"]["code"] == 403
    assert verdict["status"]["message"].startswith("[failing] ")
    assert "conflict" in verdict["status"]["message"]


def test_dry_run_is_decided_alike_and_counted_apart(server: Server) -> None:
    series = (
        'gatekeeper_validation_request_count_total{admission_dryrun="true",admission_status="deny"}'
    )
    before = server.metric(series) or 0
    assert server.admit(pod(), dryRun=True)["status"]["code"] == 403
    assert server.metric(series) == before + 1


def test_every_violation_is_logged_with_gatekeeper_s_fields(server: Server) -> None:
    server.admit(pod(team="a", cost="1"), userInfo={"username": "mallory\n\x1b[31m\x9b"})
    event = server.wait_for(
        "denied admission: label <owner> is missing", request_username="mallory\n\x1b[31m\x9b"
    )
    expected = {
        "level": "info",
        "logger": "webhook",
        "hookType": "validation",
        "process": "admission",
        "semantic": True,
        "event_type": "violation",
        "constraint_name": "needs-owner",
        "constraint_group": "constraints.gatekeeper.sh",
        "constraint_api_version": "v1beta1",
        "constraint_kind": "RequiredLabel",
        "constraint_action": "deny",
        "constraint_enforcement_actions": [],
        "details": {},
        "resource_group": "",
        "resource_api_version": "v1",
        "resource_kind": "Pod",
        "resource_namespace": "default",
        "resource_name": "web",
    }
    assert {name: event.get(name) for name in expected} == expected


def test_each_constraint_has_a_series_of_violations(server: Server) -> None:
    series = (
        'waddle_constraint_violations_total{constraint_kind="RequiredLabel",'
        'constraint_name="notes-cost",enforcement_action="dryrun"}'
    )
    before = server.metric(series) or 0
    server.admit(pod())
    assert server.metric(series) == before + 1


def test_a_probe_without_a_body_gets_gatekeeper_s_answer(server: Server) -> None:
    for path in ("/v1/admit", "/v1/admitlabel"):
        answer = server.post(b"", path, method="GET")
        assert answer.verdict["status"] == {
            "metadata": {},
            "message": "request body is empty",
            "code": 400,
        }


def test_only_tls_1_3_is_spoken_by_default(server: Server) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    with pytest.raises(ssl.SSLError):
        server.connect(context)
    with server.raw() as connection:
        assert connection.version() == "TLSv1.3"


class TestSubmittedResources:
    """Templates and constraints on their way into a cluster."""

    TEMPLATE = "templates.gatekeeper.sh/v1"
    CONSTRAINT = "constraints.gatekeeper.sh/v1beta1"

    def test_a_template_without_targets_is_refused_with_422(self, server: Server) -> None:
        verdict = server.admit(thing("ConstraintTemplate", "a", self.TEMPLATE))
        assert verdict["status"]["code"] == 422
        assert 'field "targets" not specified' in verdict["status"]["message"]

    @pytest.mark.parametrize(
        ("kind", "properties", "message"),
        [
            (
                "A",
                {"a": {"type": "string", "maxLength": "a"}},
                '[a].maxLength: Invalid value: "string": must be an integer of 64 bits',
            ),
            ("A", {"a": {"type": "integer", "multipleOf": 0}}, "[a].multipleOf: Invalid value: 0"),
            ("ConstraintTemplate", {}, "is the kind of the templates themselves"),
            ("A" * 60, {}, "must be no more than 63 characters"),
        ],
        ids=["a keyword of a wrong type", "no value fits", "its own kind", "a long kind"],
    )
    def test_a_template_that_no_crd_can_be_made_of_is_refused_with_422(
        self, server: Server, kind: str, properties: dict[str, Any], message: str
    ) -> None:
        schema = {"type": "object", "properties": properties}
        document = thing("ConstraintTemplate", kind.lower(), self.TEMPLATE)
        document["spec"] = {
            "crd": {"spec": {"names": {"kind": kind}, "validation": {"openAPIV3Schema": schema}}},
            "targets": [{"target": "admission.k8s.gatekeeper.sh", "rego": "package a"}],
        }
        verdict = server.admit(document)
        assert verdict["status"]["code"] == 422
        assert message in verdict["status"]["message"]

    def test_a_constraint_deeper_than_policies_may_be_is_refused_with_422(
        self, server: Server
    ) -> None:
        value: Any = "x"
        for _ in range(450):
            value = {"a": value}
        deep = thing("RequiredLabel", "a", self.CONSTRAINT) | {"spec": {"parameters": value}}
        verdict = server.admit(deep)
        assert verdict["status"]["code"] == 422
        assert "nested deeper than 400 levels" in verdict["status"]["message"]

    def test_a_roll_out_without_bound_is_refused_with_422(self, server: Server) -> None:
        endless = thing("RequiredLabel", "a", self.CONSTRAINT)
        endless["metadata"]["annotations"] = {"waddle.dev/rollout": "dryrun quiet=9999999999h"}
        verdict = server.admit(endless)
        assert verdict["status"]["code"] == 422
        assert "is longer than 8784h" in verdict["status"]["message"]

    def test_a_constraint_that_its_schema_refuses_is_refused_with_422(self, server: Server) -> None:
        wrong = thing("RequiredLabel", "a", self.CONSTRAINT) | {
            "spec": {"parameters": {"label": 1}}
        }
        assert server.admit(wrong)["status"]["code"] == 422

    def test_a_constraint_without_a_template_is_refused_with_422(self, server: Server) -> None:
        verdict = server.admit(thing("Nobody", "a", self.CONSTRAINT))
        assert verdict["status"]["code"] == 422

    def test_an_unknown_enforcement_action_is_refused_with_500(self, server: Server) -> None:
        wrong = thing("RequiredLabel", "a", self.CONSTRAINT) | {"spec": {"enforcementAction": "no"}}
        verdict = server.admit(wrong)
        assert verdict["status"]["code"] == 500
        assert verdict["status"]["message"].startswith('unrecognized enforcementAction: "no"')

    def test_a_good_constraint_is_admitted(self, server: Server) -> None:
        good = thing("RequiredLabel", "a", self.CONSTRAINT)
        assert server.admit(good)["allowed"] is True

    def test_a_name_beyond_63_characters_is_refused_with_500(self, server: Server) -> None:
        verdict = server.admit(thing("RequiredLabel", "a" * 64, self.CONSTRAINT))
        assert verdict["status"]["code"] == 500
        assert verdict["status"]["message"] == (
            "resource cannot have metadata.name larger than 63 char; length: 64"
        )

    def test_a_config_of_another_name_is_refused_with_422(self, server: Server) -> None:
        verdict = server.admit(thing("Config", "other", "config.gatekeeper.sh/v1alpha1"))
        assert verdict["status"]["code"] == 422
        assert verdict["status"]["message"] == "config resource must have name 'config'"

    def test_deleting_a_collection_is_allowed(self, server: Server) -> None:
        template = thing("ConstraintTemplate", "", self.TEMPLATE)
        assert server.admit(template, operation="DELETE")["allowed"] is True
