"""Kept parts of a synced object: no evaluation sees a difference."""

import os
from collections.abc import Iterator
from random import Random
from typing import Any

import pytest

from tests.differential.grammar import policy
from tests.webhook.reads.evaluations import (
    DRIVERS,
    FOLDERS,
    inventory_of,
    objects_near,
    parameters_by_kind,
    result,
    review_of,
    templates,
    value,
)
from tests.webhook.reads.scrambled import mutated
from webhook.constraint.drivers.reads import inventory_reads
from webhook.constraint.template import CEL, REGO
from webhook.reads.projection import projection
from webhook.reads.read_set import EVERY_KEY, WHOLE, ReadRecorder, ReadSet
from webhook.reads.storage import (
    NOTHING,
    SHARED_MAX,
    SharedValues,
    covers,
    keeping,
    of_kind,
    reads_of,
)
from webhook.rego.engine import compile_modules
from webhook.rego.errors import RegoErrors
from webhook.rego.reads import read
from webhook.rego.syntax.parser import parse_module

ROUNDS = int(os.environ.get("WADDLE_PROJECTION_ROUNDS", "1"))
"""The factor of comparisons, beyond a run of all tests."""

NAMES = ["a", "b", "c", EVERY_KEY]
POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "p", "labels": {"app": "x"}},
    "spec": {"nodeName": "n", "containers": [{"name": "c", "image": "i"}, "text"]},
    "status": {"phase": "Running"},
}


def test_it_has_what_is_read_and_empty_containers_and_texts_elsewhere() -> None:
    reads = reads_of([("spec", "nodeName"), ("spec", "containers", EVERY_KEY, "image")])
    assert keeping(reads)(POD) == {
        "spec": {"nodeName": "n", "containers": [{"image": "i"}, ""]}  # a text has no image
    }
    assert keeping(reads_of([("spec",), ("status", "phase", "x")]))(POD) == {
        "spec": {},
        "status": {"phase": ""},
    }
    assert keeping(NOTHING)(POD) == {}
    assert keeping(WHOLE)(POD) is POD


def test_every_key_is_kept_where_one_may_be_asked_for() -> None:
    reads = reads_of([("metadata", EVERY_KEY), ("metadata", "labels", "app")])
    assert keeping(reads)(POD) == {"metadata": {"name": "p", "labels": {"app": "x"}}}


@pytest.mark.parametrize(
    ("paths", "whole", "reads"),
    [
        ([("namespace", EVERY_KEY, "v1", "Pod", EVERY_KEY, "a")], [], ["a"]),
        ([("namespace", "x", "v1", "Pod", "p", "a"), ("cluster", "v1", "Pod", "p", "b")], [], "ab"),
        ([("namespace", EVERY_KEY, EVERY_KEY, EVERY_KEY, EVERY_KEY, "a")], [], ["a"]),
        ([("namespace", EVERY_KEY, "v1", "Service", EVERY_KEY, "a")], [], []),
        ([("namespace", EVERY_KEY, "v2", "Pod", EVERY_KEY, "a")], [], []),
        # It may be of the cluster, too, where the fourth key is an object's name.
        ([(EVERY_KEY, EVERY_KEY, EVERY_KEY, EVERY_KEY, EVERY_KEY, "a")], [], [EVERY_KEY, "a"]),
        ([("namespace", EVERY_KEY, "v1", "Pod", EVERY_KEY)], [], []),
        ([], [("namespace", EVERY_KEY, "v1")], None),
        ([], [("cluster",)], None),
        ([], [()], None),
    ],
)
def test_of_a_kind_it_is_what_any_policy_reads_of_any_object(paths, whole, reads) -> None:
    recorder = ReadRecorder()
    for path in paths:
        recorder.shallow(path)
    for path in whole:
        recorder.whole(path)
    found = of_kind(recorder.frozen(), "v1", "Pod")
    if reads is None:
        assert found.whole
    else:
        assert sorted(found.children) == sorted(reads)
        assert not found.whole


def recorded(random: Random) -> ReadSet:
    recorder = ReadRecorder()
    for _ in range(random.randrange(6)):
        path = tuple(random.choice(NAMES) for _ in range(random.randrange(4)))
        random.choice([recorder.present, recorder.shallow, recorder.whole])(path)
    return recorder.frozen()


def some_value(random: Random, depth: int = 4) -> Any:
    chance = random.random()
    if depth and chance < 0.5:
        names = random.sample(NAMES[:3], random.randrange(4))
        return {name: some_value(random, depth - 1) for name in names}
    if depth and chance < 0.7:
        return [some_value(random, depth - 1) for _ in range(random.randrange(3))]
    return random.choice([None, True, False, 0, 1, 1.0, "", "x"])


def test_it_agrees_with_the_whole_value_in_what_is_read() -> None:
    for number in range(2_000 * ROUNDS):
        random = Random(number)
        reads, whole = recorded(random), some_value(random)
        kept, seen = keeping(reads)(whole), projection(reads)
        assert repr(seen(kept)) == repr(seen(whole)), (number, reads, whole)
        assert repr(keeping(reads)(kept)) == repr(kept)


