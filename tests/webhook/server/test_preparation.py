"""Admissions that need something first: they wait, the others do not, and time ends it."""

import asyncio
import json
from collections.abc import Callable, Coroutine, Mapping
from concurrent.futures import Future
from typing import Any

import yaml

from tests.behaviour.serving import REQUIRED_LABELS, constraint, pod, review, thing
from tests.patience import turns_until
from webhook.api.admission import AdmissionRequest
from webhook.app.compilation import CompileThread
from webhook.constraint.client import Client
from webhook.constraint.drivers.rego import RegoDriver
from webhook.constraint.limits import Budget
from webhook.constraint.result import Responses
from webhook.constraint.targets.admission import AdmissionTarget
from webhook.log import open_log
from webhook.metrics.registry import Registry
from webhook.review.outcome import Found
from webhook.review.policy_set import Exclusions, PolicySet
from webhook.server.admission import Admission, AdmissionOptions
from webhook.server.deadline import RequestTime
from webhook.server.decoding import LARGE_BYTES, Decoding
from webhook.server.endpoint import ReviewEndpoint
from webhook.server.preparation import Preparations, SlowReview, TemplateCompiler, Wait
from webhook.server.responsibility import Delay
from webhook.server.submission import TriedSubmission
from webhook.serving.revision import NamespaceAnswer, Revision, Serving
from webhook.trials.trials import Trials

NOT_TRIED = "the policy was not tried within its time, and nothing is known of it: send it again"

SELECTING = constraint("owned", "owner").replace(
    "match: {", "match: {namespaceSelector: {matchLabels: {team: a}}, "
)


class Namespaces:
    """A reader that answers when the test says so."""

    def __init__(self) -> None:
        self.lookups: dict[str, Future[NamespaceAnswer]] = {}

    def read(self, name: str, seconds: float) -> Future[NamespaceAnswer]:
        """Note the question."""
        assert seconds > 0
        return self.lookups.setdefault(name, Future())


def _client() -> Client:
    return Client(targets=[AdmissionTarget()], drivers=[RegoDriver()])


class Reviewer:
    """Takes reviews that are too long for the admission thread, and gives the answers that a test sets."""

    def __init__(self, found: SlowReview[Any] | Delay) -> None:
        self.found = found
        self.reviewed: list[str] = []

    def is_behind(self, request: AdmissionRequest) -> bool:
        """Returns False."""
        return False

    def begin(
        self, work: Callable[[Budget], Any], request: AdmissionRequest, span: RequestTime
    ) -> Any:
        """Note what is reviewed."""
        self.reviewed.append(request.name)
        return self.found


def endpoint(
    reader: Namespaces | None = None,
    templates: TemplateCompiler | None = None,
    reviewer: Reviewer | None = None,
    client: Client | None = None,
) -> ReviewEndpoint:
    """An endpoint with a policy for Pods in the Namespaces of a team; ``known`` is one."""
    client = client or _client()
    client.add_template(yaml.safe_load(REQUIRED_LABELS))
    client.add_constraint(yaml.safe_load(SELECTING))
    client.set_namespace("known", thing("Namespace", "known", labels={"team": "a"}))
    registry, log = Registry(), open_log("/dev/null").logger("webhook")
    excluded = frozenset({"excluded"}).__contains__
    policies = PolicySet(client.snapshot, exclusions=Exclusions(excluded))
    serving = Serving(Revision(policies, client))
    options = AdmissionOptions(10.0, own_users=frozenset({"self"}))
    preparations = Preparations(namespaces=reader, templates=templates, reviewer=reviewer)
    admission = Admission(serving, options, registry, log, preparations=preparations)
    return ReviewEndpoint(admission, registry, log, decoding=Decoding(body_max=1_000_000))


async def ask(
    target: ReviewEndpoint, namespace: str, query: bytes = b"timeout=30s", **request: Any
) -> tuple[int, dict[str, Any]]:
    """The status and the answer to a Pod in a Namespace."""
    document = pod() | {"metadata": {"name": "web", "namespace": namespace}}
    return await post(target, review(document, **request), query)


async def post(
    target: ReviewEndpoint, reviewed: dict[str, Any], query: bytes = b"timeout=30s"
) -> tuple[int, dict[str, Any]]:
    """The status and the answer to a review."""
    body = json.dumps(reviewed).encode()
    sent: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": body}

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    headers = [(b"content-type", b"application/json")]
    await target({"method": "POST", "query_string": query, "headers": headers}, receive, send)
    return sent[0]["status"], json.loads(sent[1]["body"])


