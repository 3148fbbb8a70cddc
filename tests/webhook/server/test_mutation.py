"""``/v1/mutate``: what it waits for, what ends it, and its answer where nothing changes."""

import asyncio
import contextlib
import random
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

import pytest

from tests.differential.mutators.questions import Question, question
from tests.webhook.mutation.documents import assign, known, label, pod
from tests.webhook.server.lanes import Crowded, Endless
from tests.webhook.server.mutating import Mutating, Namespaces, request_of
from webhook.api.admission import AdmissionRequest, AdmissionResponse, read_request
from webhook.api.gvk import gvk_of, namespace_of
from webhook.app.slow_reviews import SlowReviews
from webhook.constraint.breaker import Guard
from webhook.constraint.limits import ELSEWHERE
from webhook.mutation.assigning import Assignment
from webhook.mutation.errors import InvalidMutator
from webhook.mutation.reading import read_mutator
from webhook.mutation.registry import Mutators
from webhook.mutation.snapshot import MutationSnapshot
from webhook.server.decoding import LARGE_BYTES
from webhook.server.mutation import NOT_MUTATED
from webhook.server.outcome import Pending, Unanswerable
from webhook.server.responsibility import ProcessorTime
from webhook.serving.revision import NamespaceAnswer

if TYPE_CHECKING:
    from webhook.mutation.passes import MutationOnError

LABEL = known(label("a", "a", "b")).snapshot
SELECTOR = {"namespaceSelector": {"matchLabels": {"team": "a"}}}
OF_A_TEAM = known(label("team", "team", "a", match=SELECTOR)).snapshot
NAMESPACE = {
    "apiVersion": "v1",
    "kind": "Namespace",
    "metadata": {"name": "shop", "labels": {"team": "a"}},
}


def awaited(mutating: Mutating, reader: Namespaces, answer: NamespaceAnswer | None) -> Any:
    """The decision that waited for the namespace; without an answer its time ended."""

    async def work() -> Any:
        pending = mutating.ask(pod(), b"timeout=30s" if answer else b"timeout=60ms")
        assert isinstance(pending, Pending)
        assert set(reader.lookups) == {"shop"}
        if answer is not None:
            reader.lookups["shop"].set_result(answer)
        await pending.finished
        return pending.resume()

    return asyncio.run(work())


def test_a_namespace_that_is_not_known_yet_is_read_for_who_selects_by_it() -> None:
    for labels, is_mutated in (({"team": "a"}, True), ({}, False)):
        reader = Namespaces()
        document = {**NAMESPACE, "metadata": {"name": "shop", "labels": labels}}
        answer = NamespaceAnswer(document)
        found = awaited(Mutating(OF_A_TEAM, reader), reader, answer)
        assert found.allowed
        assert (found.patch is not None) is is_mutated


def test_a_namespace_that_is_not_there_is_gatekeeper_s_error() -> None:
    reader = Namespaces()
    found = awaited(Mutating(OF_A_TEAM, reader), reader, NamespaceAnswer(None))
    assert (found.allowed, found.code) == (False, 500)
    assert found.message == 'namespaces "shop" not found'


@pytest.mark.parametrize(
    ("answer", "code", "message"),
    [
        (NamespaceAnswer(None, "connection refused"), 500, "not read: connection refused"),
        (None, 504, "Namespace shop was not read in time"),
    ],
)
def test_what_cannot_be_read_leaves_the_decision_to_failure_policy(
    answer: NamespaceAnswer | None, code: int, message: str
) -> None:
    reader = Namespaces()
    found = awaited(Mutating(OF_A_TEAM, reader), reader, answer)
    assert isinstance(found, Unanswerable)
    assert found.code == code
    assert message in found.message


def test_nobody_waits_for_a_namespace_that_no_mutator_of_the_kind_could_ask_about() -> None:
    reader = Namespaces()
    of_others = assign("a", "spec.x", 1)
    of_others["spec"]["applyTo"] = [{"groups": ["apps"], "versions": ["v1"], "kinds": ["Scale"]}]
    found = Mutating(known(of_others).snapshot, reader).ask(pod())
    assert (found.allowed, found.message) == (True, NOT_MUTATED)
    assert reader.lookups == {}


