"""Reviews with a memo beside the same without one: ``python -m tests.differential.memo [--count N]``.

Policies of both languages by chance, and those of the library; objects that are much like others
before, or the same in another order; policies, parameters and data that change meanwhile. Exit code 1
where a single result differs.
"""

from __future__ import annotations

import argparse
import copy
import json
import sys
import time
from functools import cache
from random import Random
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from loadtest.bench.measurement import BODIES
from loadtest.bench.policies import read
from tests import policies
from tests.webhook.reads.scrambled import mutated
from webhook.api.admission import InvalidReview, decode_review
from webhook.constraint.client import Client
from webhook.constraint.drivers.cel import CelDriver
from webhook.constraint.drivers.rego import RegoDriver
from webhook.constraint.enforcement import WEBHOOK
from webhook.constraint.errors import ConstraintFrameworkError
from webhook.constraint.limits import Limits
from webhook.constraint.memo import Memo, MemoPace
from webhook.constraint.review import AugmentedReview
from webhook.constraint.targets.admission import AdmissionTarget

if TYPE_CHECKING:
    from collections.abc import Sequence

    from webhook.constraint.result import Responses

REVIEWS: Final = 250
"""Of one set of policies, with its changes."""

Json = dict[str, Any]

_PATHS: Final = (
    "metadata.name",
    'metadata.labels["app"]',
    "metadata.labels[_]",
    'metadata.annotations["note"]',
    "metadata.generation",
    "spec.replicas",
    "spec.hostNetwork",
    "spec.containers[_].image",
    "spec.containers[_].name",
    "spec.containers[_].resources.limits.cpu",
    "spec.containers[0].securityContext",
    "spec.volumes[_].name",
    "spec[_][_].image",
    "status.phase",
    "spec",
)
_VALUES: Final = ('"a"', '"b"', "1", "1.0", "0", "true", "false", "null", '""', "[]", "{}", '"1"')
_TESTS: Final = (
    "{x} == {v}",
    "{x} != {v}",
    "{x} < {v}",
    "{x}",
    "not {x}",
    "count({x}) > 1",
    "is_string({x})",
    "is_number({x})",
    'startswith({x}, "a")',
    "{x} == {y}",
    "{x} == input.parameters.value",
    'object.get(input.review.object.metadata, "name", {v}) == {y}',
    "s := {{z | z := {x}}}; count(s) > 1",
    "s := {{z | z := {x}}}; not s[{v}]",
    "l := [z | z := {x}]; count(l) != 2",
    "helper({x})",
    'general[{{"msg": _, "field": {v}}}]',
    'input.review.operation == "UPDATE"',
    'input.review.userInfo.username == "a"',
    'type_name({x}) == "number"',
    'sprintf("%v", [{x}]) == "1"',
)
_MESSAGES: Final = (
    '"no"',
    'sprintf("%v and %v", [{x}, {y}])',
    'concat("", ["no: ", {x}])',
    'sprintf("%d", [{x}])',
    "{x}",
    "text({x})",
    "json.marshal({x})",
)
_CEL: Final = (
    "has(object.metadata.labels) && 'app' in object.metadata.labels",
    "object.metadata.name != 'a'",
    "!has(object.spec.replicas) || object.spec.replicas < 2",
    "object.spec.containers.all(c, c.image.startsWith('a'))",
    "object.spec.containers.exists(c, c.name == variables.params.value)",
    "oldObject == null || object.spec == oldObject.spec",
    "request.operation != 'UPDATE' || request.userInfo.username != 'a'",
    "size(object.spec.containers) < 2",
    "variables.names.all(n, n != 'a')",
    "object.spec.hostNetwork == false",
    "has(object.status) ? object.status.phase == 'a' : true",
)


def rego(random: Random) -> str:
    """A policy by chance."""

    def filled(text: str) -> str:
        paths = [random.choice(_PATHS) for _ in range(2)]
        roots = [random.choice(("object", "object", "object", "oldObject")) for _ in range(2)]
        x, y = (f"input.review.{root}.{path}" for root, path in zip(roots, paths, strict=True))
        return text.format(x=x, y=y, v=random.choice(_VALUES))

    rules = []
    for _ in range(random.randint(1, 3)):
        tests = [filled(random.choice(_TESTS)) for _ in range(random.randint(1, 3))]
        tests.insert(random.randint(0, len(tests)), f"msg := {filled(random.choice(_MESSAGES))}")
        body = "\n  ".join("; ".join(tests).split("; "))
        details = random.choice(("", ', "details": {"value": msg}'))
        rules.append(f'violation[{{"msg": msg{details}}}] {{\n  {body}\n}}')
    return "\n".join(
        (
            "package p",
            *rules,
            f"helper(x) {{ x == {random.choice(_VALUES)} }}",
            f"helper(x) {{ x != {random.choice(_VALUES)}; is_string(x) }}",
            "text(x) = t { is_string(x); t := x }",
            'text(x) = t { not is_string(x); t := sprintf("(%v)", [x]) }',
            filled(
                'general[{"msg": m, "field": f}] { f := {x}; m := sprintf("%v", [{y}]) }'.replace(
                    "{", "{{"
                )
                .replace("}", "}}")
                .replace("{{x}}", "{x}")
                .replace("{{y}}", "{y}")
            ),
        )
    )


