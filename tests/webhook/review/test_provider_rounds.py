"""Placeholders of mutators: asked in rounds by every walk, and resolved as Gatekeeper resolves them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from tests.policies import expansion_template
from tests.webhook.external_data.recorded import Answers, good, refused, response_of
from tests.webhook.mutation.documents import known, mutator, pod
from webhook.api.admission import read_request
from webhook.constraint.expansion import Expansion, read_expansion_template
from webhook.constraint.review import AugmentedObject, AugmentedReview
from webhook.constraint.snapshot import Snapshot
from webhook.external_data.exchange import (
    UNKNOWN_PROVIDER,
    ProviderRequest,
    ProviderResponse,
    failure,
)
from webhook.mutation.drift import drifts_of
from webhook.mutation.errors import MutationError
from webhook.review.loops import answered, review
from webhook.review.mutating import Changes, changes
from webhook.review.outcome import Needs
from webhook.review.policy_set import PolicySet
from webhook.review.subject import Subject

if TYPE_CHECKING:
    from webhook.external_data.exchange import Answering, Ask

IMAGES = "spec.containers[name: *].image"
EXPANSION = expansion_template("t")


def asks(name: str = "a", location: str = IMAGES, **data: str) -> dict[str, Any]:
    """A mutator that asks a provider."""
    external = {"provider": "p", **data}
    return mutator("Assign", name, location, parameters={"assign": {"externalData": external}})


def policies(*documents: dict[str, Any], expansion: Expansion | None = None) -> PolicySet:
    """Mutators in force, and nothing else."""
    return PolicySet(Snapshot(targets={}), known(*documents).snapshot, expansion or Expansion())


def stored(documents: tuple[dict[str, Any], ...], obj: dict[str, Any], ask: Ask | None) -> Any:
    """Returns the object as it would be stored."""
    found = review(policies(*documents), Subject(AugmentedObject(obj)), ask=ask)
    assert not found.faults, found.faults
    return found.object


def images(obj: dict[str, Any]) -> list[str]:
    return [container["image"] for container in obj["spec"]["containers"]]


def test_keys_are_asked_once_each_and_what_is_said_stands_there() -> None:
    ask = Answers(lambda request: response_of(request, "registry/it"))
    after = stored((asks(),), pod("x", "y", "x"), ask)
    assert images(after) == ["registry/it"] * 3
    assert ask.rounds == [(ProviderRequest("p", ("x", "y")),)]


def test_several_providers_are_asked_beside_each_other() -> None:
    ask = Answers()
    other = asks("b", "spec.owner", provider="q", dataSource="Username")
    stored((asks(), other), pod("x"), ask)
    assert [sorted(one.provider for one in requests) for requests in ask.rounds] == [["p", "q"]]


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (refused, "failed to retrieve external data item from provider p: unsigned"),
        (
            lambda request: response_of(request, 1),
            "failed to convert external data item value from provider p to string, got type float64",
        ),
        (
            lambda _: ProviderResponse((), (), 200, is_idempotent=True),
            "failed to find external data item in response for provider p",
        ),
        (
            lambda _: ProviderResponse((), (), 200, " broken ", is_idempotent=True),
            (
                "failed to validate external data response from provider p: "
                "non-empty system error: broken"
            ),
        ),
        (
            lambda request: good(request)._replace(is_idempotent=False),
            "failed to validate external data response from provider p: non-idempotent response",
        ),
        (
            lambda _: failure("failed to send external data request: gone"),
            (
                "failed to send external data request to provider p: "
                "failed to send external data request: gone"
            ),
        ),
        (
            lambda _: failure("key is not found in provider cache", UNKNOWN_PROVIDER),
            "failed to find external data provider p in responses",
        ),
    ],
)
def test_each_failure_has_gatekeepers_words_and_its_policy(answer: Answering, message: str) -> None:
    ask = Answers(answer)
    found = review(policies(asks()), Subject(AugmentedObject(pod("x"))), ask=ask)
    assert found.unmutated == (
        f"mutating Pod shop/p: failed to resolve external data placeholders: {message}"
    )
    assert images(stored((asks(failurePolicy="Ignore"),), pod("x"), ask)) == ["x"]
    default = asks(failurePolicy="UseDefault", default="safe")
    assert images(stored((default,), pod("x"), ask)) == ["safe"]


def test_what_had_no_answer_and_may_do_without_is_named() -> None:
    documents = asks(failurePolicy="Ignore"), asks("b", "spec.owner", failurePolicy="Ignore")
    found = review(policies(*documents), Subject(AugmentedObject(pod("x"))), ask=Answers(refused))
    assert [(one.path, one.key) for one in found.unresolved] == [
        ("spec.containers[0].image", "x"),
        ("spec.owner", ""),
    ]
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "s"},
        "data": {"a": "hush"},
    }
    assigning = asks(location="data.a", failurePolicy="Ignore")
    assigning["spec"]["applyTo"] = [{"groups": [""], "versions": ["v1"], "kinds": ["Secret"]}]
    found = review(policies(assigning), Subject(AugmentedObject(secret)), ask=Answers(refused))
    assert "hush" not in str(found.unresolved)


def test_resultants_of_an_expansion_are_asked_for_together() -> None:
    templates = [
        {
            **EXPANSION,
            "metadata": {"name": name},
            "spec": {**EXPANSION["spec"], "templateSource": at},
        }
        for name, at in (("a", "spec.template"), ("b", "spec.other"))
    ]
    expansion = Expansion([read_expansion_template(one) for one in templates])
    deployment = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "shop"},
        "spec": {"template": {"spec": pod("x")["spec"]}, "other": {"spec": pod("y")["spec"]}},
    }
    ask = Answers(lambda request: response_of(request, "registry/it"))
    subject = Subject(AugmentedObject(deployment))
    found = review(policies(asks(), expansion=expansion), subject, ask=ask)
    assert not found.faults
    assert [images(one) for one in found.implied] == [["registry/it"]] * 2
    assert [sorted(one.keys for one in requests) for requests in ask.rounds] == [[("x",), ("y",)]]


# --- what the webhook answers, previews and drift ---------------------------------------------------


def request(obj: dict[str, Any]) -> AugmentedReview:
    kind = {"group": "", "version": "v1", "kind": "Pod"}
    return AugmentedReview(
        read_request({"uid": "1", "kind": kind, "operation": "CREATE", "object": obj})
    )


def changed(documents: tuple[dict[str, Any], ...], ask: Answers) -> Changes:
    """Returns the mutators' changes of a Pod, after as many rounds as they need."""
    subject = Subject(request(pod("x")))
    while True:
        found = changes(policies(*documents), subject, annotates=True)
        if isinstance(found, Changes):
            return found
        assert found.requests
        subject = subject.with_answers(ask(found.requests))