def test_before_there_are_mutators_the_api_server_has_to_ask_again() -> None:
    mutating = Mutating(LABEL)
    mutating.serving.revision = None
    found = mutating.ask(pod())
    assert (found.code, found.reason, found.retry) == (503, "not_ready", True)


def test_a_timeout_that_is_no_duration_is_refused() -> None:
    found = Mutating(LABEL).ask(pod(), b"timeout=soon")
    assert (found.code, found.reason) == (400, "malformed")


def test_mutators_that_find_no_time_leave_the_decision_to_failure_policy() -> None:
    mutating = Mutating(LABEL)
    found = mutating.ask(pod(), b"timeout=1s", late=2.0)
    assert (found.code, found.reason) == (504, "deadline")


def test_an_object_without_a_kind_is_refused() -> None:
    for obj in (None, {}, {"kind": ""}):
        found = Mutating(LABEL).ask(obj)
        assert (found.allowed, found.code) == (False, 500)
        assert "the request has no object" in found.message


class _Turning:
    """Assigns something else each time."""

    asks_external = False

    def __call__(self, existing: Any, _root: dict[str, Any], _context: object) -> Any:
        return "b" if existing == "a" else "a"


def endless() -> Any:
    """A mutator that never comes to an end."""
    found = read_mutator(assign("endless", "spec.x", 1))
    return replace(
        found, assignment=Assignment(found.location, found.assignment.allowed, _Turning())
    )


def test_an_object_on_which_mutators_never_agree_passes_as_it_came_with_a_warning() -> None:
    mutating = Mutating(MutationSnapshot([endless()]))
    found = mutating.ask(pod())
    assert isinstance(found, AdmissionResponse)
    assert (found.allowed, found.patch) == (True, None)
    (warning,) = found.warnings
    assert warning.startswith("no mutator is applied: ")
    assert any(b"a mutator could not be applied" in line for line in mutating.lines)


def test_it_is_refused_where_that_is_chosen() -> None:
    found = Mutating(MutationSnapshot([endless()]), on_error="reject").ask(pod())
    assert (found.allowed, found.code) == (False, 500)
    assert "not converging" in found.message


def test_a_previewed_mutator_that_would_fail_is_counted_and_reported() -> None:
    would_fail = assign("soon", "spec.containers.x", 1)
    would_fail["metadata"]["annotations"] = {"waddle.dev/mode": "preview"}
    mutating = Mutating(known(label("a", "a", "b"), would_fail).snapshot)
    found = mutating.ask(pod("app:v1"))
    assert found.allowed
    assert found.warnings == ()
    outcomes = mutating.registry.mutators.series
    assert outcomes["Assign", "soon", "preview_failed"] == 1
    assert ("Assign", "soon", "previewed") not in outcomes
    (warning_line,) = [
        line for line in mutating.lines if b"a mutator in preview could not be" in line
    ]
    assert b"Assign.mutations.gatekeeper.sh /soon" in warning_line


def test_an_update_that_only_lets_an_object_go_is_left_alone() -> None:
    """An addition by a mutator would be reviewed, and might be refused."""
    held = pod() | {"metadata": pod()["metadata"] | {"finalizers": ["x"]}}
    for old, is_mutated in ((held, False), (pod(), True)):
        request = request_of(pod())._replace(operation="UPDATE", old_object=old)
        found = Mutating(LABEL).mutation(request, b"", time.monotonic())
        assert found.allowed
        assert (found.patch is not None) is is_mutated


async def answered(mutating: Mutating, request: AdmissionRequest) -> Any:
    """Returns the final answer to a request."""
    outcome = mutating.mutation(request, b"timeout=30s", time.monotonic())
    while isinstance(outcome, Pending):
        await outcome.finished
        outcome = outcome.resume()
    return outcome


def request_about(question: Question) -> AdmissionRequest:
    """The request of a random question."""
    obj = question["object"]
    group, version, kind = gvk_of(obj)
    return read_request(
        {
            "uid": "u",
            "kind": {"group": group, "version": version, "kind": kind},
            "operation": question["operation"] or "CREATE",
            "name": "p",
            "namespace": namespace_of(obj),
            "object": obj,
            "userInfo": {"username": question["username"]},
        }
    )


