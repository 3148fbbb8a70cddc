"""Users whose objects take mutators long cost themselves time, and other users nothing."""

import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.behaviour.serving import Server, await_true, pod, review, write_policies
from tests.webhook.mutation.documents import assign, label

MUTATION = "--operation=webhook,mutation-webhook"

CHAIN = 500
"""Mutators of which each waits for the label of the one before, which runs after it: each pass over
all of them changes one label."""

SMALL = 20
"""Requests of others while one large is under way."""


def chained(number: int, **annotations: str) -> dict[str, Any]:
    """Returns a mutator of the chain."""
    selector = {"matchLabels": {f"l{number}": "x"}}
    name = f"m{CHAIN - number:04}"
    kinds = [{"apiGroups": [""], "kinds": ["Pod"]}]
    document = label(name, f"l{number + 1}", "x", match={"labelSelector": selector, "kinds": kinds})
    document["metadata"]["annotations"] = annotations
    return document


def policies_of(folder: Path) -> Path:
    """The chain, and what changes each container of a Pod."""
    documents = [chained(number) for number in range(CHAIN)]
    everywhere = assign("pull", "spec.containers[name: *].imagePullPolicy", "Always")
    return write_policies(folder, *map(json.dumps, [*documents, everywhere]))


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server whose mutators take seconds for a Pod with the label l0."""
    with Server(policies_of(tmp_path_factory.mktemp("mutators")), MUTATION) as running:
        yield running.ready()


def of_containers(count: int) -> dict[str, Any]:
    """A Pod of so many containers."""
    found = pod()
    found["spec"] = {"containers": [{"name": f"c{n}", "image": f"i{n}"} for n in range(count)]}
    return found


def ask(server: Server, obj: dict[str, Any], seconds: int = 30, user: str = "mallory") -> Any:
    """The answer to a mutation."""
    body = review(obj, userInfo={"username": user})
    return server.post(body, f"/v1/mutate?timeout={seconds}s")


def slow_reviews(server: Server) -> float:
    """Returns the number of reviews beside the admission thread."""
    return server.metric("waddle_slow_reviews_total") or 0


@pytest.mark.parametrize(
    ("large", "count"),
    [(pod(l0="x"), 1), (of_containers(5_000), 3)],
    ids=["many passes", "many containers"],
)
def test_others_are_answered_while_a_large_mutation_goes_on(
    server: Server, large: dict[str, Any], count: int
) -> None:
    """Others waited for the whole mutation: seconds for the chain, one for five Pods."""
    before = slow_reviews(server)
    threads = [threading.Thread(target=ask, args=(server, large)) for _ in range(count)]
    for thread in threads:
        thread.start()
    await_true(lambda: slow_reviews(server) > before)
    for _ in range(SMALL):
        small = ask(server, pod(), user="other").verdict
        assert small["allowed"], small
        assert server.admit(pod())["allowed"] is True
    for thread in threads:
        thread.join()
    assert slow_reviews(server) == before + count


def test_an_object_that_takes_its_mutators_all_the_time_there_is_is_refused(
    server: Server,
) -> None:
    """With failurePolicy Ignore, it would be stored without the mutators' changes."""
    before = server.metric("waddle_objects_undecidable_total") or 0
    verdict = ask(server, pod(l0="x"), seconds=1).verdict
    assert verdict["allowed"] is False
    status = verdict["status"]
    assert (status["code"], status["reason"]) == (422, "Undecidable")
    assert "its mutators used up the time limit" in status["message"]
    assert "make the object smaller" in status["message"]
    assert server.metric("waddle_objects_undecidable_total") == before + 1


def test_an_operator_may_have_it_let_in_as_it_came(tmp_path: Path) -> None:
    """By the flag; an annotation of mutators comes before it."""
    ignored = policies_of(tmp_path / "ignored")
    with Server(ignored, MUTATION, "--on-undecidable=ignore") as running:
        _let_in(ask(running.ready(), pod(l0="x"), seconds=1).verdict)
    plain = {"waddle.dev/on-undecidable": "ignore"}
    mutators = [chained(number, **plain) for number in range(CHAIN)]
    only = write_policies(tmp_path / "only", *map(json.dumps, mutators))
    with Server(only, MUTATION) as running:
        _let_in(ask(running.ready(), pod(l0="x"), seconds=1).verdict)


def _let_in(verdict: dict[str, Any]) -> None:
    assert verdict["allowed"], verdict
    assert "patch" not in verdict
    (warning,) = verdict["warnings"]
    assert warning.startswith("no mutator is applied: its mutators used up the time limit")