def run(work: Coroutine[Any, Any, None]) -> None:
    """Run a test's work."""
    asyncio.run(work)


def test_an_unknown_namespace_is_read_and_others_do_not_wait_for_it() -> None:
    async def work() -> None:
        reader = Namespaces()
        target = endpoint(reader)
        async with asyncio.TaskGroup() as tasks:
            waiting = tasks.create_task(ask(target, "new"))
            await asyncio.sleep(0)
            _, found = await ask(target, "known")
            assert found["response"]["allowed"] is False
            assert not waiting.done()
            document = thing("Namespace", "new", labels={"team": "a"})
            reader.lookups["new"].set_result(NamespaceAnswer(document))
        status, found = waiting.result()
        assert (status, found["response"]["allowed"]) == (200, False)
        assert found["response"]["status"]["message"] == "[owned] label <owner> is missing"
        assert set(reader.lookups) == {"new"}

    run(work())


def test_labels_that_do_not_match_let_the_request_pass() -> None:
    async def work() -> None:
        reader = Namespaces()
        reader.read("new", 1).set_result(NamespaceAnswer(thing("Namespace", "new")))
        _, found = await ask(endpoint(reader), "new")
        assert found["response"]["allowed"] is True

    run(work())


def test_a_namespace_that_is_not_there_is_gatekeeper_s_error() -> None:
    async def work() -> None:
        reader = Namespaces()
        reader.read("gone", 1).set_result(NamespaceAnswer(None))
        status, found = await ask(endpoint(reader), "gone")
        assert status == 200
        assert found["response"]["status"] == {
            "metadata": {},
            "message": 'failed to create augmentedReview: namespaces "gone" not found',
            "code": 500,
        }

    run(work())


def test_what_cannot_be_read_leaves_the_decision_to_failure_policy() -> None:
    async def work() -> None:
        reader = Namespaces()
        reader.read("torn", 1).set_result(NamespaceAnswer(None, "connection refused"))
        status, found = await ask(endpoint(reader), "torn")
        assert status == 500
        assert "connection refused" in found["message"]

    run(work())


def test_the_request_s_time_bounds_the_reading() -> None:
    async def work() -> None:
        status, found = await ask(endpoint(Namespaces()), "slow", b"timeout=1s")
        assert status == 504
        assert "slow was not read in time" in found["message"]

    run(work())


def test_nobody_waits_for_a_namespace_that_does_not_matter() -> None:
    """Requests of Waddle, excluded Namespaces, and Namespaces themselves are decided at once."""

    async def work() -> None:
        reader = Namespaces()
        target = endpoint(reader)
        cases: tuple[tuple[str, dict[str, Any]], ...] = (
            ("excluded", {}),
            ("new", {"userInfo": {"username": "self"}}),
            ("", {}),
            ("new", {"kind": {"group": "", "version": "v1", "kind": "Namespace"}}),
        )
        for namespace, request in cases:
            status, _ = await ask(target, namespace, **request)
            assert status == 200
        assert reader.lookups == {}

    run(work())


def test_a_template_that_the_machine_kept_from_being_tried_is_for_the_failure_policy() -> None:
    """Its fault is unknown: it is neither refused nor admitted."""

    async def work() -> None:
        trials = Trials(notify=lambda message, *, error: None, tries_all=lambda: True)
        trials.stop()
        templates = CompileThread(_client, trials, 1.0)
        template = yaml.safe_load(REQUIRED_LABELS)
        status, found = await post(endpoint(templates=templates), review(template))
        assert status == 503
        assert "policy could not be compiled here: this process ends" in found["message"]
        templates.stop()

    run(work())


class Compiling:
    """Compiles for ever."""

    def compile(self, document: Mapping[str, Any]) -> Future[TriedSubmission]:
        """Say nothing yet."""
        return Future()


def test_a_template_that_is_not_compiled_in_time_is_for_the_failure_policy() -> None:
    async def work() -> None:
        target = endpoint(templates=Compiling())
        template = yaml.safe_load(REQUIRED_LABELS)
        status, found = await post(target, review(template), b"timeout=60ms")
        assert status == 504
        assert found["message"] == NOT_TRIED

    run(work())


