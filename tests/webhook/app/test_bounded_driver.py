"""Templates too large to be compiled are ended by the system, and others are not held up."""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path

import pytest

from tests.patience import until
from tests.webhook.constraint.policies import constraint, pod, template
from webhook.app.bounded_driver import LARGE_CHARACTERS, BoundedDriver, Trials
from webhook.constraint.client import Client
from webhook.constraint.drivers.rego import RegoDriver
from webhook.constraint.errors import InvalidTemplate, PassingFault
from webhook.constraint.review import AugmentedObject
from webhook.constraint.targets.admission import AdmissionTarget
from webhook.log import Log

MANY_RULES = "package p\n" + "\n".join(
    f'violation[{{"msg": "m{i}"}}] {{ input.review.object.spec.a{i} == {i} }}'
    for i in range(18_000)
)
"""1.3 MB: 9 s of processor time and 434 MiB."""


def literals(count):
    """A policy that lists so many names."""
    names = ", ".join(f'"value-{i}"' for i in range(count))
    return f'package p\nviolation[{{"msg": "large"}}] {{ x := [{names}]; x[_] == "value-1" }}'


class Replica:
    """A client whose driver tries large templates first."""

    def __init__(self, **bounds):
        self.lines = []
        log = Log(self.lines.append).logger("test")
        driver = BoundedDriver(RegoDriver(), Trials([], log, **bounds))
        self.client = Client(targets=[AdmissionTarget()], drivers=[driver])

    def messages(self):
        """What a Pod violates."""
        answer = self.client.snapshot.review(AugmentedObject(pod()))
        return [result.msg for result in answer.results]


def test_a_large_template_that_fits_its_bounds_is_in_force():
    replica = Replica()
    replica.client.add_template(template(rego=literals(2000)))
    replica.client.add_constraint(constraint())
    assert replica.messages() == ["large"]
    assert replica.lines == []


@pytest.mark.parametrize(
    ("bounds", "message"),
    [
        ({"cpu_seconds": 1}, "it takes more than 1 s of processor time to compile"),
        ({"memory_bytes": 48 << 20}, "it takes more than 48 MiB of memory to compile"),
    ],
    ids=["processor", "memory"],
)
def test_a_template_beyond_the_bounds_is_ended_and_the_next_one_compiles(bounds, message):
    """What was in force stays, and the fault is known without another trial."""
    replica = Replica(**bounds)
    replica.client.add_template(template())
    replica.client.add_constraint(constraint())
    for _ in range(3):
        with pytest.raises(InvalidTemplate, match=r"policy is too large|more memory") as caught:
            replica.client.add_template(template(rego=MANY_RULES))
        assert message in str(caught.value) or "needs more memory" in str(caught.value)
        assert caught.value.code == "ingest_error"
    assert replica.messages() == ["no"]
    replica.client.add_template(template("K8sOther"))
    assert replica.lines == []


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
def test_faults_of_a_large_template_are_told_as_those_of_a_small_one(rego):
    """Word for word, with their codes, as the driver itself tells them."""
    text = "# much\n" * LARGE_CHARACTERS + rego
    told = []
    for driver in (
        RegoDriver(disabled_builtins=["http.send"]),
        BoundedDriver(
            RegoDriver(disabled_builtins=["http.send"]),
            Trials(["http.send"], Log(lambda _line: None).logger("test")),
        ),
    ):
        with pytest.raises(InvalidTemplate) as caught:
            Client(targets=[AdmissionTarget()], drivers=[driver]).add_template(template(rego=text))
        error = caught.value
        told.append((type(error), error.code, error.stage, str(error)))
    assert told[0] == told[1]


def begun_trial():
    """The process that compiles, once its bounds are set; None before."""
    for task in Path("/proc/self/task").iterdir():
        for child in (task / "children").read_text().split():
            process = Path("/proc") / child
            try:
                is_trial = b"webhook.app.trial" in (process / "cmdline").read_bytes()
                limits = (process / "limits").read_text()
            except FileNotFoundError:
                continue
            (line,) = (line for line in limits.splitlines() if line.startswith("Max cpu time"))
            if is_trial and "unlimited" not in line:
                return int(child)
    return None


def test_a_trial_that_the_system_killed_says_nothing_of_the_template():
    """It is not remembered either: the next attempt finds what is wrong with the text."""
    replica = Replica(cpu_seconds=2)
    replica.client.add_template(template())
    replica.client.add_constraint(constraint())

    def kill():
        until(lambda: begun_trial() is not None, "the trial has begun")
        os.kill(begun_trial(), signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    with pytest.raises(PassingFault, match="killed, as for want of memory") as caught:
        replica.client.add_template(template(rego=MANY_RULES))
    killer.join()
    assert caught.value.stage == "environment"
    assert replica.messages() == ["no"]
    with pytest.raises(InvalidTemplate, match=r"too large|more memory") as caught:
        replica.client.add_template(template(rego=MANY_RULES))
    assert caught.value.stage == "compile"
