"""Reviews with kept results and projected data beside the same without: ``python -m tests.differential.memo``.

Two replicas get the same policies and synced objects. One keeps what evaluations found, and of synced
objects only what templates read; the other evaluates everything on whole objects. Policies of both
languages are made by chance, Rego in both of its versions; some read the clock or synced data, and
those of the library are among them. Some worlds have ConstraintGroups and exceptions, too. Objects are
much like others before, or the same in another order; policies, parameters and data change meanwhile.
Exit code 1 where a single result differs.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from contextlib import ExitStack
from functools import cache
from random import Random
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from unittest import mock

import orjson

from loadtest.bench.policies import read
from loadtest.traces import BODIES
from tests import policies
from tests.webhook.controllers import projected_replica
from tests.webhook.controllers.projected_replica import InCel, InRego, Replica
from tests.webhook.reads.scrambled import mutated
from webhook.api.admission import InvalidReview, decode_review
from webhook.cluster.store import Key
from webhook.constraint.client import Client
from webhook.constraint.drivers import reads
from webhook.constraint.enforcement import WEBHOOK
from webhook.constraint.errors import ConstraintFrameworkError
from webhook.constraint.limits import UNLIMITED, Limits
from webhook.constraint.memo import Memo, MemoPace
from webhook.constraint.review import AugmentedReview
from webhook.constraint.targets.admission import AdmissionTarget
from webhook.controllers.apply import projection
from webhook.exceptions.reading import read_exception
from webhook.exceptions.stage import Excusing
from webhook.policy_kinds.known import TEMPLATE, constraint_gvk
from webhook.policy_kinds.table import CONSTRAINT_GROUPS
from webhook.review.outcome import Found
from webhook.review.policy_set import PolicySet
from webhook.review.subject import Subject
from webhook.review.walk import walk

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from webhook.constraint.result import Responses

REVIEWS: Final = 500
"""Of one world, with its changes."""

WORLDS: Final = 20
"""Worlds in a row that take their policies from one pool, so that each is compiled once."""

KINDS: Final = 6
SOURCES: Final = 4
"""Kinds of a pool, and the policies among which the template of each changes."""

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
_TEXTS: Final = ('"a"', '"b"', '"b/"', '"a:1"', "input.parameters.value")
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
    "named[_].image == {v}",
    'is_string(named[name].tty); name != "b"',
    'general[{{"msg": _, "field": {v}}}]',
    'input.review.operation == "UPDATE"',
    'input.review.userInfo.username == "a"',
    'type_name({x}) == "number"',
    'sprintf("%v", [{x}]) == "1"',
    "time.now_ns() % 2 == 0",
    'endswith({x}, "a")',
    'not contains({x}, "/")',
    'regex.match("^[ab]+$", {x})',
    'strings.any_prefix_match({x}, ["b/", "ab"])',
    'trimmed := trim_suffix(input.parameters.value, "b"); not startswith({x}, trimmed)',
    'tags := [t | t := concat(":", ["", "1"])]; strings.any_suffix_match({x}, tags)',
    'parts := split({x}, "/"); not contains(parts[count(parts) - 1], ":")',
    'ends := {{e | e := split({x}, "/")[_]}}; ends["b"]',
    'first := split({x}, "/")[0]; first == split({y}, "/")[0]',
    'split({x}, "/") == ["a", "b"]',
    'starts(split({x}, "/")[_])',
    'strings.any_prefix_match(split({x}, "/"), ["a:"])',
)
_MESSAGES: Final = (
    '"no"',
    'sprintf("%v and %v", [{x}, {y}])',
    'concat("", ["no: ", {x}])',
    'sprintf("%d", [{x}])',
    "{x}",
    "text({x})",
    "json.marshal({x})",
    'sprintf("at %d", [time.now_ns()])',
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


def rego(random: Random, version: str = "v0") -> str:
    """A policy by chance, in this version of Rego."""
    is_v1 = version == "v1"
    given, equals = (" if ", ":=") if is_v1 else (" ", "=")

    def partial(name: str, member: str) -> str:
        return f"{name} contains {member} if" if is_v1 else f"{name}[{member}]"

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
        head = partial("violation", f'{{"msg": msg{details}}}')
        rules.append(f"{head} {{\n  {body}\n}}")
    if random.random() < 0.35:
        rules.append(_about_synced(random, partial("violation", '{"msg": msg}'), is_v1=is_v1))
    general = partial("general", '{"msg": m, "field": f}')
    fields = filled('f := {x}; m := sprintf("%v", [{y}])')
    return "\n".join(
        (
            "package p",
            *rules,
            f"helper(x){given}{{ x == {random.choice(_VALUES)} }}",
            f"helper(x){given}{{ x != {random.choice(_VALUES)}; is_string(x) }}",
            f"text(x) {equals} t{given}{{ is_string(x); t := x }}",
            f"starts(x){given}{{ startswith(x, {random.choice(_TEXTS)}) }}",
            f"starts(x){given}{{ x == {random.choice(_TEXTS)} }}",
            f'text(x) {equals} t{given}{{ not is_string(x); t := sprintf("(%v)", [x]) }}',
            f"{general} {{ {fields} }}",
            f"named[c.name] {equals} c{given}{{ c := input.review.object.spec.containers[_] }}",
        )
    )


_ABOUT_SYNCED: Final = tuple(
    one for one in projected_replica.REGO if "every" not in one and "some name" not in one
)
"""The rules that Rego version 0 accepts without imports."""


def _about_synced(random: Random, head: str, *, is_v1: bool) -> str:
    """A rule with this head that reads synced objects, and perhaps what the review is about."""
    names = projected_replica.some_names(random)
    conditions = projected_replica.REGO if is_v1 else _ABOUT_SYNCED
    condition = random.choice(conditions).format(**names)
    where = random.choice(("[_]", '["one"]', "[input.review.namespace]"))
    message = random.choice(('"synced"', 'sprintf("synced %v", [of.metadata.name])'))
    return f"""{head} {{
  of := data.inventory.namespace{where}.v1.ConfigMap[_]
  {condition}
  msg := {message}
}}"""


def cel(random: Random) -> Json:
    """The same in CEL."""
    validations: list[Json] = []
    for _ in range(random.randint(1, 3)):
        one: Json = {"expression": random.choice(_CEL), "message": "no"}
        if random.random() < 0.5:
            one["messageExpression"] = "'no: ' + object.metadata.name"
        validations.append(one)
    if random.random() < 0.35:
        places = "variables.inventory['namespace']['one']['v1']['ConfigMap']"
        inner = random.choice(projected_replica.CEL).format(**projected_replica.some_names(random))
        about = f"!{places}.exists(name, [{places}[name]].exists(of, {inner}))"
        validations.append({"expression": about, "message": "synced"})
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


class Pool:
    """Policies that compile, of some kinds, among which the worlds of one pool choose."""

    def __init__(self, number: int) -> None:
        random = Random(f"pool {number}")
        self.number = number
        self.kinds = tuple(f"Kind{at}" for at in range(KINDS))
        self.templates = {
            kind: [_template(kind, random) for _ in range(SOURCES)] for kind in self.kinds
        }
        self.values = {
            kind: [json.loads(random.choice(_VALUES)) for _ in range(2)] for kind in self.kinds
        }


def _template(kind: str, random: Random) -> Json:
    """A template by chance that compiles."""
    client = Client(targets=[AdmissionTarget()], drivers=[InCel(), InRego()])
    while True:
        language = random.choices(("cel", "v0", "v1"), (3, 4, 3))[0]
        code = {"engine": "Rego", "source": {"rego": rego(random, "v1"), "version": "v1"}}
        made = policies.template(
            kind,
            rego(random) if language == "v0" else "",
            cel=cel(random) if language == "cel" else None,
            schema=policies.FREE,
            target={"code": [code]} if language == "v1" else None,
        )
        try:
            client.add_template(made)
        except ConstraintFrameworkError:  # that does not compile: another
            continue
        return made


class World:
    """Policies in force at two replicas, and reviews that come back."""

    def __init__(self, number: int, pool: Pool) -> None:
        self.random = Random(number)
        self.pool = pool
        self.whole, self.projected = Replica(projects=False), Replica(projects=True)
        self.memo = Memo(1 << 20, lambda job: job(), key=b"secret", pace=MemoPace(2))
        self.generation = 0
        self._kinds: list[str] = []
        self._seen: list[bytes] = []
        self._bodies = _bodies()
        for _ in range(self.random.randint(1, KINDS - 1)):
            self._add_policy()
        if self.random.random() < 0.1:
            self._add_library()
        self.excusing: Excusing | None = None
        if self.random.random() < 0.6:
            self._change_exceptions()
        self._groups = self.random.choice((0, 0, 1, 2))
        for at in range(self._groups):
            self._set_group(at)
        for _ in range(self.random.randrange(4)):
            self._change_object()

    def _take(self, gvk: Any, document: Json) -> None:
        """Gives a policy object to both replicas."""
        self.generation += 1
        metadata = document["metadata"]
        made = {"uid": metadata["name"], "generation": self.generation}
        document = {**document, "metadata": {**metadata, **made}}
        for replica in (self.whole, self.projected):
            replica.take(gvk, Key("", metadata["name"]), document)

    def _add_policy(self) -> None:
        kind = self.pool.kinds[len(self._kinds)]
        self._kinds.append(kind)
        self._set_template(kind)
        for name in ("one", "two")[: self.random.randint(1, 2)]:
            self._set_constraint(kind, name)

    def _set_template(self, kind: str) -> None:
        self._take(TEMPLATE, self.random.choice(self.pool.templates[kind]))

    def _set_constraint(self, kind: str, name: str) -> None:
        random = self.random
        match = random.choice(({}, {}, {"labelSelector": {"matchLabels": {"app": "a"}}}))
        action = random.choice(("deny", "warn", "dryrun"))
        made = policies.constraint(
            kind,
            name,
            match=match,
            metadata={"annotations": {"waddle.dev/exceptions": "all"}},
            enforcementAction=action,
            parameters={"value": random.choice(self.pool.values[kind])},
        )
        self._take(constraint_gvk(kind), made)

    def _set_group(self, number: int) -> None:
        """A group of members that are in force: of a formula, or of cases."""
        random, kinds = self.random, self._kinds
        members: Json = {}
        for name in "abc"[: random.randint(1, 3)]:
            kind = random.choice(kinds)
            value = random.choice(self.pool.values[kind])
            members[name] = random.choice(
                (
                    {"kind": kind, "parameters": {"value": value}},
                    {"constraint": {"kind": kind, "name": "one"}},
                )
            )
        called = [f"{random.choice(('', '!'))}{name}()" for name in members]
        cases: list[Json] = [
            {"match": {"labelSelector": {"matchLabels": {"app": "a"}}}, "member": "a"},
            random.choice(({"member": next(reversed(members))}, {"accept": True})),
        ]
        spec = random.choice(
            (
                {"expression": random.choice((" && ", " || ", " == ")).join(called)},
                {"firstMatch": cases},
            )
        )
        document = {
            "apiVersion": CONSTRAINT_GROUPS.gvk.group_version,
            "kind": CONSTRAINT_GROUPS.kind,
            "metadata": {"name": f"group-{number}"},
            "spec": {"members": members, "message": random.choice(("", "no")), **spec},
        }
        self._take(CONSTRAINT_GROUPS.gvk, document)

    def _change_exceptions(self) -> None:
        """Exceptions by chance, the same at both replicas."""
        random = self.random
        made = [self._exception(f"e{number}") for number in range(random.randint(0, 4))]
        self.excusing = Excusing(map(read_exception, made)) if made else None

    def _exception(self, name: str) -> Json:
        random = self.random
        of = f"{random.choice(self._kinds)}/{random.choice(('one', 'two', '*', '*'))}"
        spec: Json = random.choice(
            (
                {"match": {"name": "a"}},
                {"match": {"labelSelector": {"matchLabels": {"app": "a"}}}},
                {"parts": {"containers": ["a"]}},
                {"parts": {"paths": ["metadata.labels"]}},
                {"violations": [{"message": "*a*"}]},
                {"violations": [{"message": "no*"}]},
                {"subjects": [{"kind": "User", "name": "a"}]},
                {"matchConditions": [{"name": "m", "expression": random.choice(_CEL[:3])}]},
            )
        )
        effect = random.choice(("skip", "dryrun", "warn"))
        return policies.exception(name, of, effect=effect, **spec)

    def _add_library(self) -> None:
        templates, constraints = library()
        for one in templates:
            self._take(TEMPLATE, one)
        for one in self.random.sample(constraints, 30):
            self._take(constraint_gvk(one["kind"]), one)

    def _change_object(self) -> None:
        random = self.random
        key = Key(
            random.choice(projected_replica.NAMESPACES), random.choice(projected_replica.NAMES)
        )
        self.generation += 1
        document = (
            None
            if random.random() < 0.2
            else projected_replica.some_object(random, *key, self.generation)
        )
        for replica in (self.whole, self.projected):
            replica.change(key, document)

    def change(self) -> None:
        """Something of the policies or of the data changes."""
        random = self.random
        kind = random.choice(self._kinds)
        chance = random.random()
        if chance < 0.3:
            self._set_constraint(kind, random.choice(("one", "two")))
        elif chance < 0.5:
            self._set_template(kind)
        elif chance < 0.6 and len(self._kinds) < KINDS:
            self._add_policy()
        elif chance < 0.65:
            self._change_exceptions()
        elif chance < 0.7 and self._groups:
            self._set_group(random.randrange(self._groups))
        else:
            self._change_object()

    def settle(self) -> None:
        """A list that is awaited comes, by chance; policies are tried again."""
        if self.projected.is_behind and self.random.random() < 0.2:
            self.whole.list_all()
            self.projected.list_all()
            self.projected.policies.retry()

    def kinds_alike(self) -> set[str] | None:
        """Returns the kinds that both replicas enforce by one template; None while data comes late.

        Groups, which may be of all kinds, are among them where all others are.
        """
        ours, theirs = self.projected.in_force(), self.whole.in_force()
        if self.projected.policies.data.digest != self.whole.policies.data.digest:
            return None
        alike = {kind for kind in ours if ours[kind] == theirs.get(kind)}
        return alike | {CONSTRAINT_GROUPS.kind} if ours == theirs else alike

    def found(
        self, replica: Replica, value: AugmentedReview, limits: Limits = UNLIMITED
    ) -> Responses:
        """Returns what a replica finds, once exceptions have excused some of it."""
        stages = () if self.excusing is None else (self.excusing,)
        policy_set = PolicySet(replica.client.snapshot, stages=stages)
        found = walk(policy_set, Subject(value, WEBHOOK, limits, mutates=False, expands=False))
        assert type(found) is Found
        return found.responses

    def request(self) -> bytes:
        """A review, which is often much like one before."""
        random = self.random
        if self._seen and random.random() < 0.75:
            one = json.loads(random.choice(self._seen[-20:]))
        else:
            one = json.loads(random.choice(self._bodies))
        one["uid"] = str(random.random())
        for name in ("object", "oldObject"):
            if one.get(name) is not None and random.random() < 0.5:
                one[name] = near(one[name], random)
        if random.random() < 0.2:
            one["operation"], one["oldObject"] = "UPDATE", one["object"]
        elif random.random() < 0.1 and one["object"] is not None:
            one["operation"], one["object"], one["oldObject"] = "DELETE", None, one["object"]
        one["userInfo"] = {"username": random.choice("ab")}
        text = _encode(one)
        self._seen = [*self._seen[-19:], text]
        return text


@cache
def _bodies() -> tuple[bytes, ...]:
    """Requests to begin with: half of them are small."""
    names = ("pod", "pod_bad", "deployment")
    bodies = [json.loads((BODIES / f"{name}.json").read_bytes())["request"] for name in names]
    return (*map(_encode, bodies), *[_encode(_small())] * 3)


def _encode(value: Any) -> bytes:
    """JSON, also of integers that orjson does not write."""
    try:
        return orjson.dumps(value)
    except TypeError:
        return json.dumps(value).encode()


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
    spec: Any = obj.get("spec")
    containers: Any = spec.get("containers") if isinstance(spec, dict) else None
    if chance < 0.5 and isinstance(containers, list):
        twin = dict(containers[0]) if containers and isinstance(containers[0], dict) else {}
        spec["containers"] = [*containers[:1], {**twin, "tty": random.choice((True, "a"))}]
        return obj
    path = random.choice(_PLACES)
    at: Any = obj
    for name in path[:-1]:
        at = at[0] if isinstance(at, list) and at else at
        at = at.setdefault(name, {}) if isinstance(at, dict) else {}
    at = at[0] if isinstance(at, list) and at else at
    if isinstance(at, dict):
        at[path[-1]] = random.choice(_NEAR)
    return obj


_NEAR: Final[tuple[Any, ...]] = (
    *("a", "b", 1, 1.0, 0, True, False, None, "", [], {}, 1 << 70),
    *("ab", "b/a:1", "b/a:2", "a/b", "b/a/b", ["b/"], ["a", "b"]),
)


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
    request: bytes
    whole: Any
    kept: Any


class Compared(NamedTuple):
    """The counts of compared reviews."""

    reviews: int = 0
    violating: int = 0
    recalled: int = 0
    """Constraints that were not evaluated."""
    late: int = 0
    """Reviews that were not compared, as data of one replica came late."""
    waiting: int = 0
    """Reviews while a template waited for data."""
    excused: int = 0
    """Reviews of which an exception excused something."""
    by_group: int = 0
    """Reviews with a violation of a group."""
    differences: Sequence[Difference] = ()

    def and_also(self, other: Compared) -> Compared:
        """Returns the sum of two."""
        return Compared(
            self.reviews + other.reviews,
            self.violating + other.violating,
            self.recalled + other.recalled,
            self.late + other.late,
            self.waiting + other.waiting,
            self.excused + other.excused,
            self.by_group + other.by_group,
            [*self.differences, *other.differences],
        )


def seen(responses: Responses, kinds: set[str] | None = None) -> Any:
    """All that a review answers, but for how it came by it; of some kinds of constraints, or all."""
    results = [
        (
            one.constraint.key,
            _without_reason(one.msg),
            json.dumps(_plain(one.details), sort_keys=True) if one.details else one.details,
            one.actions,
            one.cause,
            one.excuse,
        )
        for one in (*responses.results, *responses.excused)
        if kinds is None or one.constraint.kind in kinds
    ]
    undecided = [
        (one.constraint.key, one.cause, one.message)
        for one in responses.undecided
        if kinds is None or one.constraint.kind in kinds
    ]
    faults = [one for one in responses.faults if kinds is None or one.kind in kinds]
    evaluated = responses.evaluated if kinds is None else None
    return results, undecided, faults, evaluated, responses.deadline_exceeded


def _without_reason(message: str) -> str:
    """A message, without which of several errors it names where objects come in another order."""
    before, error, _ = message.partition(" resulted in error")
    return before if error and "variables.inventory" in before else message


def _plain(details: Any) -> Any:
    """Details, of a group those of its members, with messages as :func:`_without_reason` has them."""
    if isinstance(details, dict):
        return {name: _plain(value) for name, value in details.items()}
    if isinstance(details, (list, tuple)):
        return [_plain(value) for value in details]
    return _without_reason(details) if isinstance(details, str) else details


class Derived:
    """Dependencies and inventory of templates, computed once for a pool's worlds, and a clock."""

    def __init__(self) -> None:
        self.tick = 0
        self._dependencies: dict[str, Any] = {}
        self._inventory: dict[str, Any] = {}

    def forget(self) -> None:
        """Keep nothing of a pool."""
        self._dependencies.clear()
        self._inventory.clear()
        InRego.compiled.clear()
        InCel.compiled.clear()

    def time_ns(self) -> int:
        """Returns a time that goes on by one with each review, so that both replicas see the same."""
        return self.tick

    def once(self, derive: Callable[..., Any], known: dict[str, Any]) -> Callable[..., Any]:
        """Returns what ``derive`` returns for the same template and parameters."""

        def derived(*arguments: Any) -> Any:
            template = next(one for one in arguments if hasattr(one, "code"))
            key = repr([template.kind, [one.source for one in template.code], arguments[-1:]])
            if key not in known:
                known[key] = derive(*arguments)
            return known[key]

        return derived

    def patched(self) -> ExitStack:
        """Have reviews use it until the end of the context."""
        stack = ExitStack()
        for patch in (
            mock.patch.object(
                reads,
                "dependencies_of_evaluator",
                self.once(reads.dependencies_of_evaluator, self._dependencies),
            ),
            mock.patch.object(
                projection,
                "inventory_reads",
                self.once(reads.inventory_reads, self._inventory),
            ),
            mock.patch.object(projection, "NARROW_SECONDS", -1.0),
            mock.patch.object(projection, "LOOK_SECONDS", -1.0),
            mock.patch.object(time, "time_ns", self.time_ns),
        ):
            stack.enter_context(patch)
        return stack