def test_a_constraint_that_is_not_tried_in_time_is_refused_only_for_what_is_known() -> None:
    """The constraint's template may be on its way; an unknown action is invalid anywhere."""

    async def work() -> None:
        target = endpoint(templates=Compiling())
        status, found = await post(target, review(of_other()), b"timeout=60ms")
        assert (status, found["message"]) == (504, NOT_TRIED)
        unknown = of_other() | {"kind": "RequiredLabel"}
        unknown["spec"]["parameters"] = {"label": 3}
        status, found = await post(target, review(unknown), b"timeout=60ms")
        assert (status, found["response"]["status"]["code"]) == (200, 422)

    run(work())


def other(schema: str = "string", source: str = REQUIRED_LABELS) -> dict[str, Any]:
    """A template that is not in force."""
    document: dict[str, Any] = yaml.safe_load(
        source.replace("requiredlabel", "other").replace("RequiredLabel", "Other")
    )
    validation = document["spec"]["crd"]["spec"]["validation"]
    validation["openAPIV3Schema"]["properties"]["label"]["type"] = schema
    return document


def of_other() -> dict[str, Any]:
    """A constraint of it."""
    document: dict[str, Any] = yaml.safe_load(constraint("ours", "owner"))
    return document | {"kind": "Other"}


class ApiServer:
    """Has templates, and says which it was asked for."""

    def __init__(self, *templates: dict[str, Any]) -> None:
        self.templates = {document["metadata"]["name"]: document for document in templates}
        self.lookups: list[str] = []

    def template(self, name: str) -> dict[str, Any] | None:
        """Returns the present template."""
        self.lookups.append(name)
        return self.templates.get(name)


async def admitted(
    document: dict[str, Any], server: ApiServer, *in_force: dict[str, Any]
) -> tuple[int, dict[str, Any]]:
    """Returns a replica's answer to a constraint, with these policies besides its own."""
    client = _client()
    for policy in (yaml.safe_load(REQUIRED_LABELS), *in_force):
        is_template = policy["kind"] == "ConstraintTemplate"
        (client.add_template if is_template else client.add_constraint)(policy)
    trials = Trials(notify=lambda message, *, error: None, tries_all=lambda: True)
    templates = CompileThread(client.copy, trials, 0.2, server.template)
    try:
        return await post(endpoint(templates=templates, client=client), review(document))
    finally:
        templates.stop()
        trials.stop()


def refusal(answer: tuple[int, dict[str, Any]]) -> tuple[int, str]:
    """Code and message of what is refused."""
    status, found = answer
    assert (status, found["response"]["allowed"]) == (200, False)
    return found["response"]["status"]["code"], found["response"]["status"]["message"]


def test_a_constraint_whose_template_has_not_arrived_is_judged_by_the_api_server_s() -> None:
    """Users who apply both in turn may meet a replica that is a moment behind."""

    async def work() -> None:
        server = ApiServer(other())
        status, found = await admitted(of_other(), server)
        assert (status, found["response"]["allowed"]) == (200, True)
        assert server.lookups == ["other"]

        wrong = of_other()
        wrong["spec"]["parameters"] = {"label": 3}
        code, message = refusal(await admitted(wrong, server))
        assert code == 422
        assert "spec.parameters.label" in message

    run(work())


def test_a_constraint_of_no_template_is_refused_as_in_gatekeeper() -> None:
    async def work() -> None:
        assert refusal(await admitted(of_other(), ApiServer())) == (
            422,
            'missing ConstraintTemplate: template "other" not found',
        )

    run(work())


def test_a_constraint_for_a_template_s_next_revision_is_judged_by_that() -> None:
    """A parameter that the revision in force does not take may be what the change is for."""

    async def work() -> None:
        document = of_other()
        document["spec"]["parameters"] = {"label": 3}
        server = ApiServer(other("integer"))
        status, found = await admitted(document, server, other())
        assert (status, found["response"]["allowed"]) == (200, True)

    run(work())


def test_other_constraints_are_not_what_a_constraint_is_refused_for() -> None:
    """A constraint whose next revision does not end is the template's fault, shown there."""

    async def work() -> None:
        slow = (
            "numbers := numbers.range(1, 1000); some i, j, k; numbers[i] + numbers[j] == numbers[k]"
        )
        source = REQUIRED_LABELS.replace(
            "msg :=", f'input.parameters.label == "slow"; {slow}; msg :='
        )
        neighbour = yaml.safe_load(constraint("neighbour", "slow")) | {"kind": "Other"}
        wrong = of_other()
        wrong["spec"]["parameters"] = {"label": 3}
        now = other(source=source)
        label = now["spec"]["crd"]["spec"]["validation"]["openAPIV3Schema"]["properties"]["label"]
        del label["type"]
        label["x-kubernetes-preserve-unknown-fields"] = True
        status, found = await admitted(wrong, ApiServer(now), other(), neighbour)
        assert (status, found["response"]["allowed"]) == (200, True)

    run(work())


