"""Events: one for each change, whoever writes it, and one more of the same counts up."""

import asyncio
from typing import Any

import pytest

from tests.cluster import Cluster
from tests.webhook.events.refusing import RefusingServer, conflict, forbidden
from webhook.cluster import event_loop
from webhook.cluster.client import ClusterClient
from webhook.cluster.credentials import load_credentials
from webhook.cluster.errors import ApiError, ApiUnreachable
from webhook.cluster.kinds import EVENTS
from webhook.events.counted import MESSAGE_CHARACTERS_MAX
from webhook.events.policies import CLUSTER_WIDE_NAMESPACE, EventWriter, event

OBJECT: dict[str, Any] = {
    "apiVersion": "constraints.gatekeeper.sh/v1beta1",
    "kind": "K8sAlways",
    "metadata": {"name": "all", "uid": "uid-of-all", "generation": 3},
}


def policy_event(reason="Degraded", message="m", instance="waddle-0", **metadata):
    document = OBJECT | {"metadata": OBJECT["metadata"] | metadata}
    return event(document, reason, message, instance=instance, is_warning=True)


def test_its_name_is_what_it_says_and_not_who_says_it():
    names = {policy_event(instance=name)["metadata"]["name"] for name in ("waddle-0", "waddle-1")}
    others = [policy_event("Error"), policy_event(generation=4), policy_event(uid="another")]

    assert len(names) == 1
    assert len(names | {item["metadata"]["name"] for item in others}) == 4


@pytest.mark.parametrize("name", ["x" * 253, f"{'x' * 199}-{'y' * 10}"])
def test_its_name_and_message_fit(name):
    found = policy_event(name=name, message="x" * 5000)

    assert len(found["metadata"]["name"]) <= 253
    assert "-." not in found["metadata"]["name"]
    assert len(found["message"]) == MESSAGE_CHARACTERS_MAX


class Silent:
    """A log that nobody reads."""

    def __init__(self):
        self.lines = []

    def warning(self, message, **fields):
        """Keep a line."""
        self.lines.append((message, fields))


def put(*refusals):
    """Returns a server that knows an Event, its requests, a writer and the writer's lines."""
    server: Any = RefusingServer(*refusals)
    known = policy_event(message="one")
    key = CLUSTER_WIDE_NAMESPACE, known["metadata"]["name"]
    server.events[key] = known
    log: Any = Silent()
    writer = EventWriter(server, log)
    asyncio.run(writer.write(policy_event(message="two")))
    return server.events[key], server.requests, writer, log.lines


def test_where_another_writer_was_faster_what_it_wrote_is_counted_up():
    found, requested, writer, lines = put()

    assert requested == ["create", "merge", "merge"]
    assert (found["count"], found["message"]) == (2, "two")
    assert (writer.writes, writer.failures, lines) == (1, 0, [])


@pytest.mark.parametrize(
    ("refusals", "request_count"),
    [
        ([None, None, *([conflict(), None] * 4), conflict()], ["create", *["merge"] * 11]),
        ([forbidden()], ["create"]),
        ([ApiUnreachable("gone")], ["create"]),
        ([None, forbidden()], ["create", "merge"]),
        ([None, None, ApiUnreachable("gone")], ["create", "merge", "merge"]),
    ],
    ids=["others are always faster", "no right", "no answer", "no right to patch", "torn"],
)
def test_what_cannot_be_written_is_reported_once_and_left(refusals, request_count):
    found, requests, writer, lines = put(*refusals)

    assert requests == request_count
    assert (found["count"], found["message"]) == (1, "one")
    assert (writer.writes, writer.failures) == (1, 1)
    name = policy_event()["metadata"]["name"]
    ((message, fields),) = lines
    assert (message, fields["name"]) == ("an Event was not written", name)
    if not isinstance(refusals[-1], ApiError) or not refusals[-1].is_conflict:
        assert fields["error"] == str(refusals[-1])


def test_the_api_server_has_one_event_of_many_writers(cluster: Cluster):
    """Two at once and one after them are counted; what is refused is counted as a failure."""
    log: Any = Silent()

    async def write() -> dict:
        credentials = load_credentials(str(cluster.kubeconfig))
        async with ClusterClient(credentials) as client:
            writers = [EventWriter(client, log) for _ in range(2)]
            async with asyncio.TaskGroup() as tasks:
                for number, writer in enumerate(writers):
                    tasks.create_task(writer.write(policy_event(instance=f"waddle-{number}")))
            await writers[0].write(policy_event(message="again"))
            refused = EventWriter(client, log)
            await refused.write(policy_event() | {"involvedObject": {"namespace": "elsewhere"}})
            assert (refused.writes, refused.failures) == (1, 1)
            return await client.get(
                EVENTS, policy_event()["metadata"]["name"], CLUSTER_WIDE_NAMESPACE
            )

    found = event_loop.run(write())
    assert found["count"] == 3
    assert found["message"] == "again"
    assert found["involvedObject"]["kind"] == "K8sAlways"
    assert [message for message, _ in log.lines] == ["an Event was not written"]
