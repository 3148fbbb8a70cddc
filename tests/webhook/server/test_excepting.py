"""Exceptions that are being admitted: what is refused, in which words, and who is asked about."""

from __future__ import annotations

import asyncio
import time
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from tests.behaviour.serving import REQUIRED_LABELS, constraint
from tests.policies import exception
from tests.webhook.server.admitting import Admitting, request_of
from webhook.api.timestamp import text_of
from webhook.server.outcome import Pending
from webhook.server.preparation import AccessAnswer

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from webhook.api.admission import AdmissionResponse

OF = "RequiredLabel/owned"


class Rights:
    """Gives the answers that a test sets, and notes the questions."""

    def __init__(self, answer: AccessAnswer | None) -> None:
        self.answer = answer
        self.reviews: list[tuple[str, list[Any]]] = []

    def lacking(
        self, user: Mapping[str, Any], rights: Sequence[Any], seconds: float
    ) -> Future[AccessAnswer]:
        assert seconds > 0
        self.reviews.append((user["username"], list(rights)))
        future: Future[AccessAnswer] = Future()
        if self.answer is not None:
            future.set_result(self.answer)
        return future


def constraint_with(**annotations: str) -> str:
    document = yaml.safe_load(constraint("owned", "owner"))
    document["metadata"]["annotations"] = {
        f"waddle.dev/{name}": value for name, value in annotations.items()
    }
    return yaml.safe_dump(document)


def answer(
    obj: dict[str, Any],
    rights: Rights | None,
    *,
    policy: str = "",
    query: bytes = b"",
    old: dict[str, Any] | None = None,
    **options: Any,
) -> AdmissionResponse:
    """Returns the answer to a request that writes an exception."""
    admitting = Admitting(REQUIRED_LABELS, policy or constraint_with(), rights=rights, **options)

    async def ask() -> Any:
        request = (
            {"operation": "CREATE"} if old is None else {"operation": "UPDATE", "oldObject": old}
        )
        outcome = admitting.ask(request_of(obj, **request), query)
        while isinstance(outcome, Pending):
            await outcome.finished
            outcome = outcome.resume()
        return outcome

    response: AdmissionResponse = asyncio.run(ask())
    return response


def wide(**spec: Any) -> dict[str, Any]:
    return exception("e", OF, **{"match": {"name": "p"}, **spec})


def test_who_may_is_asked_for_each_constraint_by_name() -> None:
    rights = Rights(AccessAnswer())
    assert answer(wide(), rights).allowed
    right = {
        "group": "constraints.gatekeeper.sh",
        "resource": "requiredlabel",
        "verb": "except",
        "name": "owned",
    }
    assert [attributes for _, attributes in rights.reviews] == [[{"resourceAttributes": right}]]
    every = exception("e", "RequiredLabel/*", match={"name": "p"})
    assert answer(every, rights).allowed
    del right["name"]
    assert rights.reviews[-1][1] == [{"resourceAttributes": right}]


def test_who_may_not_is_refused_and_informed_what_it_takes() -> None:
    response = answer(wide(), Rights(AccessAnswer(0)))
    assert (response.allowed, response.code) == (False, 403)
    assert "may not make exceptions from RequiredLabel owned" in response.message
    assert "the verb except on requiredlabel.constraints.gatekeeper.sh" in response.message


@pytest.mark.parametrize("access", [AccessAnswer(fault="connection refused"), None])
def test_whoever_cannot_be_asked_about_is_refused(access: AccessAnswer | None) -> None:
    response = answer(wide(), Rights(access), query=b"timeout=1s")
    assert (response.allowed, response.code) == (False, 503)
    assert "the API server did not say" in response.message


@pytest.mark.parametrize(
    "path", ["spec.containers[name: *].image", "spec.containers[name: web]", "spec.volumes"]
)
def test_parts_that_leave_something_are_narrow(path: str) -> None:
    response = answer(exception("e", OF, parts={"paths": [path]}), Rights(AccessAnswer()))
    assert response.allowed, response.message


def test_all_service_accounts_of_a_namespace_are_not_everybody() -> None:
    """Such an exception was refused, as if it excused everything."""

    def of(namespace: str) -> AdmissionResponse:
        subject = {"kind": "ServiceAccount", "name": "*", "namespace": namespace}
        return answer(exception("e", OF, subjects=[subject]), Rights(AccessAnswer()))

    assert of("ci").allowed
    assert "it would excuse everything" in of("*").message


def test_a_spec_that_stays_is_not_asked_about() -> None:
    rights = Rights(AccessAnswer(0))
    expired = wide(expires="2020-01-01T00:00:00Z")
    labelled = {**expired, "metadata": {**expired["metadata"], "labels": {"a": "b"}}}
    assert answer(labelled, rights, old=expired).allowed
    assert rights.reviews == []