def test_changes_need_answers_first_and_say_what_they_were() -> None:
    found = changes(policies(asks()), Subject(request(pod("x"))))
    assert found == Needs(requests=(ProviderRequest("p", ("x",)),))
    change = changed((asks(),), Answers(lambda one: response_of(one, "registry/it")))
    assert [one["value"] for one in change.patch.operations] == ["registry/it"]
    assert change.answers is not None
    assert list(change.answers) == [ProviderRequest("p", ("x",))]
    assert "metadata" in str(change.answer.operations)
    with pytest.raises(MutationError, match="unsigned"):
        changed((asks(),), Answers(refused))


def test_previewed_mutators_ask_as_well_and_their_failure_changes_nothing() -> None:
    preview = asks("previewed", "spec.owner")
    preview["metadata"]["annotations"] = {"waddle.dev/mode": "preview"}
    change = changed((preview,), Answers(lambda one: response_of(one, "ada")))
    assert change.preview is not None
    assert [one["value"] for one in change.preview.patch] == ["ada"]
    refusing = changed((preview,), Answers(refused))
    assert not refusing.patch
    assert refusing.preview is not None
    assert "unsigned" in refusing.preview.fault


def test_drift_is_reported_by_answers_and_not_while_a_provider_has_none() -> None:
    mutations = known(asks(failurePolicy="UseDefault", default="safe")).snapshot
    by_user = known(asks("u", "spec.owner", dataSource="Username")).snapshot
    ask = Answers(lambda one: response_of(one, "registry/it"))
    (drift,) = answered(lambda by: drifts_of(mutations, pod("x"), None, "shop", by.known), ask)
    assert drift.paths == ("/spec/containers/0/image",)
    assert ask.rounds == [(ProviderRequest("p", ("x",)),)]
    same = Answers(lambda one: response_of(one, "x"))
    assert answered(lambda by: drifts_of(mutations, pod("x"), None, "shop", by.known), same) == ()
    gone = Answers(refused)
    assert answered(lambda by: drifts_of(mutations, pod("x"), None, "shop", by.known), gone) == ()
    assert drifts_of(mutations, pod("x"), None, "shop") == ()
    assert drifts_of(by_user, pod("x"), None, "shop", lambda _: None) == ()


def test_a_walk_made_again_with_answers_is_the_same_function_of_them() -> None:
    subject = Subject(AugmentedObject(pod("x")))
    first = subject.with_answers(Answers()((ProviderRequest("p", ("x",)),)))
    assert first.rounds == 1
    assert replace(first, rounds=0).answers == first.answers
