"""A template whose only code is CEL, on a real API server: with its engine, and without."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.cluster import ApiError
from tests.conformance.gatekeeper import waddle
from tests.system.conftest import ALL_OPERATIONS, control_plane
from tests.system.replicas import (
    CONFIG_MAPS,
    CONSTRAINTS,
    NAMESPACE,
    TEMPLATES,
    Plane,
    Replica,
    config_map,
    constraint,
    template,
    until,
)

OFF = "--enable-k8s-native-validation=false"


@pytest.fixture(scope="module")
def taken_over(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Plane]:
    """A cluster that holds a template in CEL and a constraint that denies."""
    with control_plane(tmp_path_factory.mktemp("cel")) as plane:
        document = template("InCel")
        expressions = {
            "expression": "object.data.deny != variables.params.word",
            "messageExpression": "'denied by ' + variables.params.word",
        }
        code = [{"engine": "K8sNativeValidation", "source": {"validations": [expressions]}}]
        document["spec"]["targets"] = [{"target": "admission.k8s.gatekeeper.sh", "code": code}]
        with Replica(plane, "maker", *ALL_OPERATIONS) as maker:
            maker.wait_ready()
            plane.put_template(document)
            plane.put_constraint(constraint("words", "bad", "InCel"))
        plane.delete_pod("maker")
        yield plane


def created(plane: Plane, word: str) -> str:
    """Returns the API server's refusal of this ConfigMap; empty if it is created."""
    try:
        plane.api.request("POST", f"{CONFIG_MAPS}?dryRun=All", config_map(word))
    except ApiError as error:
        if error.status != 403:
            raise
        return error.body
    return ""


def of_pod(plane: Plane, path: str, name: str) -> dict[str, Any]:
    """Returns a replica's entry in an object's status; empty before there is one."""
    return next((one for one in plane.by_pod(path) if one["id"] == name), {})


def test_it_denies_what_it_must_and_lets_compliant_objects_pass(taken_over: Plane) -> None:
    plane = taken_over
    with Replica(plane, "cel-on", *ALL_OPERATIONS) as replica:
        replica.wait_ready()
        plane.register(replica.ports["admission"])
        try:
            until(lambda: created(plane, "bad") != "", "what violates is denied")
            assert "[words] denied by bad" in created(plane, "bad")
            assert created(plane, "good") == ""
        finally:
            plane.unregister()
        assert replica.metric("gatekeeper_constraint_templates_with_cel") == 1
        assert replica.metric("waddle_constraints_without_engine") == 0
        path = f"{CONSTRAINTS}/incel/words"
        until(lambda: of_pod(plane, path, "cel-on").get("enforced") is True, "its status says so")
    plane.delete_pod("cel-on")


def test_with_the_engine_switched_off_it_warns_and_everything_says_what_is_not_enforced(
    taken_over: Plane,
) -> None:
    plane = taken_over
    with Replica(plane, "cel-off", *ALL_OPERATIONS, OFF) as replica:
        replica.wait_ready()
        plane.mark_pod("cel-off", ready=True)
        plane.register(replica.ports["admission"])
        counted = 'waddle_policy_faults_total{answer="warn",cause="engine",constraint_kind="InCel"}'
        try:
            # That the API server asks shows in what is counted: nothing is denied.
            until(
                lambda: created(plane, "good") == "" and (replica.metric(counted) or 0) > 0,
                "a compliant object is let in, and counted as not decided",
            )
            assert created(plane, "bad") == ""
        finally:
            plane.unregister()
        for word in ("bad", "good"):
            answer = replica.admit(config_map(word))
            assert answer["allowed"]
            (warning,) = answer["warnings"]
            assert warning.startswith("[words] ")
            assert "K8sNativeValidation (CEL)" in warning
        assert replica.metric("gatekeeper_constraint_templates_with_cel") == 1
        assert replica.metric("waddle_constraints_without_engine") == 1
        for path in (f"{TEMPLATES}/incel", f"{CONSTRAINTS}/incel/words"):
            until(lambda path=path: of_pod(plane, path, "cel-off").get("errors"), f"{path} says so")
            (error,) = of_pod(plane, path, "cel-off")["errors"]
            assert error["code"] == "engine"
            assert "K8sNativeValidation (CEL)" in error["message"]
        assert of_pod(plane, f"{CONSTRAINTS}/incel/words", "cel-off")["enforced"] is False
        shown = waddle("status", "--kubeconfig", plane.cluster.kubeconfig, "-n", NAMESPACE)
        assert "InCel/words" in shown.stdout
        assert "K8sNativeValidation (CEL)" in shown.stdout
    plane.delete_pod("cel-off")
