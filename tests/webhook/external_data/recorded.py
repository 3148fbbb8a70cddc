"""Answers for providers in tests, with the recorded requests."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

from tests.policies import constraint, template
from tests.provider_process import make_authority
from webhook.external_data.exchange import ProviderRequest, ProviderResponse

if TYPE_CHECKING:
    from webhook.external_data.exchange import Answering

SIGNED = """package signed
violation[{"msg": msg}] {
	images := [c.image | c := input.review.object.spec.containers[_]]
	asked := external_data({"provider": "images", "keys": images})
	msg := sprintf("%v: %v", asked.errors[_])
}"""
POLICIES = (template("Signed", SIGNED), constraint("Signed", "all", kinds=["Pod"]))
ANSWERS: dict[str, Any] = {"items": {"good": {"value": "ok"}, "bad": {"error": "not signed"}}}


def provider(name: str = "images", **spec: Any) -> dict[str, Any]:
    """A Provider that can be used."""
    bundle = base64.b64encode(make_authority().certificate).decode()
    return {
        "apiVersion": "externaldata.gatekeeper.sh/v1beta1",
        "kind": "Provider",
        "metadata": {"name": name},
        "spec": {
            "url": "https://images.example/validate",
            "timeout": 3,
            "caBundle": bundle,
            **spec,
        },
    }


Rounds = list[tuple[ProviderRequest, ...]]


def good(request: ProviderRequest) -> ProviderResponse:
    """A provider that says of each key that it is good."""
    return response_of(request, "good")


def response_of(request: ProviderRequest, value: object) -> ProviderResponse:
    """The same of another value."""
    pairs = tuple((key, value) for key in request.keys)
    return ProviderResponse(pairs, (), 200, is_idempotent=True)


def refused(request: ProviderRequest, error: str = "unsigned") -> ProviderResponse:
    """A provider that has an error for each key."""
    pairs = tuple((key, error) for key in request.keys)
    return ProviderResponse((), pairs, 200, is_idempotent=True)


class Answers:
    """Gives the answers that a test sets."""

    def __init__(self, answer: Answering = good) -> None:
        self.rounds: Rounds = []
        self._answer = answer

    def __call__(
        self, requests: tuple[ProviderRequest, ...]
    ) -> dict[ProviderRequest, ProviderResponse]:
        """Answers to one round."""
        self.rounds.append(requests)
        answers = {}
        for request in requests:
            answer = self._answer(request)
            assert answer is not None
            answers[request] = answer
        return answers

    async def ask(
        self, requests: tuple[ProviderRequest, ...]
    ) -> dict[ProviderRequest, ProviderResponse]:
        """The same for who awaits it."""
        return self(requests)
