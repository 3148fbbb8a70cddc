"""Providers that do what they should not, asked by mutators: each failure policy has its outcome.

The provider and the server are processes of their own; the mutators are files.
"""

import base64
import itertools
import json
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from tests.behaviour.serving import Server, review, thing, write_policies
from tests.json_patch import apply_patch
from tests.provider_process import ProviderProcess, make_authority

POLICIES = {"fail": {"failurePolicy": "Fail"}, "ignore": {"failurePolicy": "Ignore"}}
POLICIES["default"] = {"failurePolicy": "UseDefault", "default": "a default"}
PROVIDERS = ("good", "hasty", "tardy", "nowhere")


def mutator(policy: str, provider: str, location: str = "data.image") -> dict[str, Any]:
    """Puts what a provider says of it in the place of an image, of ConfigMaps that name both."""
    external = {"provider": provider, "dataSource": "ValueAtLocation", **POLICIES[policy]}
    return {
        "apiVersion": "mutations.gatekeeper.sh/v1",
        "kind": "Assign",
        "metadata": {"name": f"{policy}-{provider}-{len(location)}"},
        "spec": {
            "applyTo": [{"groups": [""], "versions": ["v1"], "kinds": ["ConfigMap"]}],
            "match": {"labelSelector": {"matchLabels": {"policy": policy, "provider": provider}}},
            "location": location,
            "parameters": {"assign": {"externalData": external}},
        },
    }


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server that refuses what its mutators cannot be applied to, as Gatekeeper does."""
    with ExitStack() as stack:
        folder = tmp_path_factory.mktemp("provider")
        provider = stack.enter_context(ProviderProcess(folder, authority=make_authority()))
        timeouts = {"good": 30, "hasty": 1, "tardy": 5}
        documents = [provider.manifest(name, timeout=each) for name, each in timeouts.items()]
        documents += [mutator(*each) for each in itertools.product(POLICIES, PROVIDERS)]
        documents += [mutator(each, "good", "spec.containers[name: *].image") for each in POLICIES]
        files = write_policies(tmp_path_factory.mktemp("policies"), *map(json.dumps, documents))
        flags = ("--operation=webhook,mutation-webhook", "--mutation-on-error=reject")
        yield stack.enter_context(Server(files, *flags)).ready()


numbers = itertools.count()


def mutated(server: Server, policy: str, provider: str, image: str) -> tuple[bool, str]:
    """Whether an object with this image is let in, and its image then, or why not."""
    labels = {"policy": policy, "provider": provider}
    obj = thing("ConfigMap", namespace="default", labels=labels) | {"data": {"image": image}}
    user = {"username": f"user-{next(numbers)}"}
    verdict = server.post(review(obj, userInfo=user), "/v1/mutate?timeout=30s").verdict
    if not verdict["allowed"]:
        assert verdict["status"]["code"] == 500
        return False, verdict["status"]["message"]
    patch = json.loads(base64.b64decode(verdict.get("patch", "W10=")))
    return True, apply_patch(obj, patch)["data"]["image"]


FAILED = "failed to resolve external data placeholders: "
UNSENT = "failed to send external data request to provider"
INVALID = "failed to validate external data response from provider good: "
NO_ITEM = "failed to retrieve external data item from provider good: "
NO_TEXT = "failed to convert external data item value from provider good to string, got type "


@pytest.mark.parametrize(
    ("provider", "rule", "message"),
    [
        ("hasty", "hang", f"{UNSENT} hasty: failed to send external data request: "),
        ("tardy", "late60000", f"{UNSENT} tardy: failed to read external data response: "),
        ("good", "drop", f"{UNSENT} good: failed to send external data request: "),
        ("good", "cut", f"{UNSENT} good: failed to read external data response: "),
        ("good", "big", f"{UNSENT} good: failed to read external data response: "),
        ("good", "redirect", f"{UNSENT} good: failed to send external data request: "),
        ("good", "plain", f"{UNSENT} good: failed to unmarshal external data response: "),
        ("good", "wrongitems", f"{UNSENT} good: failed to unmarshal external data response: "),
        ("good", "unsteady", f"{INVALID}non-idempotent response"),
        ("good", "system", f"{INVALID}non-empty system error: "),
        ("good", "partly", f"{INVALID}non-empty system error: "),
        ("good", "missing", "failed to find external data item in response for provider good"),
        ("good", "other", "failed to find external data item in response for provider good"),
        ("good", "error", NO_ITEM),
        ("good", "withdrawn", f"{NO_ITEM}refused later"),
        ("good", "number", f"{NO_TEXT}float64"),
        ("good", "negative", f"{NO_TEXT}float64"),
        ("good", "true", f"{NO_TEXT}bool"),
        ("good", "null", f"{NO_TEXT}<nil>"),
        ("good", "list", f"{NO_TEXT}[]interface {{}}"),
        ("good", "object", f"{NO_TEXT}map[string]interface {{}}"),
        ("nowhere", "known", "failed to find external data provider nowhere in responses"),
    ],
)
def test_each_failure_policy_does_what_it_says(
    server: Server, provider: str, rule: str, message: str
) -> None:
    refused = mutated(server, "fail", provider, f"{rule}/{next(numbers)}")
    assert not refused[0]
    assert refused[1].startswith(FAILED + message)
    image = f"{rule}/{next(numbers)}"
    assert mutated(server, "ignore", provider, image) == (True, image)
    assert mutated(server, "default", provider, image) == (True, "a default")
    if provider != "nowhere":  # After five faults in a row it would not be asked for a while.
        assert mutated(server, "fail", provider, f"known/{next(numbers)}")[0]


@pytest.mark.parametrize("policy", POLICIES)
def test_what_is_known_is_put_there_whatever_the_policy(server: Server, policy: str) -> None:
    image = f"known/{next(numbers)}"
    assert mutated(server, policy, "good", image) == (True, f"{image} is known")
    assert mutated(server, policy, "good", f"empty/{next(numbers)}") == (True, "")


def test_of_two_items_for_a_key_the_last_counts(server: Server) -> None:
    """Whichever is the error, as for Gatekeeper."""
    for rule in ("twice", "corrected"):
        image = f"{rule}/{next(numbers)}"
        for _ in range(2):
            assert mutated(server, "fail", "good", image) == (True, "second")


def test_a_part_of_an_answer_that_failed_is_not_used_by_the_next(server: Server) -> None:
    """The items beside a system error are not used for a later answer."""
    image = f"partly/{next(numbers)}"
    for _ in range(2):
        assert mutated(server, "default", "good", image) == (True, "a default")


@pytest.mark.parametrize(
    ("policy", "image"), [("fail", ""), ("ignore", None), ("default", "a default")]
)
def test_ten_thousand_keys_are_not_asked_for(
    server: Server, policy: str, image: str | None
) -> None:
    """An object has as many with its data; each failure policy does what it says."""
    labels = {"policy": policy, "provider": "good"}
    images = [f"known/{next(numbers)}" for _ in range(9_999)]
    containers = [{"name": f"c{at}", "image": each} for at, each in enumerate(images)]
    obj = thing("ConfigMap", namespace="default", labels=labels)
    obj |= {"spec": {"containers": containers}, "data": {"image": "known/x"}}
    verdict = server.post(review(obj), "/v1/mutate?timeout=30s").verdict
    if policy == "fail":
        assert not verdict["allowed"]
        assert "10000 keys are asked for at once, and 1000 may be" in verdict["status"]["message"]
        return
    patch = json.loads(base64.b64decode(verdict.get("patch", "W10=")))
    found = [each["image"] for each in apply_patch(obj, patch)["spec"]["containers"]]
    assert found == (images if image is None else [image] * len(images))