def cel(random: Random) -> Json:
    """The same in CEL."""
    validations: list[Json] = []
    for _ in range(random.randint(1, 3)):
        one: Json = {"expression": random.choice(_CEL), "message": "no"}
        if random.random() < 0.5:
            one["messageExpression"] = "'no: ' + object.metadata.name"
        validations.append(one)
    source: Json = {
        "variables": [{"name": "names", "expression": "object.spec.containers.map(c, c.name)"}],
        "validations": validations,
    }
    if random.random() < 0.3:
        source["matchConditions"] = [{"name": "m", "expression": random.choice(_CEL[:3])}]
    return source


@cache
def library() -> tuple[list[Json], list[Json]]:
    """Templates and constraints of the public library."""
    return read("p100")


class World:
    """Policies in force, and reviews that come back."""

    def __init__(self, number: int) -> None:
        self.random = Random(number)
        self.client = Client(targets=[AdmissionTarget()], drivers=[CelDriver(), RegoDriver()])
        self.memo = Memo(1 << 20, lambda job: job(), key=b"secret", pace=MemoPace(2))
        self._kinds: list[str] = []
        self._seen: list[Json] = []
        for _ in range(self.random.randint(1, 6)):
            self._add_policy()
        if self.random.random() < 0.4:
            self._add_library()
        bodies = [json.loads((BODIES / f"{name}.json").read_bytes())["request"] for name in _BODIES]
        self._bodies = [*bodies, _small()]

    def _add_policy(self) -> None:
        kind = f"Kind{len(self._kinds)}"
        self._kinds.append(kind)
        self._set_template(kind)
        for name in ("one", "two")[: self.random.randint(1, 2)]:
            self._set_constraint(kind, name)

    def _set_template(self, kind: str) -> None:
        random = self.random
        while True:
            is_cel = random.random() < 0.3
            made = policies.template(
                kind, "" if is_cel else rego(random), cel=cel(random) if is_cel else None,
                schema=policies.FREE,
            )  # fmt: skip
            try:
                self.client.add_template(made)
            except ConstraintFrameworkError:  # that does not compile: another
                continue
            return

    def _set_constraint(self, kind: str, name: str) -> None:
        random = self.random
        match = random.choice(({}, {}, {"labelSelector": {"matchLabels": {"app": "a"}}}))
        action = random.choice(("deny", "warn", "dryrun"))
        value = json.loads(random.choice(_VALUES))
        self.client.add_constraint(
            policies.constraint(
                kind, name, match=match, enforcementAction=action, parameters={"value": value}
            )
        )

    def _add_library(self) -> None:
        templates, constraints = library()
        for one in templates:
            self.client.add_template(one)
        for one in self.random.sample(constraints, 30):
            self.client.add_constraint(one)

    def change(self) -> None:
        """Something of the policies or of the data changes."""
        random = self.random
        kind = random.choice(self._kinds)
        chance = random.random()
        if chance < 0.3:
            self._set_constraint(kind, random.choice(("one", "two")))
        elif chance < 0.5:
            self._set_template(kind)
        elif chance < 0.6:
            self._add_policy()
        else:
            pod = {"apiVersion": "v1", "kind": "Pod"}
            metadata = {"name": f"p{random.randint(0, 3)}", "namespace": "d"}
            self.client.add_data({**pod, "metadata": metadata})

    def request(self) -> Json:
        """A review, which is often much like one before."""
        random = self.random
        if self._seen and random.random() < 0.75:
            one = copy.deepcopy(random.choice(self._seen[-20:]))
        else:
            one = copy.deepcopy(random.choice(self._bodies))
        one["uid"] = str(random.random())
        for name in ("object", "oldObject"):
            if one.get(name) is not None and random.random() < 0.5:
                one[name] = near(one[name], random)
        if random.random() < 0.2:
            one["operation"], one["oldObject"] = "UPDATE", copy.deepcopy(one["object"])
        elif random.random() < 0.1 and one["object"] is not None:
            one["operation"], one["object"], one["oldObject"] = "DELETE", None, one["object"]
        one["userInfo"] = {"username": random.choice("ab")}
        self._seen.append(one)
        return one


