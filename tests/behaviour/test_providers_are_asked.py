"""A server asks real providers over HTTPS, and decides by what they say, or do not say."""

import base64
import itertools
import json
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.behaviour.serving import Server, await_true, review, thing, write_policies
from tests.json_patch import apply_patch
from tests.policies import FREE, constraint, template
from tests.provider_process import ProviderProcess, make_authority
from tests.webhook.mutation.documents import assign

ASKING = """
package asked
violation[{"msg": json.marshal(told)}] {
  told := external_data({"provider": input.parameters.provider, "keys": input.review.object.data.keys})
  input.review.object.data.show
}
violation[{"msg": told.system_error}] {
  told := external_data({"provider": input.parameters.provider, "keys": input.review.object.data.keys})
  not input.review.object.data.show
  told.system_error != ""
}
violation[{"msg": message}] {
  told := external_data({"provider": input.parameters.provider, "keys": input.review.object.data.keys})
  not input.review.object.data.show
  [_, message] := told.errors[_]
}
"""

NUMBERS = itertools.count()
"""For keys that nobody asked for before."""


def asking(provider: str = "images") -> list[dict[str, Any]]:
    """A template that tells what a provider says of an object's keys, and its constraint."""
    spec = {"parameters": {"provider": provider}}
    return [
        template("Asked", ASKING, schema=FREE),
        constraint("Asked", "asked", kinds=["ConfigMap"], **spec),
    ]


def asking_pod(*keys: str, show: bool = True, **fields: Any) -> dict[str, Any]:
    """An object whose keys are asked for."""
    return {**thing("ConfigMap", "x"), "data": {"keys": list(keys), "show": show, **fields}}


def answers_in_policy(
    server: Server, *keys: str, path: str = "/v1/admit?timeout=30s"
) -> dict[str, Any]:
    """Returns the provider's answers about keys, as a policy sees them."""
    answer = server.post(review(asking_pod(*keys)), path).verdict
    assert not answer["allowed"], answer
    found: dict[str, Any] = json.loads(answer["status"]["message"].removeprefix("[asked] "))
    return found


@pytest.fixture(scope="module")
def provider(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ProviderProcess]:
    with ProviderProcess(tmp_path_factory.mktemp("provider"), authority=make_authority()) as run:
        yield run


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, provider: ProviderProcess) -> Iterator[Server]:
    """A server with a template that asks, and a mutator that does."""
    mutator = assign("owner", "spec.owner", None)
    mutator["spec"]["parameters"] = {
        "assign": {"externalData": {"provider": "images", "failurePolicy": "Fail"}}
    }
    documents = [provider.manifest("images", timeout=5), *asking(), mutator]
    folder = write_policies(tmp_path_factory.mktemp("policies"), *map(json.dumps, documents))
    with Server(
        folder, "--operation=webhook,mutation-webhook", "--mutation-on-error=reject"
    ) as run:
        yield run.ready()


@pytest.fixture(autouse=True)
def answering(server: Server) -> None:
    """The provider is asked and answers: the faults of the test before are forgotten.

    Tests run in any order, and after five faults in a row a provider is suspended.
    """
    await_true(lambda: answers_in_policy(server, f"ready/{next(NUMBERS)}")["status_code"] == 200)


def test_a_policy_decides_by_what_a_provider_says(server, provider):
    provider.forget()
    found = answers_in_policy(server, "first/1", "error/1")
    assert found == {
        "responses": [["first/1", "first/1 is known"]],
        "errors": [["error/1", "error/1 is refused"]],
        "status_code": 200,
        "system_error": "",
    }
    request = provider.requests()[0]
    assert request["keys"] == ["first/1", "error/1"]
    assert (request["method"], request["version"], request["tls"]) == (
        "POST",
        "HTTP/1.1",
        "TLSv1.3",
    )
    assert server.admit(asking_pod("first/1", show=False))["allowed"]
    refused = server.admit(asking_pod("error/1", show=False))
    assert refused["status"]["message"] == "[asked] error/1 is refused"


def test_what_was_answered_is_kept_and_comes_first(server, provider):
    answers_in_policy(server, "kept/1")
    provider.forget()
    assert answers_in_policy(server, "kept/1")["status_code"] == 0
    assert answers_in_policy(server, "new/1", "kept/1") == {
        "responses": [["kept/1", "kept/1 is known"], ["new/1", "new/1 is known"]],
        "errors": [],
        "status_code": 200,
        "system_error": "",
    }
    assert [request["keys"] for request in provider.requests()] == [["new/1"]]


def test_equal_questions_share_a_request(server, provider):
    provider.forget()
    with ThreadPoolExecutor(8) as several:
        found = list(several.map(lambda _: answers_in_policy(server, "slow500/shared"), range(8)))
    assert {item["system_error"] for item in found} == {""}
    assert [request["keys"] for request in provider.requests()] == [["slow500/shared"]]


