"""The real Gatekeeper and a replica ask one provider: the same questions, the same answers.

``WADDLE_EXTERNAL_DATA_REVIEWS=2000`` asks so many; ``WADDLE_EXTERNAL_DATA_SEED`` asks others.
"""

import itertools
import json
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.patience import until
from tests.ports import free_port
from tests.provider_process import ProviderProcess, make_authority
from tests.system import provider_questions
from tests.system.admission_calls import Connected
from tests.system.mutating import place_of
from tests.system.peer import Gatekeeper
from tests.system.provider_questions import DELETED, DYNAMIC, LABEL, Object
from tests.system.providers import PROVIDERS
from tests.system.replicas import CONSTRAINTS, Plane, Replica

REVIEWS = int(os.environ.get("WADDLE_EXTERNAL_DATA_REVIEWS", "300"))
SEED = int(os.environ.get("WADDLE_EXTERNAL_DATA_SEED", "1"))
TEMPLATES = 36
MUTATORS = 48
SHOWN = 5
"""Of what is answered otherwise."""

FOREVER = ("--external-data-provider-response-cache-ttl=1h",)
"""Cached answers stay during the whole test: both have the same keys at each question."""
OPERATIONS = ("webhook", "status", "generate")
MUTATION = ("mutation-webhook", "mutation-status", "mutation-controller")


@dataclass(frozen=True, slots=True)
class Both:
    """The two servers, with the cluster that they follow."""

    plane: Plane
    ours: Connected
    theirs: Connected


@contextmanager
def both(plane: Plane, folder: Path, documents: Callable[[Plane], Sequence[str]]) -> Iterator[Both]:
    """Gatekeeper and a replica that asks the same provider; ``documents`` applies the policies.

    It returns their paths. The replica begins when Gatekeeper enforces them, and is ready only
    when it has them all.
    """
    with ExitStack() as stack:
        body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team-a"}}
        plane.api.apply("/api/v1/namespaces/team-a", body)
        provider = stack.enter_context(
            ProviderProcess(
                folder / "provider",
                authority=make_authority(),
                client_authority=plane.certificates / "tls.crt",
            )
        )
        peer = stack.enter_context(Gatekeeper(plane, folder, (*OPERATIONS, *MUTATION), *FOREVER))
        paths = []
        for document in provider_questions.provider_objects(provider, free_port()):
            paths.append(f"{PROVIDERS}/{document['metadata']['name']}")
            plane.api.apply(paths[-1], document)
        for path in [*paths, *documents(plane)]:
            until(lambda path=path: is_in_force(plane, path), f"Gatekeeper goes by {path}")
        flags = ["--operation=webhook", "--operation=mutation-webhook", *FOREVER]
        flags.append("--mutation-on-error=reject")
        flags += [f"--external-data-error-cache-ttl={FOREVER[0].partition('=')[2]}"]
        replica = stack.enter_context(Replica(plane, "asks", *flags))
        stack.callback(plane.delete_pod, "asks")
        replica.wait_ready()
        ours, theirs = Connected(replica.ports["admission"]), Connected(peer.port)
        stack.callback(ours.close)
        stack.callback(theirs.close)
        yield Both(plane, ours, theirs)


def is_in_force(plane: Plane, path: str) -> bool:
    """Returns whether Gatekeeper reports an object as enforced or active."""
    statuses = plane.by_pod(path)
    return bool(statuses) and bool(statuses[0].get("enforced") or statuses[0].get("active"))


def compare(
    both: Both, reviews: Sequence[Object], ask: Callable[[Connected, Object], Object]
) -> list[str]:
    """Returns the different answers, a paragraph each."""
    other = []
    for review in reviews:
        answers = ask(both.ours, review), ask(both.theirs, review)
        if answers[0] != answers[1]:
            lines = ("asked", review["request"]), ("ours", answers[0]), ("theirs", answers[1])
            other.append(
                "\n".join(
                    f"{name}: {json.dumps(answer, sort_keys=True, ensure_ascii=False)}"
                    for name, answer in lines
                )
            )
    return other


def failure_text(other: Sequence[str], count: int) -> str:
    """Returns the message of a failure."""
    shown = "\n\n".join(other[:SHOWN])
    return f"{len(other)} of {count} are answered otherwise:\n{shown}"


def validated(side: Connected, review: Object) -> Object:
    """The answer without what each client says of a fault in its own words."""
    answer = side(review)
    for name in ("messages", "warnings"):
        answer[name] = sorted(map(provider_questions.without_faults, answer[name]))
    return answer


def mutated(side: Connected, review: Object) -> Object:
    """Likewise; several errors have no order."""
    answer = side.mutate(review)
    answer["message"] = provider_questions.errors_of_mutation(answer["message"])
    return answer


def apply_templates(plane: Plane) -> list[str]:
    """Apply templates and constraints; where the constraints are."""
    for document in provider_questions.templates(SEED, TEMPLATES):
        plane.put_template(document)
    paths = []
    for document in provider_questions.constraints(SEED, TEMPLATES):
        plane.put_constraint(document)
        paths.append(f"{CONSTRAINTS}/{document['kind'].lower()}/{document['metadata']['name']}")
    return paths


def apply_mutators(plane: Plane) -> list[str]:
    """Apply mutators; where they are."""
    paths = []
    for document in provider_questions.mutators(SEED, MUTATORS):
        plane.api.apply(place_of(document), document)
        paths.append(place_of(document))
    return paths


def delete_provider(both: Both) -> None:
    """Delete a Provider, and wait until both answer that they do not know it."""
    both.plane.api.request("DELETE", f"{PROVIDERS}/{DELETED}")
    number = itertools.count()

    def is_unknown(side: Connected) -> bool:
        obj = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "gone", "namespace": "team-a", "labels": {LABEL: DYNAMIC}},
            "ask": {"provider": DELETED, "keys": [f"missing/{next(number)}"]},
        }
        answer: dict[str, Any] = side(provider_questions.of_object(obj, 0))
        return "not found in provider cache" in json.dumps(answer)

    for side in (both.ours, both.theirs):
        until(lambda side=side: is_unknown(side), "the Provider is gone")


@pytest.mark.slow(60)
def test_random_questions_to_providers_are_answered_as_gatekeeper_answers_them(
    peers_plane: Plane, tmp_path: Path
) -> None:
    """Verdicts and messages; a Provider is deleted halfway, and its cached keys are asked again."""
    reviews = list(itertools.islice(provider_questions.reviews(SEED, TEMPLATES), REVIEWS))
    half = REVIEWS // 2
    with both(peers_plane, tmp_path, apply_templates) as servers:
        other = compare(servers, reviews[:half], validated)
        delete_provider(servers)
        other += compare(servers, reviews[half:], validated)
    assert not other, failure_text(other, REVIEWS)


@pytest.mark.slow(60)
def test_random_mutations_by_providers_are_those_of_gatekeeper(
    peers_plane: Plane, tmp_path: Path
) -> None:
    """Objects and errors."""
    reviews = list(itertools.islice(provider_questions.mutated_reviews(SEED, MUTATORS), REVIEWS))
    with both(peers_plane, tmp_path, apply_mutators) as servers:
        other = compare(servers, reviews, mutated)
    assert not other, failure_text(other, REVIEWS)
