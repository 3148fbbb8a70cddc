"""``/v1/mutate`` by itself, and requests to it."""

import time
from concurrent.futures import Future
from typing import Any

from webhook.api.admission import AdmissionRequest, read_request
from webhook.constraint.client import Client
from webhook.constraint.drivers.rego import RegoDriver
from webhook.constraint.limits import Budget
from webhook.constraint.targets.admission import AdmissionTarget
from webhook.log import Log
from webhook.metrics.registry import Registry
from webhook.mutation.passes import MutationOnError
from webhook.mutation.snapshot import MutationSnapshot
from webhook.review.policy_set import PolicySet
from webhook.server.mutation import Mutation, MutationOptions
from webhook.server.preparation import Preparations, SlowReviewer
from webhook.serving.revision import NamespaceAnswer, Revision, Serving


class Namespaces:
    """A reader that answers when the test says so."""

    def __init__(self) -> None:
        self.lookups: dict[str, Future[NamespaceAnswer]] = {}

    def read(self, name: str, seconds: float) -> Future[NamespaceAnswer]:
        return self.lookups.setdefault(name, Future())


class Mutating:
    """The decision about an object, with the mutators given, and what was told of it."""

    def __init__(
        self,
        mutations: MutationSnapshot,
        reader: Namespaces | None = None,
        on_error: MutationOnError = "skip",
        reviewer: SlowReviewer | None = None,
        budget: Budget | None = None,
        annotations: bool = False,
    ) -> None:
        client = Client(targets=[AdmissionTarget()], drivers=[RegoDriver()])
        self.serving = Serving(Revision(PolicySet(client.snapshot, mutations), client))
        self.lines: list[bytes] = []
        self.registry = Registry()
        log = Log(self.lines.append).logger("test")
        options = MutationOptions(10.0, on_error=on_error, annotations=annotations, budget=budget)
        preparations = Preparations(namespaces=reader, reviewer=reviewer)
        self.mutation = Mutation(self.serving, options, self.registry, log, preparations)

    def ask(self, obj: dict[str, Any] | None, query: bytes = b"", late: float = 0.0) -> Any:
        return self.mutation(request_of(obj), query, time.monotonic() - late)


def request_of(obj: dict[str, Any] | None) -> AdmissionRequest:
    """The creation of an object in the namespace shop."""
    return read_request(
        {
            "uid": "u",
            "kind": {"group": "", "version": "v1", "kind": "Pod"},
            "operation": "CREATE",
            "name": "p",
            "namespace": "shop",
            "object": obj,
        }
    )
