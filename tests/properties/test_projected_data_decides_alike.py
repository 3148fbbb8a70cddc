"""A replica that keeps what policies read finds what one finds that keeps objects whole.

Both get the same changes of objects and of policies, by chance; lists that a wider projection needs
come late. ``WADDLE_PROJECTION_ROUNDS=1000`` compares a thousand times as much.
"""

import os
from random import Random
from typing import Any

import pytest

from tests import policies
from tests.webhook.controllers.projected_replica import (
    CEL,
    NAMES,
    NAMESPACES,
    REGO,
    Replica,
    some_names,
    some_object,
    some_value,
)
from webhook.cluster.store import Key
from webhook.constraint.review import AugmentedObject
from webhook.controllers.apply import projection
from webhook.policy_kinds.known import TEMPLATE, constraint_gvk

ROUNDS = int(os.environ.get("WADDLE_PROJECTION_ROUNDS", "1"))
STEPS = 60
KINDS = ("Alpha", "Beta", "Gamma")


def some_template(kind: str, generation: int, random: Random) -> Any:
    """A template whose message says which generation it is."""
    names = some_names(random)
    metadata = {"uid": kind, "generation": generation}
    number = random.randrange(len(REGO) + len(CEL))
    if number < len(REGO):
        body = REGO[number].format(**names)
        where = random.choice(["[_]", '["one"]', "[input.review.namespace]"])
        rego = f"""package some
violation[{{"msg": msg}}] {{
  of := data.inventory.namespace{where}.v1.ConfigMap[_]
  {body}
  msg := "{kind} {number}"
}}"""
        source: Any = {"rego": rego, "version": "v1"}
        if "every" in rego or "some name" in rego:
            rego = rego.replace("violation[{", "violation contains {").replace("}] {", "}} if {")
            rego = rego.replace('"msg": msg}} if', '"msg": msg} if')
            source["rego"] = rego
        else:
            source = {"rego": rego}
        code = [{"engine": "Rego", "source": source}]
    else:
        inner = CEL[number - len(REGO)].format(**names)
        places = "variables.inventory['namespace']['one']['v1']['ConfigMap']"
        expression = f"!{places}.exists(name, [{places}[name]].exists(of, {inner}))"
        source = {
            "validations": [{"expression": expression, "message": f"{kind} {number}"}],
        }
        code = [{"engine": "K8sNativeValidation", "source": source}]
    made = policies.template(kind, metadata=metadata)
    made["spec"]["targets"] = [{"target": policies.ADMISSION, "code": code}]
    return made


def found(replica: Replica, review: Any, kinds: Any) -> list[tuple[str, str]]:
    """Returns what policies of some kinds find."""
    responses = replica.client.snapshot.review(AugmentedObject(review))
    # The order in which objects came decides which of several errors the answer names.
    results = [
        (one.constraint.kind, one.msg.partition(" resulted in error")[0])
        for one in responses.results
    ]
    faults = [(one.kind, one.message) for one in responses.faults]
    return sorted(one for one in results + faults if one[0] in kinds)


def differing(seed: str) -> tuple[int, int, int]:
    """Play a world; how many reviews were compared, found something, and had a template wait."""
    random = Random(seed)
    whole, projected = Replica(projects=False), Replica(projects=True)
    both = whole, projected
    compared = violating = waits = 0
    for step in range(STEPS):
        chance = random.random()
        if chance < 0.35:
            key = Key(random.choice(NAMESPACES), random.choice(NAMES))
            is_gone = random.random() < 0.2
            one = None if is_gone else some_object(random, *key, step)
            for replica in both:
                replica.change(key, one)
        elif chance < 0.6:
            kind = random.choice(KINDS)
            template = None if random.random() < 0.25 else some_template(kind, step + 1, random)
            constraint = policies.constraint(kind, "c", metadata={"uid": kind})
            for replica in both:
                replica.take(TEMPLATE, Key("", kind.lower()), template)
                if template is not None:
                    replica.take(constraint_gvk(kind), Key("", "c"), constraint)
        elif chance < 0.8:
            projected.list_all()
            whole.list_all()
        else:
            projected.policies.retry()
        ours, theirs = projected.in_force(), whole.in_force()
        waits += ours != theirs
        same = {kind for kind in ours if ours[kind] == theirs.get(kind)}
        if projected.policies.data.digest != whole.policies.data.digest:
            continue  # Changes during a relist are seen late.
        review = some_object(random, random.choice(NAMESPACES), "reviewed", 0)
        review["data"] = {"a": random.choice(["a", "b", ""]), "b": some_value(random)}
        one, other = found(projected, review, same), found(whole, review, same)
        compared += 1
        violating += bool(other)
        assert one == other, (seed, step, same)
    return compared, violating, waits


@pytest.fixture(autouse=True)
def at_once(monkeypatch):
    """Lets projections drop unread fields at the second look."""
    monkeypatch.setattr(projection, "NARROW_SECONDS", -1.0)
    monkeypatch.setattr(projection, "LOOK_SECONDS", -1.0)


def test_projected_data_decides_alike() -> None:
    compared = violating = waits = 0
    for seed in range(12 * ROUNDS):
        more = differing(str(seed))
        compared, violating, waits = compared + more[0], violating + more[1], waits + more[2]
    assert compared > 100
    assert violating > 20
    assert waits > 5


def test_a_projection_that_lets_a_template_in_before_its_data_is_found_out(monkeypatch) -> None:
    monkeypatch.setattr(projection.SyncProjection, "awaited", lambda *_, **__: ())

    def differs(seed: int) -> bool:
        try:
            differing(str(seed))
        except AssertionError:
            return True
        return False

    assert any(map(differs, range(100)))
