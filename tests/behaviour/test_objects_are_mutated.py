"""``/v1/mutate`` of a server with mutators from files: patches, order of checks, faults, reloads."""

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.behaviour.serving import (
    Server,
    await_true,
    pod,
    replace,
    review,
    thing,
    write_policies,
)
from tests.json_patch import apply_patch
from tests.policies import config
from tests.webhook.mutation.documents import assign, image, label, modify_set

MUTATION = "--operation=webhook,mutation-webhook"

EXCLUDED = config(
    match=[
        {"excludedNamespaces": ["spared"], "processes": ["mutation-webhook"]},
        {"excludedNamespaces": ["unreviewed"], "processes": ["webhook"]},
    ],
    namespace="gatekeeper-system",
)

BROKEN = assign("broken", "spec.text.x", 1, match={"name": "odd*"})


@pytest.fixture(scope="module")
def mutating(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server with some mutators, one of which fails for Pods named odd."""
    documents = [
        EXCLUDED,
        label("owner", "owner", "nobody"),
        image("registry", "spec.containers[name: *].image", assignDomain="registry.example"),
        modify_set("drop", "spec.containers[name: *].drop", "merge", ["ALL"]),
        BROKEN,
    ]
    folder = tmp_path_factory.mktemp("mutators")
    policies = write_policies(folder, *map(json.dumps, documents))
    with Server(policies, MUTATION, "--mutation-annotations", "--log-mutations") as running:
        yield running.ready()


def workload(name: str = "web", namespace: str = "default", **metadata: Any) -> dict[str, Any]:
    """A Pod with a container."""
    return {
        **thing("Pod", name, namespace=namespace, **metadata),
        "spec": {"text": "t", "containers": [{"name": "a", "image": "app:v1"}]},
    }


def mutate(server: Server, obj: dict[str, Any], **request: Any) -> dict[str, Any]:
    """The response of /v1/mutate."""
    return server.post(review(obj, **request), "/v1/mutate?timeout=30s").verdict


def patched(obj: dict[str, Any], verdict: dict[str, Any]) -> Any:
    """The object with an answer's patch applied."""
    assert verdict["allowed"] is True
    assert verdict["patchType"] == "JSONPatch"
    return apply_patch(obj, json.loads(base64.b64decode(verdict["patch"])))


def test_an_object_gets_what_the_mutators_say_and_who_said_it(mutating: Server) -> None:
    obj = workload()
    found = patched(obj, mutate(mutating, obj))
    assert found["spec"]["containers"] == [
        {"name": "a", "image": "registry.example/app:v1", "drop": ["ALL"]}
    ]
    metadata = found["metadata"]
    assert metadata["labels"] == {"owner": "nobody"}
    assert metadata["annotations"]["gatekeeper.sh/mutations"] == (
        "AssignImage//registry:0, AssignMetadata//owner:0, ModifySet//drop:0"
    )
    again = mutate(mutating, found)
    assert "patch" not in again
    assert again["status"]["message"] == "Resource was not mutated"
    logged = mutating.wait_for("Mutation applied", resource_name="web")
    assert logged["iteration_0"].startswith("AssignImage//registry:0, AssignMetadata//owner:0")
    assert logged["event_type"] == "mutation_applied"


@pytest.mark.parametrize(
    ("obj", "request_", "message"),
    [
        (workload(), {"operation": "DELETE"}, "Mutating only on create or update"),
        (
            thing("Assign", "a", "mutations.gatekeeper.sh/v1"),
            {},
            "Not mutating gatekeeper resources",
        ),
        (
            workload(namespace="spared"),
            {},
            "Namespace is set to be ignored by Gatekeeper config",
        ),
        (
            thing("Namespace", "spared"),
            {"namespace": "spared"},
            "Namespace is set to be ignored by Gatekeeper config",
        ),
        (
            workload(),
            {"userInfo": {"username": "system:serviceaccount:gatekeeper-system:gatekeeper-admin"}},
            "Gatekeeper does not self-manage",
        ),
    ],
)
def test_what_is_not_mutated_says_why(
    mutating: Server, obj: dict[str, Any], request_: dict[str, Any], message: str
) -> None:
    verdict = mutate(mutating, obj, **request_)
    assert verdict["allowed"] is True
    assert "patch" not in verdict
    assert verdict["status"]["message"] == message


def test_a_namespace_excluded_from_review_alone_is_mutated(mutating: Server) -> None:
    obj = workload(namespace="unreviewed")
    assert patched(obj, mutate(mutating, obj))["metadata"]["labels"] == {"owner": "nobody"}


def test_a_mutator_that_cannot_be_applied_is_left_out_with_a_warning(mutating: Server) -> None:
    obj = workload("odd")
    verdict = mutate(mutating, obj)
    assert patched(obj, verdict)["metadata"]["labels"] == {"owner": "nobody"}
    (warning,) = verdict["warnings"]
    assert "Assign.mutations.gatekeeper.sh /broken is not applied: mismatch" in warning
    assert (mutating.metric('waddle_mutators_skipped_total{mutator_kind="Assign"}') or 0) > 0
    mutating.wait_for(
        "a mutator could not be applied", mutator="Assign.mutations.gatekeeper.sh /broken"
    )


def test_a_request_without_an_object_is_refused(mutating: Server) -> None:
    verdict = mutate(mutating, workload(), object=None)
    assert verdict["allowed"] is False
    assert verdict["status"]["code"] == 500


def test_the_namespace_of_a_request_is_lent_and_not_patched_in(mutating: Server) -> None:
    obj = workload()
    del obj["metadata"]["namespace"]
    found = patched(obj, mutate(mutating, obj, namespace="default"))
    assert "namespace" not in found["metadata"]


def test_metrics_have_gatekeeper_s_names(mutating: Server) -> None:
    mutate(mutating, workload())
    assert (
        mutating.metric('gatekeeper_mutation_request_count_total{mutation_status="success"}') or 0
    ) > 0
    assert mutating.metric('gatekeeper_mutators{status="active"}') == 4
    assert mutating.metric("gatekeeper_mutator_conflicting_count") == 0
    assert (mutating.metric('gatekeeper_mutation_system_iterations_count{success="true"}') or 0) > 0


def test_a_fault_refuses_the_request_where_that_is_chosen(tmp_path: Path) -> None:
    policies = write_policies(tmp_path, json.dumps(BROKEN))
    with Server(policies, MUTATION, "--mutation-on-error=reject") as server:
        server.ready()
        verdict = mutate(server, workload("odd"))
        assert verdict["allowed"] is False
        assert verdict["status"]["code"] == 500
        assert "failed for  Pod default odd: mismatch" in verdict["status"]["message"]
        assert mutate(server, pod())["allowed"] is True


@pytest.mark.parametrize("alone", [True, False], ids=["one", "with another below it"])
def test_a_patch_larger_than_an_object_may_be_refuses_the_request(
    tmp_path: Path, *, alone: bool
) -> None:
    documents = [assign("large", "spec.containers[name: *].text", {"x": "y" * 20_000})]
    if not alone:
        documents.append(assign("small", "spec.containers[name: *].text.z", 1))
    policies = write_policies(tmp_path, *map(json.dumps, documents))
    with Server(policies, MUTATION) as server:
        server.ready()
        few = {**workload(), "spec": {"containers": [{"name": "c"}] * 10}}
        assert (
            len(patched(few, mutate(server, few))["spec"]["containers"][9]["text"]["x"]) == 20_000
        )
        many = {**workload(), "spec": {"containers": [{"name": "c"}] * 1000}}
        verdict = mutate(server, many)
        assert verdict["allowed"] is False
        assert verdict["status"]["code"] == 500
        assert "patch is larger than an object may be" in verdict["status"]["message"]
        assert "patch" not in verdict
        assert mutate(server, pod())["allowed"] is True


def test_mutators_follow_the_files_and_a_broken_one_leaves_the_last_good(tmp_path: Path) -> None:
    policies = write_policies(tmp_path, json.dumps(label("owner", "owner", "a")))
    with Server(policies, MUTATION) as server:
        server.ready()
        obj = pod()

        def owner() -> object:
            verdict = mutate(server, obj)
            return (
                patched(obj, verdict)["metadata"]["labels"]["owner"] if "patch" in verdict else ""
            )

        assert owner() == "a"
        file = next(policies.iterdir())
        replace(file, json.dumps(label("owner", "owner", "b")))
        await_true(lambda: owner() == "b")
        broken = label("owner", "owner", "c")
        broken["spec"]["location"] = "metadata..labels"
        replace(file, json.dumps(broken))
        server.wait_for("policy cannot be used; the earlier version stays in force")
        assert owner() == "b"
        conflict = [assign("x", "spec.l[name: a].b", 1), assign("y", "spec.l.b", 1)]
        replace(file, "\n---\n".join(map(json.dumps, conflict)))
        server.wait_for("mutators in force", conflicting=2)
        assert owner() == ""


def test_a_mutator_that_cannot_work_is_refused_when_it_is_brought_in(mutating: Server) -> None:
    broken = label("owner", "owner", "c")
    broken["spec"]["location"] = "metadata..labels"
    verdict = mutating.admit(broken)
    assert verdict["allowed"] is False
    assert verdict["status"]["code"] == 422
    assert "invalid location format for AssignMetadata owner" in verdict["status"]["message"]
    assert mutating.admit(label("owner", "owner", "c"))["allowed"] is True
    assert mutating.admit(broken, operation="DELETE")["allowed"] is True
    nowhere = modify_set("nowhere", "", "merge", [])
    assert "has no location" in mutating.admit(nowhere)["status"]["message"]
    template = thing("ExpansionTemplate", "e", "expansion.gatekeeper.sh/v1alpha1")
    assert "empty source field" in mutating.admit(template)["status"]["message"]


def test_without_the_operation_there_is_no_such_path(tmp_path: Path) -> None:
    policies = write_policies(tmp_path, json.dumps(label("owner", "owner", "a")))
    with Server(policies) as server:
        server.ready()
        answer = server.post(review(pod()), "/v1/mutate")
        assert answer.status == 404
        assert answer.json()["message"] == (
            "no such path: /v1/mutate; there are /v1/admit, /v1/admit/fail, /v1/admit/ignore, "
            "/v1/admitlabel; /v1/mutate needs --operation=mutation-webhook"
        )


PREVIEWED = label("soon", "soon", "yes")
PREVIEWED["metadata"]["annotations"] = {"waddle.dev/mode": "preview"}


def test_a_previewed_mutator_changes_nothing_and_is_counted(tmp_path: Path) -> None:
    documents = [label("owner", "owner", "nobody"), PREVIEWED]
    policies = write_policies(tmp_path, *map(json.dumps, documents))
    with Server(policies, MUTATION) as server:
        server.ready()
        obj = pod()
        found = patched(obj, mutate(server, obj))
        assert found["metadata"]["labels"] == {"owner": "nobody"}
        outcomes = {
            (name, outcome): server.metric(
                f'waddle_mutator_outcomes_total{{mutator_kind="AssignMetadata",'
                f'mutator_name="{name}",outcome="{outcome}"}}'
            )
            for name, outcome in (("owner", "applied"), ("soon", "previewed"))
        }
        assert outcomes == {("owner", "applied"): 1, ("soon", "previewed"): 1}


def test_a_change_that_is_undone_again_and_again_is_reported_as_a_fight(tmp_path: Path) -> None:
    policies = write_policies(tmp_path, json.dumps(label("owner", "owner", "nobody")))
    with Server(policies, MUTATION, "--mutation-fights-per-hour=3") as server:
        server.ready()
        for _ in range(3):
            mutate(server, workload("fought"), operation="UPDATE")
            mutate(server, workload("made"), operation="CREATE")
        fighting = 'waddle_mutators_fighting{mutator_kind="AssignMetadata",mutator_name="owner"}'
        assert server.metric(fighting) is None
        mutate(server, workload("fought"), operation="UPDATE")
        assert server.metric(fighting) == 1
        event = server.wait_for(
            "mutators fight: the same change is made to an object again and again"
        )
        assert event["object"] == "Pod default/fought"
        assert event["mutators"] == ["AssignMetadata.mutations.gatekeeper.sh /owner"]