def test_a_set_covers_what_its_function_keeps() -> None:
    covered = 0
    for number in range(2_000 * ROUNDS):
        random = Random(number)
        one, other, whole = recorded(random), recorded(random), some_value(random)
        assert covers(one | other, one)
        assert covers(one | other, other)
        if covers(one, other):
            covered += 1
            again = keeping(other)(keeping(one)(whole))
            assert repr(again) == repr(keeping(other)(whole)), (number, one, other, whole)
    assert covered > 100


def test_equal_values_are_kept_once_and_their_number_is_bounded() -> None:
    values = SharedValues()
    one, size = values.shared({"spec": {"nodeName": "n"}})
    assert size == len('{"spec":{"nodeName":"n"}}')
    assert values.shared({"spec": {"nodeName": "n"}})[0] is one
    assert values.shared({"spec": {"nodeName": True}})[0] == {"spec": {"nodeName": True}}
    assert values.shared({"spec": 1})[0] is not values.shared({"spec": 1.0})[0]
    surrogate, replaced = {"spec": "\ud800"}, {"spec": "�"}
    assert values.shared(surrogate)[0] is surrogate
    assert values.shared(replaced)[0] is replaced
    for number in range(3 * SHARED_MAX):
        values.shared({"spec": number})
    assert len(values._known) <= SHARED_MAX


def kept_inventory(inventory: Any, reads: ReadSet) -> Any:
    """Returns the data that a replica keeps, one kind after the other."""

    def level(of: Any) -> Any:
        return {
            group_version: {
                kind: {
                    name: keeping(of_kind(reads, group_version, kind))(item)
                    for name, item in objects.items()
                }
                for kind, objects in kinds.items()
            }
            for group_version, kinds in of.items()
        }

    return {
        "cluster": level(inventory["cluster"]),
        "namespace": {name: level(of) for name, of in inventory["namespace"].items()},
    }


def referential(folder: Any) -> Iterator[tuple[Any, Any, str]]:
    """The templates of a folder that read data, with their homes and engines."""
    for engine in (REGO, CEL):
        for home, of in templates(folder, engine):
            reads = inventory_reads(of)
            if reads is not None and reads.children:
                yield home, of, engine


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_templates_find_the_same_in_what_is_kept(folder: Any) -> None:
    if not folder.is_dir():
        pytest.skip(f"no {folder}: set WADDLE_CONFORMANCE")
    evaluations = found = smaller = 0
    for home, of, engine in referential(folder):
        evaluator, reads = DRIVERS[engine].compile(of, of.code[0]), inventory_reads(of)
        assert reads is not None
        near = objects_near(folder, home)
        for number in range(40 * ROUNDS):
            random = Random(f"{of.name} {number}")
            objects = [mutated(random.choice(near), random) for _ in range(6)]
            named = [one for one in objects if has_place(one)]
            inventory = inventory_of([*named, *near[:4]])
            kept = kept_inventory(inventory, reads)
            smaller += len(repr(kept)) < len(repr(inventory))
            review = review_of(near, random)
            for parameters in parameters_by_kind(folder)[of.kind][:3] or [{}]:
                whole = result(evaluator, parameters, review, inventory)
                evaluations += 1
                found += bool(whole)
                assert result(evaluator, parameters, review, kept) == whole, (of.name, number)
    assert evaluations > 40
    assert found
    assert smaller


def has_place(one: Any) -> bool:
    """Whether the API server could have such an object."""
    metadata = one.get("metadata") if isinstance(one, dict) else None
    if not isinstance(metadata, dict) or not isinstance(metadata.get("name"), str):
        return False
    texts = [one.get("kind"), one.get("apiVersion", "v1"), metadata.get("namespace", "")]
    return all(isinstance(text, str) for text in texts)


def test_random_rules_find_the_same_in_what_is_kept_of_data() -> None:
    evaluations = 0
    for number in range(300 * ROUNDS):
        question = policy(Random(number))
        try:
            modules = [parse_module(text, "m", question.version) for text in question.modules]
            program = compile_modules(modules)
        except RegoErrors:
            continue
        compiled = program.compiled
        node = compiled.tree.find(("t", "p"))
        found = read(compiled.tree, compiled.builtins, node.path).dependencies
        if found.reads.whole:
            continue
        rule = program.rule(node.path)
        of_input = keeping(found.reads.at("input") or NOTHING)
        of_data = keeping(found.reads.at("data") or NOTHING)
        for turn in range(4):
            random = Random(f"{number} {turn}")
            given, data = mutated(question.input, random), mutated(question.data, random)
            data = data if isinstance(data, dict) else {}
            evaluations += 1
            kept = value(rule, of_input(given), of_data(data))
            assert kept == value(rule, given, data), (number, turn)
    assert evaluations > 150