ANYTHING = {
    "kinds": [{"apiGroups": ["*"], "kinds": ["*"]}],
    "namespaces": ["*"],
    "excludedNamespaces": [],
    "labelSelector": {"matchLabels": {}},
    "namespaceSelector": {},
    "scope": "*",
    "source": "All",
    "name": "*",
}
"""A match of every object, field by field."""


@pytest.mark.parametrize(
    ("document", "code", "says"),
    [
        (wide(expires="2020-01-01T00:00:00Z"), 422, "spec.expires is in the past"),
        (wide(expires=None), 422, "spec.expires is missing"),
        (wide(expires=None, permanent=True), 422, "longer than 30 days"),
        (wide(), 422, "longer than 30 days"),
        (exception("e", OF), 422, "it would excuse everything"),
        (exception("e", OF, match={"kinds": []}), 422, "it would excuse everything"),
        (exception("e", OF, match=ANYTHING), 422, "it would excuse everything"),
        (exception("e", OF, parts={"containers": ["*"]}), 422, "it would excuse everything"),
        *(
            (exception("e", OF, parts={"paths": [path]}), 422, "it would excuse everything")
            for path in ("spec", "spec.template.spec.containers", "spec.containers[name: *]")
        ),
        (
            exception("e", OF, subjects=[{"kind": "Group", "name": "*"}]),
            422,
            "it would excuse everything",
        ),
        (
            exception("e", OF, violations=[{"message": "no"}, {"message": "**"}]),
            422,
            "it would excuse everything",
        ),
        (
            exception("e", OF, namespace="shop"),
            403,
            "it has no annotation waddle.dev/exceptions: all",
        ),
        (exception("e", "*/*", match={"name": "p"}), 422, "is not a kind"),
        (exception("e", "RequiredLabel/*", namespace="shop"), 422, "which only a Cluster"),
        (wide(reason=""), 422, "spec.reason"),
        (wide(effect="allow"), 422, "spec.effect"),
        (wide(efect="skip"), 422, "unknown field spec.efect"),
        (wide(matchConditions=[{"name": "c", "expression": "1 +"}]), 422, "matchConditions[0]"),
        (wide(matchConditions=[{"name": "c", "expression": "1"}]), 422, "must evaluate to bool"),
        (wide(parts={"paths": ["spec..x"]}), 422, "spec.parts.paths[0]"),
        (wide(parts={}), 422, "names no containers"),
        (wide(violations=[{}]), 422, "neither message nor details"),
        (wide(subjects=[{"kind": "ServiceAccount", "name": "a"}]), 422, "namespace is missing"),
        (wide(notBefore="2101-01-01T00:00:00Z"), 422, "never in force"),
    ],
)
def test_bad_exceptions_are_refused_in_plain_words(
    document: dict[str, Any], code: int, says: str
) -> None:
    longest = 30 * 86400.0 if "longer" in says else 0.0
    response = answer(document, Rights(AccessAnswer()), exceptions_longest_seconds=longest)
    assert (response.allowed, response.code) == (False, code), response
    assert says in response.message


def test_a_constraint_may_close_itself() -> None:
    rights = Rights(AccessAnswer())
    response = answer(wide(), rights, policy=constraint_with(exceptions="none"))
    assert (response.allowed, response.code) == (False, 403)
    assert "allows no exceptions: its annotation waddle.dev/exceptions says so" in response.message
    opened = constraint_with(exceptions="all")
    assert answer(exception("e", OF, namespace="shop"), rights, policy=opened).allowed


def test_what_the_api_server_alone_enforces_cannot_be_excused() -> None:
    document = yaml.safe_load(constraint("owned", "owner"))
    points = [{"name": "vap.k8s.io"}, {"name": "audit.gatekeeper.sh"}]
    document["spec"] |= {
        "enforcementAction": "scoped",
        "scopedEnforcementActions": [{"action": "deny", "enforcementPoints": points}],
    }
    response = answer(wide(), Rights(AccessAnswer()), policy=yaml.safe_dump(document))
    assert (response.allowed, response.code) == (False, 422)
    assert "by the API server alone (vap.k8s.io)" in response.message


def test_an_exception_from_what_does_not_exist_is_admitted_with_a_warning() -> None:
    document = exception("e", "RequiredLabel/other", match={"name": "p"})
    response = answer(document, Rights(AccessAnswer()))
    assert response.allowed
    assert response.warnings == ("there is no constraint RequiredLabel/other yet",)


def test_a_month_is_no_longer_than_a_month() -> None:
    soon = text_of(time.time() + 29 * 86400)
    response = answer(
        wide(expires=soon), Rights(AccessAnswer()), exceptions_longest_seconds=30 * 86400.0
    )
    assert response.allowed, response.message