_BODIES: Final = ("pod", "pod_bad", "deployment")


def _small() -> Json:
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "a", "labels": {"app": "a"}, "annotations": {"note": "a"}},
        "spec": {"containers": [{"name": "a", "image": "a"}], "replicas": 1, "hostNetwork": False},
    }
    kind = {"group": "", "version": "v1", "kind": "Pod"}
    return {"kind": kind, "operation": "CREATE", "object": pod, "oldObject": None, "name": "a"}


def near(obj: Json, random: Random) -> Json:
    """An object that differs a little, or only in what no JSON value has."""
    chance = random.random()
    if chance < 0.2:
        return {key: obj[key] for key in random.sample(list(obj), len(obj))}
    if chance < 0.4:
        changed: Any = mutated(obj, random)
        return changed if isinstance(changed, dict) and changed.get("kind") else obj
    path = random.choice(_PLACES)
    at: Any = obj
    for name in path[:-1]:
        at = at[0] if isinstance(at, list) and at else at
        at = at.setdefault(name, {}) if isinstance(at, dict) else {}
    at = at[0] if isinstance(at, list) and at else at
    if isinstance(at, dict):
        at[path[-1]] = random.choice(("a", "b", 1, 1.0, 0, True, False, None, "", [], {}, 1 << 70))
    return obj


_PLACES: Final = (
    ("metadata", "name"),
    ("metadata", "labels", "app"),
    ("metadata", "annotations", "note"),
    ("metadata", "generation"),
    ("spec", "replicas"),
    ("spec", "hostNetwork"),
    ("spec", "containers", "image"),
    ("spec", "containers", "name"),
    ("spec", "containers", "resources", "limits"),
    ("spec", "volumes", "name"),
    ("status", "phase"),
)


class Difference(NamedTuple):
    """A review whose results are not the same."""

    world: int
    number: int
    request: Json
    without: Any
    with_memo: Any


class Compared(NamedTuple):
    """What came of reviews."""

    reviews: int
    violating: int
    recalled: int
    """Constraints that were not evaluated."""
    differences: list[Difference]


def seen(responses: Responses) -> Any:
    """All that a review answers, but for how it came by it."""
    results = [
        (
            one.constraint.key,
            one.msg,
            json.dumps(one.details, sort_keys=True),
            one.actions,
            one.cause,
        )
        for one in responses.results
    ]
    undecided = [(one.constraint.key, one.cause, one.message) for one in responses.undecided]
    return results, undecided, responses.faults, responses.evaluated, responses.deadline_exceeded


def compare(numbers: Sequence[int], reviews: int = REVIEWS) -> Compared:
    """Play worlds."""
    count = violating = recalled = 0
    differences = []
    for number in numbers:
        world = World(number)
        for turn in range(reviews):
            if world.random.random() < 0.04:
                world.change()
            request = world.request()
            review = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"}
            try:
                decoded = decode_review(json.dumps({**review, "request": request}).encode())
            except InvalidReview:
                continue
            value, snapshot = AugmentedReview(decoded), world.client.snapshot
            without = snapshot.review(value, enforcement_point=WEBHOOK)
            limits = Limits(memo=world.memo)
            with_memo = snapshot.review(value, enforcement_point=WEBHOOK, limits=limits)
            count += 1
            violating += bool(without.results)
            recalled += with_memo.recalled
            if seen(without) != seen(with_memo):
                differences.append(
                    Difference(number, turn, request, seen(without), seen(with_memo))
                )
    return Compared(count, violating, recalled, differences)


def main() -> int:
    """Play, and tell; the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--count", type=int, default=10_000, help="reviews (10000)")
    parser.add_argument("--first", type=int, default=0, help="the first world (0)")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="at most so long")
    arguments = parser.parse_args()
    began, number = time.monotonic(), arguments.first
    total = Compared(0, 0, 0, [])
    while total.reviews < arguments.count and time.monotonic() - began < arguments.seconds:
        one = compare([number])
        number += 1
        total = Compared(
            total.reviews + one.reviews,
            total.violating + one.violating,
            total.recalled + one.recalled,
            total.differences + one.differences,
        )
    print(
        f"{total.reviews} reviews of {number - arguments.first} worlds, {total.violating} with "
        f"violations, {total.recalled} constraints not evaluated: "
        f"{len(total.differences)} differences"
    )
    for difference in total.differences[:3]:
        print(difference)
    return 1 if total.differences else 0


if __name__ == "__main__":
    sys.exit(main())
