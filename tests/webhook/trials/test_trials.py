"""The system ends trials beyond their bounds, and others are not held up."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading

import pytest

from tests.patience import until
from tests.webhook.constraint.policies import constraint, template
from tests.webhook.trials.tried import (
    MANY_ITEMS,
    MANY_RULES,
    Replica,
    begun_trial,
    cel,
    literals,
    workers,
)
from webhook.constraint.client import Client
from webhook.constraint.drivers.cel import CelDriver
from webhook.constraint.drivers.rego import RegoDriver
from webhook.constraint.errors import InvalidTemplate, PassingFault
from webhook.constraint.targets.admission import AdmissionTarget
from webhook.metrics.policies import TRIALS
from webhook.metrics.registry import Registry
from webhook.rego.code_cache import CodeCache
from webhook.trials.driver import TriedRegoDriver
from webhook.trials.trials import LARGE_CHARACTERS, TrialRequest, Trials, Tried
from webhook.trials.validation import validate_tried


@pytest.fixture(scope="module")
def shared():
    """Yields a replica with a server's bounds and no http.send, for tests that leave nothing."""
    made = Replica(disabled=["http.send"])
    yield made
    made.trials.stop()


def test_a_template_that_fits_its_bounds_is_in_force_as_it_was_compiled_elsewhere(tmp_path):
    """Templates of any size are; the next start finds the code in the cache."""
    tmp_path.chmod(0o700)
    replica = Replica(cache=CodeCache(tmp_path))
    for count in (2, 2000):
        replica.client.add_template(template(rego=literals(count)))
        replica.client.add_constraint(constraint())
        assert replica.messages() == ["large"]
    assert replica.lines == []
    assert replica.count("passed") == 2
    replica.trials.stop()
    assert len(list(tmp_path.iterdir())) == 2


@pytest.mark.parametrize(
    ("bounds", "message", "hostile"),
    [
        ({"cpu_seconds": 1}, "1 s of processor time to compile", template(rego=MANY_RULES)),
        ({"memory_bytes": 48 << 20}, "48 MiB of memory to compile", template(rego=MANY_RULES)),
        ({"memory_bytes": 8 << 20}, "8 MiB of memory to compile", cel(MANY_ITEMS)),
    ],
    ids=["processor", "memory", "CEL"],
)
def test_a_template_beyond_the_bounds_is_ended_and_the_next_one_compiles(bounds, message, hostile):
    """The policies in force stay, and the fault is known without another trial."""
    replica = Replica(**bounds)
    replica.client.add_template(template())
    replica.client.add_constraint(constraint())
    for _ in range(3):
        with pytest.raises(InvalidTemplate, match="policy is too large: it takes") as caught:
            replica.client.add_template(hostile)
        assert message in str(caught.value)
        assert caught.value.code == "ingest_error"
    assert replica.messages() == ["no"]
    replica.client.add_template(template("K8sOther"))
    assert replica.lines == []
    assert replica.count("ended") == 1
    replica.trials.stop()


@pytest.mark.parametrize(
    "rego",
    [
        "package p\nviolation[{",
        'package p\nviolation[{"msg": x}] { y := 1 }',
        "package p\nother = 1",
        'package p\nviolation[{"msg": "x"}] { http.send({}) }',
    ],
    ids=["parse", "compile", "no rule", "built-in"],
)
@pytest.mark.parametrize("before", ["", "# much\n" * LARGE_CHARACTERS], ids=["small", "large"])
def test_faults_that_are_found_elsewhere_are_reported_as_those_found_here(shared, rego, before):
    """Word for word, with their codes, as the driver itself tells them."""
    text = before + rego
    driver = RegoDriver(disabled_builtins=["http.send"])
    outcomes = []
    for client in (Client(targets=[AdmissionTarget()], drivers=[driver]), shared.client):
        with pytest.raises(InvalidTemplate) as caught:
            client.add_template(template(rego=text))
        error = caught.value
        outcomes.append((type(error), error.code, error.stage, str(error)))
    assert outcomes[0] == outcomes[1]


