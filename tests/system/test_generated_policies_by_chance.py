"""Policies of the API server's own, of templates by chance: a real one refuses what the webhook does."""

import json
import os
import random
from collections.abc import Iterator
from typing import Any

import pytest

from tests.cluster import ApiError, serves
from tests.conformance import cel_policies
from tests.policies import definition
from tests.system.conftest import control_plane
from tests.system.replicas import Plane, until
from tests.webhook.generation.planned import constraint, plan_of, template
from webhook.api.admission import read_request
from webhook.constraint.client import Client
from webhook.constraint.drivers.cel import CelDriver
from webhook.constraint.errors import InvalidTemplate
from webhook.constraint.limits import UNLIMITED
from webhook.constraint.review import AugmentedReview
from webhook.constraint.targets.admission import AdmissionTarget
from webhook.generation.plan import Options

Json = dict[str, Any]

POLICIES = int(os.environ.get("WADDLE_COMPARED_POLICIES", "12"))
SEED = int(os.environ.get("WADDLE_COMPARED_SEED", "1"))
OBJECTS = 6

ADMISSION = "/apis/admissionregistration.k8s.io/v1"
THINGS = "/apis/chance.example/v1/namespaces/d/things?dryRun=All"
CRD = definition("Thing", "things", "chance.example", namespaced=True)


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Plane]:
    """A control plane with a kind that takes any object."""
    with control_plane(tmp_path_factory.mktemp("chance")) as made:
        made.api.request("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", CRD)
        until(lambda: serves(made.api, CRD), "things are served")
        namespace = {"metadata": {"name": "d", "labels": {"env": "x"}}}
        made.api.request(
            "POST", "/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", **namespace}
        )
        yield made


class Policy:
    """A template and constraint by chance; it is about objects with its number as a label."""

    def __init__(self, number: int, chance: random.Random) -> None:
        """Raises InvalidTemplate."""
        source = cel_policies.source(chance, reads_constraint=False) | {"failurePolicy": "Fail"}
        self.label = {"number": str(number)}
        match = {"labelSelector": {"matchLabels": self.label}}
        self.source = source
        documents = template(**source), constraint(f"c{number}", match=match)
        documents[1]["spec"] |= cel_policies.spec(chance)
        self.client = Client(targets=[AdmissionTarget()], drivers=[CelDriver()])
        self.client.add_template(documents[0])
        self.client.add_constraint(documents[1])
        plan = plan_of(*documents, options=Options(alone=True))
        self.made = [*plan.policies.values(), *plan.bindings.values()]
        for one in self.made:
            del one["metadata"]["ownerReferences"]  # none of the owners exists

    def thing(self, chance: random.Random) -> Json:
        """An object that it is about."""
        document = cel_policies.thing(chance)
        labels = document["metadata"].get("labels", {}) | self.label
        metadata = {**document["metadata"], "labels": labels}
        return {
            **document,
            "apiVersion": "chance.example/v1",
            "kind": "Thing",
            "metadata": metadata,
        }

    def refusals(self, document: Json, namespace: Json) -> list[str]:
        """Returns the webhook's messages about the object's creation."""
        of = {"group": "chance.example", "version": "v1"}
        request = {
            "uid": "u",
            "kind": {**of, "kind": "Thing"},
            "resource": {**of, "resource": "things"},
            "name": "p",
            "namespace": "d",
            "operation": "CREATE",
            "userInfo": {"username": "admin"},
            "object": document,
        }
        review = AugmentedReview(read_request(request), namespace=namespace)
        return [one.msg for one in self.client.snapshot.review(review, limits=UNLIMITED).results]


def refusal(plane: Plane, document: Json) -> str:
    """Returns the message of the API server's policy: its first violation."""
    try:
        plane.api.request("POST", THINGS, document)
    except ApiError as error:
        message = str(json.loads(error.body)["message"])
        assert "denied request: " in message, message
        return message.partition("denied request: ")[2]
    return ""


def policies(chance: random.Random) -> Iterator[Policy]:
    number = 0
    while True:
        number += 1
        try:
            made = Policy(number, chance)
        except InvalidTemplate:
            continue  # an expression compiles or not by the variables that it reads
        if made.made:  # conditions that read variables are in no policy
            yield made


@pytest.mark.slow
def test_the_api_server_refuses_what_the_webhook_refuses_and_says_the_same(plane: Plane) -> None:
    chance = random.Random(SEED)
    namespace = plane.api.request("GET", "/api/v1/namespaces/d")
    compared = refused = 0
    for policy, _ in zip(policies(chance), range(POLICIES), strict=False):
        things = [policy.thing(chance) for _ in range(OBJECTS)]
        by_object = [policy.refusals(document, namespace) for document in things]
        if not any(by_object):
            continue  # from when it is enforced could not be told
        for document, plural in zip(
            policy.made,
            ("validatingadmissionpolicies", "validatingadmissionpolicybindings"),
            strict=True,
        ):
            plane.api.request("POST", f"{ADMISSION}/{plural}", document)
        first = next(
            document for document, refusals in zip(things, by_object, strict=True) if refusals
        )
        until(lambda first=first: refusal(plane, first), "the API server refuses")
        for document, refusals in zip(things, by_object, strict=True):
            found = refusal(plane, document)
            assert found in (refusals or [""]), (policy.source, document)
            compared += 1
            refused += bool(refusals)
    assert refused > POLICIES
    assert compared > refused