@pytest.fixture
def lane() -> Iterator[SlowReviews]:
    """The lane of slow reviews, with its threads."""
    reviews = SlowReviews(1.0, Guard(), ProcessorTime())
    yield reviews
    reviews.stop()


def test_random_objects_become_the_same_beside_the_thread_as_on_it(lane: SlowReviews) -> None:
    """Of a large one, and of one whose mutators take longer than others can wait."""

    async def run() -> int:
        changed = 0
        for number in range(400):
            case = question(random.Random(f"lanes/{number}"))
            if "object" not in case or "expand" in case:
                continue
            mutators = Mutators()
            for document in case["mutators"]:
                with contextlib.suppress(InvalidMutator):
                    mutators.add(document)
            request, on_error = request_about(case), ("skip", "reject")[number % 2]
            answers = [
                await answered(
                    Mutating(
                        mutators.snapshot,
                        on_error=cast("MutationOnError", on_error),
                        reviewer=reviewer,
                        budget=budget,
                        annotations=number % 3 == 0,
                    ),
                    request._replace(size=size),
                )
                for reviewer, budget, size in (
                    (None, None, 0),
                    (lane, None, LARGE_BYTES + 1),
                    (lane, ELSEWHERE, 0),
                )
            ]
            assert answers[0] == answers[1] == answers[2], number
            changed += answers[0].patch is not None
        return changed

    assert asyncio.run(run()) > 50


@pytest.mark.parametrize(("taken", "code"), [(32, None), (31, 429)])
def test_without_a_place_beside_the_thread_who_has_its_share_is_refused(
    taken: int, code: int | None
) -> None:
    mutating = Mutating(LABEL, reviewer=Crowded(taken), budget=ELSEWHERE)
    found = mutating.ask(pod())
    if code is None:
        assert isinstance(found, AdmissionResponse)
        assert (found.allowed, found.code, found.reason) == (False, 429, "TooManyRequests")
        assert found.message.startswith(
            "the object cannot be mutated: other requests of the same user"
        )
    else:
        assert isinstance(found, Unanswerable)
        assert (found.code, found.retry) == (429, True)


def test_who_waited_behind_others_is_left_to_failure_policy() -> None:
    async def run() -> None:
        reviewer = Endless()
        found = Mutating(LABEL, reviewer=reviewer, budget=ELSEWHERE).ask(pod()).resume()
        assert isinstance(found, Unanswerable)
        assert (found.code, found.reason) == (504, "deadline")
        assert reviewer.begun[0].future.cancelled()  # No thread works for it any more.

    asyncio.run(run())


@pytest.mark.parametrize(
    ("annotation", "is_allowed"), [(None, False), ("ignore", True), ("refuse", False)]
)
def test_a_mutator_may_choose_that_what_takes_it_too_long_is_let_in(
    annotation: str | None, is_allowed: bool
) -> None:
    chosen = label("a", "a", "b")
    if annotation is not None:
        chosen["metadata"]["annotations"] = {"waddle.dev/on-undecidable": annotation}

    async def run() -> None:
        reviewer = Endless(worked_seconds=1.0)
        mutating = Mutating(known(chosen).snapshot, reviewer=reviewer, budget=ELSEWHERE)
        found = mutating.ask(pod()).resume()
        assert isinstance(found, AdmissionResponse)
        assert (found.allowed, found.patch) == (is_allowed, None)
        if is_allowed:
            assert found.warnings[0].startswith("no mutator is applied: ")
        else:
            assert (found.code, found.reason) == (422, "Undecidable")
        assert any(b"an object was not mutated" in line for line in mutating.lines)

    asyncio.run(run())


def test_a_mutator_with_another_value_of_that_annotation_is_refused() -> None:
    chosen = label("a", "a", "b")
    chosen["metadata"]["annotations"] = {"waddle.dev/on-undecidable": "maybe"}
    with pytest.raises(InvalidMutator, match="must be one of refuse, ignore"):
        read_mutator(chosen)
