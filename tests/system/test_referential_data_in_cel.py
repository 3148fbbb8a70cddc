"""Templates in CEL that read referential data: withheld without it, right as soon as it is there."""

import json
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from tests.system.conftest import ALL_OPERATIONS, control_plane
from tests.system.generated import NO_WAIT, POLICIES
from tests.system.replicas import (
    CONFIG_MAPS,
    CONSTRAINTS,
    NAMESPACE,
    TEMPLATES,
    WORKLOADS,
    Plane,
    Replica,
    config_map,
    constraint,
    template,
    until,
)

CONFIG = f"/apis/config.gatekeeper.sh/v1alpha1/namespaces/{NAMESPACE}/configs/config"
TEMPLATE = f"{TEMPLATES}/unique"
CONSTRAINT = f"{CONSTRAINTS}/unique/words"
AUDIT = ("--operation=audit", "--audit-interval=2")


@pytest.fixture
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Plane]:
    """A control plane whose Config syncs nothing yet."""
    with control_plane(tmp_path_factory.mktemp("referential")) as made:
        yield made


def unique() -> dict[str, Any]:
    """A template that denies a ConfigMap whose word another one has as its marker."""
    maps = f"variables.inventory.?namespace[?'{WORKLOADS}'].?v1.?ConfigMap.orValue({{}})"
    word = "variables.anyObject.?data.?deny.orValue('none')"
    source = {
        "variables": [
            {"name": "maps", "expression": maps},
            {
                "name": "owners",
                "expression": "variables.maps.filter(name, "
                f"variables.maps[name].?data.?marker.orValue('') == {word})",
            },
        ],
        "validations": [
            {
                "expression": "size(variables.owners) == 0",
                "messageExpression": "'taken by ' + variables.owners.join(', ')",
            }
        ],
    }
    document = template("Unique")
    code = [{"engine": "K8sNativeValidation", "source": source}]
    document["spec"]["targets"] = [{"target": "admission.k8s.gatekeeper.sh", "code": code}]
    needs = [[{"groups": [""], "versions": ["v1"], "kinds": ["ConfigMap"]}]]
    document["metadata"]["annotations"] = {
        "metadata.gatekeeper.sh/requires-sync-data": f'"{json.dumps(needs)}"'
    }
    return document


def config(*kinds: str) -> dict[str, Any]:
    """A Config that syncs these kinds of the core's group."""
    synced = [{"group": "", "version": "v1", "kind": kind} for kind in kinds]
    return {
        "apiVersion": "config.gatekeeper.sh/v1alpha1",
        "kind": "Config",
        "metadata": {"name": "config", "namespace": NAMESPACE},
        "spec": {"sync": {"syncOnly": synced}},
    }


def put_config_map(plane: Plane, name: str, marker: str) -> None:
    """A ConfigMap that has a word as its marker."""
    document = config_map("", name)
    document["data"] = {"marker": marker}
    plane.api.apply(f"{CONFIG_MAPS}/{name}", document)


def denial(replica: Replica, word: str) -> str:
    """Returns a replica's denial of a ConfigMap with this word; empty if there is none."""
    answer = replica.admit(config_map(word))
    return "" if answer["allowed"] else str(answer["status"]["message"])


def codes(plane: Plane) -> list[str | None]:
    """Returns the template's error codes, by replica."""
    return [(one.get("errors") or [{}])[0].get("code") for one in plane.by_pod(TEMPLATE)]


@pytest.mark.slow
def test_a_template_in_cel_follows_referential_data_and_is_withheld_without_it(
    plane: Plane,
) -> None:
    """Two replicas, one of them with its first answer after the data is there."""
    with ExitStack() as stack:
        first = run(plane, stack, "cel-data-0")
        plane.put_template(unique())
        plane.put_constraint(constraint("words", "", "Unique"))
        put_config_map(plane, "marker", "mine")
        until(lambda: codes(plane) == ["missing_data"], "the template is withheld")
        assert plane.by_pod(TEMPLATE)[0]["missingData"]
        assert denial(first, "mine") == ""

        plane.api.apply(CONFIG, config("ConfigMap"))
        until(lambda: denial(first, "mine") == "[words] taken by marker", "the data is read")
        assert denial(first, "other") == ""
        put_config_map(plane, "second", "mine")
        until(lambda: "marker, second" in denial(first, "mine"), "what is added is read")
        put_config_map(plane, "marker", "other")
        until(lambda: denial(first, "mine") == "[words] taken by second", "what changes is read")

        late = run(plane, stack, "cel-data-1")
        assert denial(late, "mine") == "[words] taken by second", (
            "the first answer of a ready replica"
        )
        assert denial(late, "other") == "[words] taken by marker"
        plane.api.request("DELETE", f"{CONFIG_MAPS}/second")
        for replica in (first, late):
            until(lambda replica=replica: denial(replica, "mine") == "", "what is deleted is gone")

        put_config_map(plane, "third", "denied")
        violator = config_map("denied", "violator")
        plane.api.apply(f"{CONFIG_MAPS}/violator", violator)

        def audited() -> list[tuple[str, str]]:
            status = plane.api.request("GET", CONSTRAINT)["status"]
            return [(one["name"], one["message"]) for one in status.get("violations", ())]

        until(lambda: audited() == [("violator", "taken by third")], "the audit reads it, too")
        has_no_policy(plane)

        plane.api.apply(CONFIG, config())
        for replica in (first, late):
            until(lambda replica=replica: denial(replica, "other") == "", "the data is gone")
        until(lambda: codes(plane) == ["missing_data"] * 2, "the template is withheld again")
        plane.delete_templates()


def run(plane: Plane, stack: ExitStack, name: str) -> Replica:
    """A replica that is ready, and whose Pod says so."""
    stack.callback(plane.delete_pod, name)
    replica = stack.enter_context(Replica(plane, name, *ALL_OPERATIONS, NO_WAIT, *AUDIT))
    replica.wait_ready()
    plane.mark_pod(name, ready=True)
    return replica


def has_no_policy(plane: Plane) -> None:
    """The API server has no such data: its status says why there is no policy of its own."""

    def messages() -> list[str]:
        entries = [one.get("vapGenerationStatus", {}) for one in plane.by_pod(TEMPLATE)]
        return [str(one.get("warning", "")) for one in entries if one.get("state") == "error"]

    until(
        lambda: len(messages()) == 2 and all("variables.inventory" in one for one in messages()),
        "both replicas say why",
    )
    assert plane.api.request("GET", POLICIES)["items"] == []