def test_a_refusal_by_the_newest_revision_stands() -> None:
    async def work() -> None:
        document = of_other()
        document["spec"]["parameters"] = {"label": 3}
        code, message = refusal(await admitted(document, ApiServer(other()), other()))
        assert code == 422
        assert "spec.parameters.label" in message

    run(work())


def test_a_template_that_cannot_be_enforced_lets_no_constraint_in() -> None:
    """Before it ever could it is as if it were not there; then the last good revision judges."""

    async def work() -> None:
        broken = other(
            source=REQUIRED_LABELS.replace("msg := sprintf", "msg := nothing_of_the_kind")
        )
        code, message = refusal(await admitted(of_other(), ApiServer(broken)))
        assert (code, message) == (
            422,
            'missing ConstraintTemplate: template "other" has no revision that can be used',
        )

        document = of_other()
        document["spec"]["parameters"] = {"label": 3}
        code, message = refusal(await admitted(document, ApiServer(broken), other()))
        assert code == 422
        assert "spec.parameters.label" in message

    run(work())


def test_a_template_that_arrives_and_cannot_be_tried_is_for_the_failure_policy() -> None:
    async def work() -> None:
        trials = Trials(notify=lambda message, *, error: None, tries_all=lambda: True)
        trials.stop()
        templates = CompileThread(_client, trials, 1.0, ApiServer(other()).template)
        status, found = await post(endpoint(templates=templates), review(of_other()))
        assert status == 503
        assert "policy could not be compiled here: this process ends" in found["message"]
        templates.stop()

    run(work())


def test_a_timeout_that_is_no_duration_is_refused_and_nothing_is_found_out() -> None:
    async def work() -> None:
        reader = Namespaces()
        status, found = await ask(endpoint(reader), "new", b"timeout=soon")
        assert status == 400
        assert "timeout must be a duration" in found["message"]
        assert reader.lookups == {}

    run(work())


def large() -> dict[str, Any]:
    """The review of a Pod that is too large for the admission thread."""
    return review(pod() | {"spec": {"text": "x" * LARGE_BYTES}})


def test_a_large_object_is_reviewed_elsewhere() -> None:
    async def work() -> None:
        found = SlowReview[Any]()
        reviewer = Reviewer(found)
        target = endpoint(reviewer=reviewer)
        async with asyncio.TaskGroup() as tasks:
            waiting = tasks.create_task(post(target, large()))
            await turns_until(lambda: reviewer.reviewed)
            status, small = await ask(target, "known")
            assert (status, small["response"]["allowed"]) == (200, False)
            assert not waiting.done()
            found.future.set_result(Found(Responses()))
        status, answer = waiting.result()
        assert (status, answer["response"]["allowed"]) == (200, True)
        assert reviewer.reviewed == ["web"]

    run(work())


def test_without_room_for_it_the_api_server_has_to_ask_again_at_once() -> None:
    async def work() -> None:
        named = pod() | {"metadata": {"name": "web", "namespace": "known"}}
        matched = review(named | {"spec": {"text": "x" * LARGE_BYTES}})
        status, found = await post(endpoint(reviewer=Reviewer(Delay(places=64))), matched)
        assert status == 429
        assert "too many slow reviews wait" in found["message"]

    run(work())


def test_a_wait_calls_back_in_the_turn_in_which_its_last_future_is_done() -> None:
    async def main() -> None:
        first: Future[int] = Future()
        last: Future[int] = Future()
        wait, calls = Wait([first, last], 30), []
        wait.add_done_callback(calls.append)
        first.set_result(1)
        assert calls == []
        last.set_result(2)
        assert calls == [wait]
        wait.add_done_callback(calls.append)  # It is done.
        assert calls == [wait, wait]
        await wait

    asyncio.run(main())


def test_a_wait_ends_with_its_time_and_for_futures_of_other_threads() -> None:
    async def main() -> None:
        await Wait([Future()], 0)
        future: Future[int] = Future()
        async with asyncio.TaskGroup() as group:
            group.create_task(asyncio.to_thread(future.set_result, 1))
            await Wait([future], 30)

    asyncio.run(main())
