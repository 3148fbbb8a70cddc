"""`spec.match.processes` says where excludedNamespaces holds: at admissions, in audits, in mutation."""

from __future__ import annotations

from typing import Any

import pytest

from tests.webhook.constraint.policies import client, constraint, pod, template
from webhook.constraint.enforcement import ALL, AUDIT, COMMAND_LINE, WEBHOOK
from webhook.constraint.errors import SchemaViolation
from webhook.constraint.review import AugmentedObject
from webhook.mutation.errors import InvalidMutator
from webhook.mutation.reading import read_mutator, with_defaults
from webhook.mutation.registry import Mutators
from webhook.mutation.setting import Context

ADMISSIONS = (WEBHOOK, COMMAND_LINE, ALL)


def spared(processes: list[str] | None, **match: Any) -> set[str]:
    """The points where an object in an excluded namespace is left out."""
    match = {"excludedNamespaces": ["legacy-*"], **match}
    if processes is not None:
        match["processes"] = processes
    snapshot = client(template(), constraint(match=match)).snapshot
    inside, outside = (AugmentedObject(pod(namespace=name)) for name in ("legacy-a", "shop"))
    found = {}
    for point in (*ADMISSIONS, AUDIT):
        assert snapshot.review(outside, enforcement_point=point).results
        found[point] = bool(snapshot.review(inside, enforcement_point=point).results)
    return {point for point, violated in found.items() if not violated}


@pytest.mark.parametrize(
    ("processes", "where"),
    [
        (None, {*ADMISSIONS, AUDIT}),
        ([], {*ADMISSIONS, AUDIT}),
        (["*"], {*ADMISSIONS, AUDIT}),
        (["webhook"], {*ADMISSIONS}),
        (["audit"], {AUDIT}),
        (["audit", "webhook"], {*ADMISSIONS, AUDIT}),
        (["sync", "mutation-webhook"], set()),
    ],
)
def test_the_exclusion_holds_where_it_is_said(processes: list[str] | None, where: set[str]) -> None:
    assert spared(processes) == where
    assert spared(processes, kinds=[{"apiGroups": [""], "kinds": ["Pod"]}]) == where
    assert spared(processes, labelSelector={}) == where


def test_the_rest_of_a_match_holds_everywhere() -> None:
    match = {
        "namespaces": ["shop"],
        "excludedNamespaces": ["shop"],
        "processes": ["webhook"],
        "labelSelector": {"matchLabels": {"a": "b"}},
    }
    snapshot = client(template(), constraint(match=match)).snapshot
    labelled = AugmentedObject(pod(labels={"a": "b"}))
    assert snapshot.review(labelled, enforcement_point=AUDIT).results
    assert not snapshot.review(AugmentedObject(pod()), enforcement_point=AUDIT).results
    assert not snapshot.review(labelled, enforcement_point=WEBHOOK).results


def test_an_unknown_process_is_refused_with_those_that_there_are() -> None:
    with pytest.raises(SchemaViolation, match=r"spec\.match\.processes\[0\].*mutation-webhook"):
        client(template(), constraint(match={"processes": ["webhooks"]}))
    with pytest.raises(InvalidMutator, match="processes"):
        read_mutator(with_defaults(mutator(processes=["webhooks"])))


def mutator(**match: Any) -> dict[str, Any]:
    """A mutator that labels what it matches."""
    return {
        "apiVersion": "mutations.gatekeeper.sh/v1",
        "kind": "AssignMetadata",
        "metadata": {"name": "owner"},
        "spec": {
            "match": {"excludedNamespaces": ["legacy-*"], **match},
            "location": "metadata.labels.owner",
            "parameters": {"assign": {"value": "x"}},
        },
    }


@pytest.mark.parametrize(
    ("processes", "mutated"),
    [([], False), (["mutation-webhook"], False), (["*"], False), (["webhook", "audit"], True)],
)
def test_a_mutator_excludes_where_it_mutates(processes: list[str], mutated: bool) -> None:
    made = Mutators()
    made.add(with_defaults(mutator(processes=processes)))
    context = Context(operation="CREATE", namespace={"metadata": {"name": "legacy-a"}})
    obj = pod(namespace="legacy-a")
    assert (made.snapshot.mutate(obj, context).object is not obj) is mutated
