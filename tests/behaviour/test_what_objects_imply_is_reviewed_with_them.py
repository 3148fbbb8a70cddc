"""A Deployment with a bad Pod template is refused when it is made, as its Pods would be."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.behaviour.serving import REQUIRED_LABELS, Server, constraint, thing, write_policies
from tests.policies import expansion_template
from tests.webhook.mutation.documents import assign, label

GENERATED = {"source": "Generated"}


def template(
    name: str, kind: str, source: str, makes: tuple[str, str], action: str = ""
) -> dict[str, Any]:
    """An ExpansionTemplate of a kind of apps/v1 or batch/v1."""
    found = expansion_template(
        name,
        applyTo=[{"groups": ["apps", "batch"], "versions": ["v1"], "kinds": [kind]}],
        templateSource=source,
        generatedGVK={"group": makes[0], "version": "v1", "kind": makes[1]},
    )
    if action:
        found["spec"]["enforcementAction"] = action
    return found


DOCUMENTS = [
    template("deployments", "Deployment", "spec.template", ("", "Pod")),
    template("cronjobs", "CronJob", "spec.jobTemplate", ("batch", "Job")),
    template("jobs", "Job", "spec.template", ("", "Pod")),
    template("daemons", "DaemonSet", "spec.template", ("", "Pod"), "warn"),
    label("cost", "cost", "none", match={**GENERATED, "name": "settled-*"}),
    assign("owner", "spec.hostname", "x", match={"source": "Original"}),
]


@pytest.fixture(scope="module")
def expanding(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server with ExpansionTemplates, a constraint on Pods and mutators of what is generated."""
    policies = write_policies(
        tmp_path_factory.mktemp("expansion"),
        REQUIRED_LABELS,
        constraint("needs-cost", "cost"),
        *map(json.dumps, DOCUMENTS),
    )
    with Server(policies) as running:
        yield running.ready()


def workload(kind: str = "Deployment", name: str = "web", **labels: str) -> dict[str, Any]:
    """A Deployment or the like whose Pods have labels."""
    pod = {"metadata": {"labels": labels}, "spec": {"containers": []}}
    return {
        **thing(kind, name, "apps/v1", namespace="default"),
        "spec": {"template": pod},
    }


def test_a_deployment_is_refused_for_the_pods_that_it_would_make(expanding: Server) -> None:
    verdict = expanding.admit(workload())
    assert verdict["allowed"] is False
    assert verdict["status"]["code"] == 403
    assert verdict["status"]["message"] == (
        "[needs-cost] [Implied by deployments] label <cost> is missing"
    )
    assert expanding.admit(workload(cost="1"))["allowed"] is True


def test_a_mutator_of_what_is_generated_makes_it_comply(expanding: Server) -> None:
    assert expanding.admit(workload(name="settled-web"))["allowed"] is True


def test_a_chain_is_followed_to_its_end(expanding: Server) -> None:
    job = {"spec": {"template": {"metadata": {}, "spec": {}}}}
    cron = {
        **thing("CronJob", "nightly", "batch/v1", namespace="default"),
        "spec": {"jobTemplate": job},
    }
    message = expanding.admit(cron)["status"]["message"]
    assert message == "[needs-cost] [Implied by jobs] label <cost> is missing"


def test_a_template_s_own_action_is_what_its_results_have(expanding: Server) -> None:
    verdict = expanding.admit(workload("DaemonSet"))
    assert verdict["allowed"] is True
    (warning,) = verdict["warnings"]
    assert warning == "[needs-cost] [Implied by daemons] label <cost> is missing"


def test_what_is_deleted_is_expanded_with_its_old_object(expanding: Server) -> None:
    verdict = expanding.admit(workload(), operation="DELETE")
    assert verdict["allowed"] is False
    assert "[Implied by deployments]" in verdict["status"]["message"]


def test_an_object_that_cannot_be_expanded_is_decided_by_itself_with_a_warning(
    expanding: Server,
) -> None:
    obj = {**workload(), "spec": {}}
    verdict = expanding.admit(obj)
    assert verdict["allowed"] is True
    (warning,) = verdict["warnings"]
    assert 'unable to expand object: could not find source field "spec.template"' in warning
    expanding.wait_for("objects that a reviewed object creates were not reviewed with it")


def test_an_object_that_makes_itself_too_large_to_expand_is_refused(expanding: Server) -> None:
    """Decided by itself it would be let in with the Pods that it implies."""

    def padded(count: int) -> dict[str, Any]:
        made = workload()
        made["spec"]["template"] |= {f"field-{at}": "x" for at in range(count)}
        return made

    verdict = expanding.admit(padded(100_001))
    assert verdict["allowed"] is False
    assert verdict["status"]["code"] == 422
    assert verdict["status"]["reason"] == "Undecidable"
    assert (
        "it implies more than 100 others, or others that are too large"
        in (verdict["status"]["message"])
    )
    # As large a one that implies less is expanded.
    verdict = expanding.admit(padded(90_000))
    assert "[Implied by deployments]" in verdict["status"]["message"]


def test_expansion_can_be_left_out(tmp_path: Path) -> None:
    policies = write_policies(
        tmp_path, REQUIRED_LABELS, constraint("needs-cost", "cost"), json.dumps(DOCUMENTS[0])
    )
    with Server(policies, "--enable-generator-resource-expansion=false") as server:
        server.ready()
        assert server.admit(workload())["allowed"] is True
