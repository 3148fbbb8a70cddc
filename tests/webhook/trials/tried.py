"""A replica that has policies tried, and the processes that try them."""

from __future__ import annotations

import contextlib
import gc
import os
from pathlib import Path
from typing import TYPE_CHECKING

from tests.webhook.constraint.policies import pod, template
from webhook.constraint.client import Client
from webhook.constraint.drivers.cel import CelDriver
from webhook.constraint.drivers.rego import RegoDriver
from webhook.constraint.review import AugmentedObject
from webhook.constraint.targets.admission import AdmissionTarget
from webhook.metrics.policies import TRIALS
from webhook.metrics.registry import Registry
from webhook.trials.driver import TriedDriver, TriedRegoDriver
from webhook.trials.trials import Trials

if TYPE_CHECKING:
    from webhook.constraint.driver import Driver

MANY_RULES = "package p\n" + "\n".join(
    f'violation[{{"msg": "m{i}"}}] {{ input.review.object.spec.a{i} == {i} }}'
    for i in range(18_000)
)
"""1.3 MB: 9 s of processor time and 434 MiB."""

MANY_ITEMS = f"[{','.join(['1'] * 49_000)}].size() > 1"
"""98 KB: a second of processor time and 60 MiB."""


def literals(count):
    """A policy that lists so many names."""
    names = ", ".join(f'"value-{i}"' for i in range(count))
    return f'package p\nviolation[{{"msg": "large"}}] {{ x := [{names}]; x[_] == "value-1" }}'


def cel(expression):
    """A template in CEL."""
    source = {"validations": [{"expression": expression, "message": "no"}]}
    return template(rego="", target={"code": [{"engine": "K8sNativeValidation", "source": source}]})


class Replica:
    """A client whose drivers have everything tried first."""

    def __init__(self, cache=None, disabled=(), tries_all=lambda: True, **bounds):
        self.lines = []
        self.registry = Registry()
        self.trials = Trials(
            disabled,
            notify=lambda *event, **_: self.lines.append(event),
            registry=self.registry,
            tries_all=tries_all,
            **bounds,
        )
        rego = RegoDriver(disabled_builtins=disabled, cache=cache)
        drivers: list[Driver] = [
            TriedDriver(CelDriver(), self.trials),
            TriedRegoDriver(rego, self.trials),
        ]
        self.client = Client(targets=[AdmissionTarget()], drivers=drivers)

    def messages(self):
        """Returns the messages of a Pod's violations."""
        answer = self.client.snapshot.review(AugmentedObject(pod()))
        return [result.msg for result in answer.results]

    def count(self, outcome):
        """Returns the number of trials with this outcome."""
        return self.registry.counters.get(TRIALS, {}).get((outcome,), 0)


def processes(parent):
    """Returns the children of a process."""
    found = []
    for task in (Path("/proc") / str(parent) / "task").iterdir():
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # a thread that has ended
            found += [int(child) for child in (task / "children").read_text().split()]
    return found


def workers():
    """The processes that this one has try policies, for whoever is not forgotten."""
    gc.collect()
    found = []
    for process in processes(os.getpid()):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            if b"webhook.trials.worker" in Path(f"/proc/{process}/cmdline").read_bytes():
                found.append(process)
    return found


def begun_trial():
    """The process that compiles, once its bounds are set, and its parent; None before."""
    parents = workers()
    while parents:
        parent = parents.pop()
        try:
            for child in processes(parent):
                limits = Path(f"/proc/{child}/limits").read_text()
                (line,) = (one for one in limits.splitlines() if one.startswith("Max cpu time"))
                if line.split()[3] != "unlimited":
                    return child, parent
                parents.append(child)  # a branch
        except (FileNotFoundError, ProcessLookupError, ValueError):
            continue
    return None