def compare(numbers: Sequence[int], reviews: int = REVIEWS) -> Compared:
    """Play worlds."""
    total, derived, pool = Compared(), Derived(), None
    with derived.patched():
        for number in numbers:
            if pool is None or pool.number != number // WORLDS:
                derived.forget()
                pool = Pool(number // WORLDS)
            total = total.and_also(_played(World(number, pool), number, reviews, derived))
    return total


def _played(world: World, number: int, reviews: int, derived: Derived) -> Compared:
    """Play one world."""
    count = violating = recalled = late = waiting = excused = by_group = 0
    differences = []
    alike = world.kinds_alike()
    for turn in range(reviews):
        derived.tick += 1
        if world.random.random() < 0.04:
            world.change()
            alike = world.kinds_alike()
        if world.projected.is_behind:
            world.settle()
            alike = world.kinds_alike()
            waiting += 1
        request = world.request()
        if alike is None:
            late += 1
            continue
        try:
            decoded = decode_review(_REVIEW % request)
        except InvalidReview:
            continue
        value = AugmentedReview(decoded)
        whole = world.found(world.whole, value)
        kept = world.found(world.projected, value, Limits(memo=world.memo))
        count += 1
        violating += bool(whole.results)
        excused += bool(whole.excused)
        by_group += any(one.constraint.kind == CONSTRAINT_GROUPS.kind for one in whole.results)
        recalled += kept.recalled
        if seen(whole, alike) != seen(kept, alike):
            differences.append(
                Difference(number, turn, request, seen(whole, alike), seen(kept, alike))
            )
    return Compared(
        count, violating, recalled, late, waiting, excused, by_group, tuple(differences)
    )


_REVIEW: Final = b'{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":%s}'


def main() -> int:
    """Play, and tell; the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--count", type=int, default=10_000, help="reviews (10000)")
    parser.add_argument("--first", type=int, default=0, help="the first world (0)")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="at most so long")
    arguments = parser.parse_args()
    began, number = time.monotonic(), arguments.first
    total = Compared()
    while total.reviews < arguments.count and time.monotonic() - began < arguments.seconds:
        following = number - number % WORLDS + WORLDS
        one = compare(range(number, following))
        number, total = following, total.and_also(one)
        for difference in one.differences[:3]:
            print(difference, flush=True)
        print(
            f"{total.reviews} reviews of {number - arguments.first} worlds, {total.violating} with "
            f"violations, {total.recalled} constraints not evaluated, {total.waiting} while a "
            f"template waited, {total.excused} with something excused, {total.by_group} with a "
            f"violation of a group, {total.late} not compared as data came late: "
            f"{len(total.differences)} differences; {time.process_time():.0f} s of CPU",
            flush=True,
        )
    return 1 if total.differences else 0


if __name__ == "__main__":
    sys.exit(main())
