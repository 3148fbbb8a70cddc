"""The real Gatekeeper and a replica in one cluster: the same random reviews, the same answers."""

import itertools
import json
import os
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from loadtest.bench.gatekeeper import NAMESPACE as GATEKEEPER_NAMESPACE
from tests.behaviour import serving
from tests.patience import PATIENCE_SECONDS, until
from tests.system import audited, random_reviews
from tests.system.admission_calls import Connected
from tests.system.conftest import control_plane
from tests.system.peer import Gatekeeper
from tests.system.replicas import NAMESPACE, Plane, Replica

REVIEWS = int(os.environ.get("WADDLE_COMPARED_REVIEWS", "600"))
SEED = int(os.environ.get("WADDLE_COMPARED_SEED", "1"))
ENFORCED = {"all", "namespaces", "names", "labels", "label-exists", "namespace-labels"} | {
    "warns",
    "denies",
}
"""The constraints that say something of the object by which it is told that all is loaded."""

SETTLED = 120
"""Reviews that are answered alike before the comparison begins: each constraint is in several."""

SHOWN = 5
"""Of the reviews that are answered otherwise."""


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Plane]:
    """A control plane with Gatekeeper's CRDs, namespaces, and an object that others are like."""
    folder = tmp_path_factory.mktemp("compared")
    with control_plane(folder, install=Gatekeeper.install) as made:
        for name, labels in random_reviews.NAMESPACES.items():
            metadata = {"name": name, "labels": labels}
            body = {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}
            made.api.apply(f"/api/v1/namespaces/{name}", body)
        applied = {"kubectl.kubernetes.io/last-applied-configuration": '{"applied": true}'}
        body = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "first", "namespace": "team-a", "annotations": applied},
            "data": {"unique": random_reviews.TAKEN},
        }
        made.api.apply("/api/v1/namespaces/team-a/configmaps/first", body)
        for namespace in (GATEKEEPER_NAMESPACE, NAMESPACE):
            path, config = audited.config(namespace)
            audited.apply(made, path, config | {"spec": random_reviews.CONFIG})
        yield made


@pytest.mark.slow
def test_random_reviews_are_answered_as_gatekeeper_answers_them(
    plane: Plane, tmp_path: Path
) -> None:
    """Verdict, code, messages and warnings; what templates see is in the messages."""
    operations = ("webhook", "status", "generate")
    with ExitStack() as stack:
        peer = stack.enter_context(Gatekeeper(plane, tmp_path, operations))
        replica = stack.enter_context(Replica(plane, "compared", "--keep-writers-history"))
        stack.callback(plane.delete_pod, "compared")
        for template in random_reviews.templates():
            plane.put_template(template)
        for constraint in random_reviews.constraints():
            plane.put_constraint(constraint)
        replica.wait_ready()
        ours, theirs = Connected(replica.ports["admission"]), Connected(peer.port)
        stack.callback(ours.close)
        stack.callback(theirs.close)
        for answer in (ours, theirs):
            until(lambda answer=answer: says_all(answer), "everything is enforced, with the data")
        settle(ours, theirs)
        other = []
        for review in itertools.islice(random_reviews.reviews(SEED), REVIEWS):
            answers = ours(review), theirs(review)
            if answers[0] != answers[1]:
                other.append((review["request"], *answers))
    shown = "\n\n".join(
        "\n".join(json.dumps(item, sort_keys=True) for item in found) for found in other[:SHOWN]
    )
    assert not other, f"{len(other)} of {REVIEWS} reviews are answered otherwise:\n{shown}"


def settle(ours: Connected, theirs: Connected) -> None:
    """Wait until both answer some reviews alike, for as long as one may still be loading.

    Constraints come one by one, and no single review meets all of them. Where they never
    agree, the comparison says in what.
    """
    fixed = list(itertools.islice(random_reviews.reviews(SEED + 1), SETTLED))
    end = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < end and any(ours(review) != theirs(review) for review in fixed):
        time.sleep(0.5)


def says_all(ask: Connected) -> bool:
    """Whether a server knows every constraint, the Namespace and the object in the cluster."""
    metadata = {
        "name": "thing-1",
        "namespace": "team-a",
        "labels": {"app": "x", "env": "test", "owner": "me"},
    }
    obj = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": metadata,
        "data": {"unique": random_reviews.TAKEN, "fails": "yes"},
    }
    review = serving.review(obj)
    review["request"]["resource"]["resource"] = "configmaps"
    answer = ask(review)
    messages = [*answer["messages"], *answer["warnings"]]
    names = {line[1:].partition("]")[0] for line in messages if line.startswith("[")}
    return names >= ENFORCED and any("is taken by team-a/first" in line for line in messages)