def test_faults_of_an_expression_are_reported_as_those_found_here(shared):
    """Faults of CEL are reported alike."""
    outcomes = []
    for client in (Client(targets=[AdmissionTarget()], drivers=[CelDriver()]), shared.client):
        with pytest.raises(InvalidTemplate) as caught:
            client.add_template(cel("object.metadata.name +"))
        outcomes.append((caught.value.code, caught.value.stage, str(caught.value)))
    assert outcomes[0] == outcomes[1]


@pytest.mark.parametrize("whom", [0, 1], ids=["the trial", "the worker"])
def test_a_process_that_the_system_killed_says_nothing_of_the_template(whom):
    """The kill is not remembered either: the next attempt finds the fault of the text."""
    replica = Replica()
    replica.client.add_template(template())
    replica.client.add_constraint(constraint())
    kills = 1 + whom  # a worker is begun anew once
    until(lambda: begun_trial() is None, "what was tried before has gone")
    found = []

    def has_begun():
        trial = begun_trial()
        if trial is None or trial in found:
            return False
        found.append(trial)
        return True

    def kill():
        for _ in range(kills):
            until(has_begun, "a trial has begun")
            os.kill(found[-1][whom], signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    with pytest.raises(PassingFault, match="policy could not be compiled here") as caught:
        replica.client.add_template(template(rego=MANY_RULES))
    killer.join()
    assert caught.value.stage == "environment"
    assert replica.messages() == ["no"]
    assert replica.count("environment") == 1
    with pytest.raises(InvalidTemplate, match="policy is too large: it takes") as refused:
        replica.client.add_template(template(rego=MANY_RULES))
    assert refused.value.stage == "compile"
    replica.trials.stop()


def test_a_process_whose_owner_is_forgotten_is_ended():
    """A command, and who uses the library, do not say that they have nothing more to try."""
    before = workers()
    replica = Replica()
    replica.trials.warm()
    assert len(workers()) == len(before) + 1

    del replica

    assert workers() == before


def test_where_no_process_can_be_begun_policies_are_compiled_all_the_same(monkeypatch):
    """A sandbox forbids it, and a cluster must still come up; it is logged and counted."""
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    replica = Replica()
    for count in (2, 2000, 3):
        replica.client.add_template(template(rego=literals(count)))
        replica.client.add_constraint(constraint())
        assert replica.messages() == ["large"]
    assert set(replica.lines) == {("policies are compiled without a trial",)}
    assert replica.count("none") == len(replica.lines)


def test_before_anything_is_served_only_large_sources_are_tried():
    """A start must not take longer for policies as people write them."""
    before = workers()
    registry = Registry()
    trials = Trials(notify=lambda *_, **__: None, registry=registry)
    driver = TriedRegoDriver(RegoDriver(), trials)
    client = Client(targets=[AdmissionTarget()], drivers=[driver])
    client.add_template(template())
    assert workers() == before
    client.add_template(template(rego=literals(2000)))
    assert registry.counters[TRIALS] == {("passed",): 1}
    begun = workers()
    assert len(begun) == len(before) + 1
    trials.warm()
    assert workers() == begun
    trials.stop()
    assert workers() == before


@pytest.fixture
def warm(monkeypatch):
    """Yields a replica with a running process, on a machine that can start no other program."""
    before = workers()
    replica = Replica(cpu_seconds=30, memory_bytes=1 << 30)
    replica.trials.warm()
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    yield replica
    replica.trials.stop()
    assert workers() == before


def test_no_interpreter_is_begun_for_a_large_template(warm):
    """The running one is forked, which takes milliseconds and hardly any memory."""
    before = workers()
    for count in (2000, 2001):
        warm.client.add_template(template(rego=literals(count)))
        warm.client.add_constraint(constraint())
        assert warm.messages() == ["large"]
    warm.client.add_template(cel(f"object.metadata.name != '{'x' * LARGE_CHARACTERS}'"))
    assert warm.count("passed") == 3
    assert warm.lines == []
    assert workers() == before


def test_a_large_template_waits_for_no_trial_of_a_small_one(warm):
    """Though one process, which is busy with that, has forked what tries it."""
    is_begun = threading.Event()
    outcomes = []

    def burst():
        of = template("K8sOther", rego=HUNGRY, schema=ANYTHING)
        constraints = [
            constraint("K8sOther", name=f"c{n}", parameters={"hungry": True}) for n in range(60)
        ]

        def notify(number, tried):
            outcomes.append((number, tried))
            is_begun.set()

        warm.trials.found_out_all(
            [TrialRequest(one, [of, one]) for one in constraints], 60.0, notify
        )

    thread = threading.Thread(target=burst)
    thread.start()
    assert is_begun.wait(120)
    warm.client.add_template(template(rego=literals(2000)))
    assert len(outcomes) < 60
    assert warm.lines == []
    warm.trials.stop()  # the rest is not waited for
    thread.join()


def test_what_forks_for_large_templates_is_begun_anew_when_the_system_has_killed_it():
    """Without a word of the policy, which is tried."""
    before = workers()
    replica = Replica()
    replica.trials.warm()
    (worker,) = set(workers()).difference(before)
    os.kill(worker, signal.SIGKILL)
    replica.client.add_template(template(rego=literals(2000)))
    assert replica.count("passed") == 1
    assert replica.lines == []
    (another,) = set(workers()).difference(before)
    assert another != worker
    os.kill(another, signal.SIGKILL)
    replica.client.add_template(template(rego=literals(3)))
    assert replica.count("passed") == 2
    replica.trials.stop()


def test_what_samples_take_beyond_the_bounds_is_ended_before_this_process_tries_it():
    """The bound holds for all of an admission's trial, beyond any budget."""
    replica = Replica(memory_bytes=32 << 20)
    replica.client.add_template(template("K8sOther"))
    replica.client.add_constraint(constraint(kind="K8sOther"))
    many = "x := [y | y := numbers.range(1, 5000000)[_]; y != input.review]; count(x) < 0"
    hungry = template(rego=f'package p\nviolation[{{"msg": "x"}}] {{ {many} }}')
    documents = [hungry, constraint()]
    assert validate_tried(replica.client, [hungry], 60.0, replica.trials) == []
    problems = validate_tried(replica.client, documents, 60.0, replica.trials)
    assert [(one.name, one.code, one.message) for one in problems] == [
        (
            name,
            "ingest_error",
            "policy is too large: it takes more than 16 MiB of memory to compile and to be tried",
        )
        for name in ("k8sdeny", "c")
    ]
    problems = validate_tried(replica.client, [constraint(kind="K8sOther")], 60.0, replica.trials)
    assert problems == []
    replica.trials.stop()


HUNGRY = """
package p
violation[{"msg": "x"}] {
    input.parameters.hungry
    x := [y | y := numbers.range(1, 300000)[_]; y != input.review]
    count(x) < 0
}
"""
"""Takes 25 MB for a constraint that asks for it."""

ANYTHING = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


def test_of_constraints_that_are_tried_together_the_guilty_one_costs_only_itself():
    """Each has bounds of its own, in whatever order, and gets its own answer."""
    replica = Replica(memory_bytes=24 << 20)
    of = template(rego=HUNGRY, schema=ANYTHING)
    parameters: list[dict[str, object]] = [{} for _ in range(40)]
    parameters[0] = parameters[7] = parameters[8] = parameters[39] = {"hungry": True}
    found = found_out(
        replica, of, [constraint(name=f"c{n}", parameters=p) for n, p in enumerate(parameters)]
    )
    for number, own in enumerate(parameters):
        verdict = "ended" if own else "passed"
        assert found[number].verdict == verdict, (number, found[number])
        assert found[number].message == (
            "policy is too large: it takes more than 12 MiB of memory to compile and to be tried"
            if own
            else ""
        )
    assert replica.lines == []
    replica.trials.stop()


def found_out(replica, of, constraints, seconds=60.0):
    """Returns the outcomes of constraints of one template that are tried together."""
    requests = [TrialRequest(one, [of, one]) for one in constraints]
    found: dict[int, Tried | None] = {}

    def notify(number, tried):
        assert number not in found
        found[number] = tried

    replica.trials.found_out_all(requests, seconds, notify)
    return [found[number] for number in range(len(requests))]


LONG = """
package p
violation[{"msg": "x"}] {
    number := numbers.range(1, input.parameters.times)[_]
    found := [one | one := numbers.range(1, 300000)[_]; one != input.review]
    count(found) < number - number
}
"""
"""Takes a sample's limit of two seconds of processor time, for a constraint with ``times``."""


def test_of_constraints_whose_process_the_system_kills_the_others_are_tried():
    """By another process; nothing is said of the one that was being tried."""
    replica = Replica(cpu_seconds=30)
    of = template(rego=LONG, schema=ANYTHING)
    is_over = threading.Event()

    def kill():
        if (trial := begun_trial()) is not None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(trial[0], signal.SIGKILL)
        return is_over.is_set()

    killer = threading.Thread(target=lambda: until(kill, "one is killed as it is tried"))
    killer.start()
    found: dict[int, Tried | None] = {}

    def notify(number, tried):
        found[number] = tried
        if tried is None:
            is_over.set()
            killer.join()

    # The search begins with the first ones, which take six seconds of a processor.
    constraints = [
        constraint(name=f"c{n}", parameters={"times": 1000} if n < 3 else {}) for n in range(12)
    ]
    requests = [TrialRequest(one, [of, one]) for one in constraints]
    try:
        replica.trials.found_out_all(requests, 60.0, notify)
    finally:
        is_over.set()
        killer.join()
    assert sorted(found) == list(range(12))
    verdicts = [one.verdict for one in found.values() if one is not None]
    assert 0 < len(verdicts) < 12
    assert set(verdicts) == {"passed"}
    replica.trials.stop()


def test_constraints_that_are_tried_together_are_reported_as_each_is_alone():
    """Includes faulty constraints, another template's, and constraints tried already."""
    replica = Replica()
    good, other = template(), template("K8sOther", rego=literals(3))
    mixed = [
        (good, constraint(name="one")),
        (good, {**constraint(name="two"), "spec": {"enforcementAction": "sometimes"}}),
        (other, constraint("K8sOther", "three")),
        (good, constraint(name="one")),
        (good, {**constraint(name="four"), "spec": {"match": {"kinds": 3}}}),
        (other, constraint("K8sOther", "five")),
    ]
    together: dict[int, Tried | None] = {}
    requests = [TrialRequest(one, [of, one]) for of, one in mixed]
    replica.trials.found_out_all(requests, 1.0, together.__setitem__)
    alone: dict[int, Tried | None] = {}
    for number, one in enumerate(requests):
        another = Replica()
        (alone[number],) = found_out(another, one.documents[0], [one.document], 1.0)
        another.trials.stop()

    def messages(found):
        return {number: (one.verdict, one.message) for number, one in found.items()}

    assert messages(together) == messages(alone)
    assert [together[number].verdict for number in range(6)] == [
        *("passed", "refused", "passed", "passed", "refused", "passed")
    ]
    replica.trials.stop()


def test_whoever_waits_for_a_trial_has_its_turn_before_the_rest_of_many():
    """A burst of what takes long keeps an admission waiting for one of it."""
    replica = Replica(cpu_seconds=30, memory_bytes=1 << 30)
    of = template(rego=HUNGRY, schema=ANYTHING)
    constraints = [constraint(name=f"c{n}", parameters={"hungry": True}) for n in range(60)]
    order = []
    is_begun = threading.Event()

    def burst():
        requests = [TrialRequest(one, [of, one]) for one in constraints]

        def notify(number, tried):
            del tried
            order.append(number)
            is_begun.set()

        replica.trials.found_out_all(requests, 60.0, notify)

    thread = threading.Thread(target=burst)
    thread.start()
    assert is_begun.wait(120)
    assert validate_tried(replica.client, [template("K8sOther")], 60.0, replica.trials) == []
    position = len(order)
    replica.trials.stop()  # the rest is not waited for
    thread.join()
    assert position < len(order) == len(constraints)