@pytest.mark.parametrize(
    ("key", "message"),
    [
        ("drop/1", "failed to send external data request:"),
        ("cut/1", "failed to read external data response: unexpected EOF"),
        ("html/1", "failed to unmarshal external data response: invalid character '<'"),
        ("array/1", "failed to unmarshal external data response:"),
        ("wrongitems/1", "failed to unmarshal external data response:"),
        ("trailing/1", "failed to unmarshal external data response:"),
        ("redirect/1", "failed to send external data request:"),
        ("big/1", "failed to read external data response: it is over 8388608 bytes"),
    ],
)
def test_an_answer_that_cannot_be_read_is_reported_as_a_failure(server, key, message):
    found = answers_in_policy(server, key)
    assert (found["responses"], found["errors"], found["status_code"]) == (None, None, 500)
    assert found["system_error"].startswith(message), found


def test_a_provider_that_hangs_is_given_up_by_the_review_s_time(server):
    """The policy decides what that means; the API server is answered in time."""
    answer = server.post(review(asking_pod("hang/1", show=False)), "/v1/admit?timeout=1s").verdict
    assert answer["status"]["code"] == 403
    assert "the time of the review is over" in answer["status"]["message"]


def test_an_answer_that_comes_too_late_is_there_for_the_next_try(server, provider):
    provider.forget()
    late = server.post(
        review(asking_pod("slow2000/late", show=False)), "/v1/admit?timeout=1s"
    ).verdict
    assert not late["allowed"]
    await_true(lambda: answers_in_policy(server, "slow2000/late")["status_code"] == 0)
    assert [request["keys"] for request in provider.requests()] == [["slow2000/late"]]


def test_a_large_object_is_decided_by_answers_beside_the_admission_thread(server):
    """The object is reviewed on another thread, which waits for no provider either."""
    large = asking_pod("o/large", "error/large", show=False, padding="x" * 200_000)
    refused = server.admit(large)
    assert refused["status"]["message"] == "[asked] error/large is refused"
    late = asking_pod("hang/large", show=False, padding="x" * 200_000)
    answer = server.post(review(late), "/v1/admit?timeout=3s").verdict
    assert "the time of the review is over" in answer["status"]["message"]


def test_a_hanging_provider_delays_nobody_else(server):
    """While many wait for it, others are answered."""
    waiting = threading.Thread(
        target=lambda: [server.post(review(asking_pod(f"hang/{n}"))) for n in range(2)]
    )
    waiting.start()
    assert server.admit(thing("Secret", "s"))["allowed"]
    assert answers_in_policy(server, "first/2")["system_error"] == ""
    waiting.join()


def test_a_mutator_has_its_value_from_a_provider(server, provider):
    workload = {**thing("Pod", "web", namespace="default"), "spec": {"owner": "who"}}
    answer = server.post(review(workload), "/v1/mutate?timeout=30s").verdict
    assert answer["allowed"], answer
    patch = json.loads(base64.b64decode(answer["patch"]))
    assert apply_patch(workload, patch)["spec"]["owner"] == "who is known"
    provider.forget()
    workload["spec"]["owner"] = "error/of"
    answer = server.post(review(workload), "/v1/mutate?timeout=30s").verdict
    assert answer["status"]["code"] == 500
    assert "error/of is refused" in answer["status"]["message"]


def test_what_is_asked_is_counted(server):
    answers_in_policy(server, "counted/1")
    answers_in_policy(server, "html/counted")
    assert server.metric('waddle_provider_keys_total{answered="asked"}')
    assert server.metric('waddle_provider_requests_total{outcome="success",provider="images"}')
    assert server.metric('waddle_provider_requests_total{outcome="unreadable",provider="images"}')


def test_without_external_data_such_a_template_is_refused(tmp_path):
    folder = write_policies(tmp_path, *map(json.dumps, asking()))
    with Server(folder, "--enable-external-data=false") as run:
        event = run.wait_for("policy cannot be used")
        assert "undefined function external_data" in json.dumps(event)


def asking_mutator() -> dict[str, Any]:
    """Returns a mutator that asks the provider."""
    mutator = assign("owner", "spec.owner", None)
    mutator["spec"]["parameters"] = {"assign": {"externalData": {"provider": "images"}}}
    return mutator


def test_where_external_data_is_off_a_mutator_of_files_that_asks_is_refused(tmp_path: Path) -> None:
    mutator = asking_mutator()
    folder = write_policies(tmp_path, json.dumps(mutator))
    with Server(folder, "--enable-external-data=false") as run:
        event = run.wait_for("policy cannot be used")
        assert "external data feature flag is not enabled" in json.dumps(event)


def test_where_external_data_is_off_no_mutator_that_asks_is_admitted(tmp_path: Path) -> None:
    mutator = asking_mutator()
    folder = write_policies(tmp_path, json.dumps(assign("constant", "spec.owner", "x")))
    with Server(folder, "--enable-external-data=false") as server:
        server.ready()
        refused = server.admit(mutator)
        assert (refused["allowed"], refused["status"]["code"]) == (False, 422)
        assert "external data feature flag is not enabled" in refused["status"]["message"]
        assert server.admit(assign("constant", "spec.owner", "x"))["allowed"]
