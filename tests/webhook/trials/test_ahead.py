"""At a start another process compiles from the end of the list, and no policy depends on it."""

from __future__ import annotations

import os
import signal

import pytest

from tests.patience import until
from tests.webhook.constraint.policies import constraint, template
from tests.webhook.trials.tried import Replica, workers
from webhook.constraint.drivers.rego import RegoDriver
from webhook.constraint.errors import InvalidTemplate
from webhook.constraint.template import Code, Template
from webhook.rego.code_cache import CodeCache, from_bytes
from webhook.trials import ahead
from webhook.trials.ahead import LEAST, Ahead
from webhook.trials.job import text_of as text_or_none

BOUNDS = {
    "cpuSeconds": 5,
    "patienceSeconds": 60.0,
    "memoryBytes": 128 << 20,
    "disabledBuiltins": [],
}


def rego(number):
    """A policy of its own message."""
    return f"""package p{number}
violation[{{"msg": msg, "details": {{"missing": missing}}}}] {{
    provided := {{label | input.review.object.metadata.labels[label]}}
    required := {{label | label := input.parameters.labels[_]}}
    missing := required - provided
    count(missing) > 0
    msg := sprintf("{number}: missing %v", [missing])
}}
violation[{{"msg": "message {number}"}}] {{ input.review.object.kind == "Pod" }}
"""


def text_of(code) -> str:
    """Return the text of a source; every source has one here."""
    text = text_or_none(code)
    assert text is not None
    return text


def sources(count):
    """Sources in their order."""
    return [Code("Rego", {"rego": rego(number)}) for number in range(count)]


def templates(count):
    """Templates in their order, each of a kind of its own."""
    return [template(kind=f"K8sDeny{number:03}", rego=rego(number)) for number in range(count)]


@pytest.fixture(autouse=True)
def alone():
    """Without processes of an earlier test: they end a moment after they are stopped."""
    until(lambda: not workers(), "no process of an earlier test")


@pytest.fixture
def two_processors(monkeypatch):
    """Simulates a machine with two processors."""
    monkeypatch.setattr("webhook.trials.trials.processors", lambda: 2.0)


@pytest.fixture
def beside():
    """Yields a process that is ended after the test."""
    made = Ahead(BOUNDS)
    yield made
    made.stop()
    until(lambda: not workers(), "no process")


@pytest.fixture
def replica(two_processors):
    """A replica at its start: nothing is served, so that nothing is tried."""
    made = Replica(tries_all=lambda: False, ahead=True)
    made.beside = made.trials._ahead  # type: ignore[attr-defined]
    yield made
    made.trials.stop()
    until(lambda: not workers(), "no process")


def test_the_other_process_compiles_the_last_of_a_list_first(beside):
    texts = [text_of(code) for code in sources(LEAST)]
    beside.announce(texts)
    until(lambda: beside.count >= 8, "eight are compiled")
    assert beside.take(texts[-1]) is not None
    assert beside.take(texts[-1]) is None, "each is taken once"
    until(lambda: beside.count == LEAST, "all others")
    assert beside.take(texts[0]) is not None


def test_what_is_compiled_is_the_same_in_whichever_process_and_order(beside):
    made = sources(LEAST)
    beside.announce(text_of(code) for code in made)
    until(lambda: beside.count == LEAST, "all are compiled")
    for code in made:
        here = _Store()
        RegoDriver(cache=here).compile(Template("one", "One", "", ()), code)
        elsewhere = beside.take(text_of(code))
        assert elsewhere.key == here.key
        assert from_bytes(elsewhere.body) == here.generated


class _Store:
    """Takes what was compiled."""

    def load(self, key):
        return None

    def store(self, key, generated):
        self.key, self.generated = key, generated


def test_what_is_needed_here_first_is_not_compiled_elsewhere(beside):
    texts = [text_of(code) for code in sources(2 * LEAST)]
    beside.announce(texts[:3])
    assert beside.take(texts[0]) is None
    beside.announce(texts)
    until(lambda: beside.count == 2 * LEAST - 1, "all others are compiled")
    assert beside.take(texts[0]) is None


def test_few_templates_need_no_other_process(beside):
    beside.announce(text_of(code) for code in sources(LEAST - 1))
    assert workers() == []


def test_a_start_takes_what_the_other_process_compiled(replica):
    made = templates(LEAST)
    replica.trials.announce(made)
    until(lambda: replica.beside.count >= 8, "eight are compiled")
    for document in made:
        replica.client.add_template(document)
        replica.client.add_constraint(
            constraint(kind=document["spec"]["crd"]["spec"]["names"]["kind"])
        )
    assert sorted(replica.messages()) == sorted(f"message {number}" for number in range(LEAST))
    assert replica.lines == []
    assert replica.trials.started() >= 8
    until(lambda: not workers(), "the process ends when policies are served")


def test_what_was_compiled_elsewhere_is_in_the_cache(tmp_path, two_processors):
    tmp_path.chmod(0o700)
    replica = Replica(cache=CodeCache(tmp_path), tries_all=lambda: False, ahead=True)
    made = templates(LEAST)
    replica.trials.announce(made)
    for document in made:
        replica.client.add_template(document)
    replica.trials.stop()
    until(lambda: not workers(), "no process")
    assert len(list(tmp_path.iterdir())) == LEAST
    assert CodeCache(tmp_path).holds_some


def test_a_process_that_is_killed_costs_no_policy(replica):
    made = templates(2 * LEAST)
    replica.trials.announce(made)
    until(workers, "the process has begun")
    for process in workers():
        os.kill(process, signal.SIGKILL)
    for document in made:
        replica.client.add_template(document)
    assert len(replica.client.snapshot.entries) == len(made)
    until(lambda: not workers(), "it is not begun anew")


def test_a_source_that_ends_the_process_keeps_no_other_from_being_compiled():
    beside = Ahead({**BOUNDS, "memoryBytes": 64 << 20, "cpuSeconds": 1})
    large = Code("Rego", {"rego": _with_many_rules()})
    texts = [text_of(code) for code in (*sources(LEAST - 1), large)]
    beside.announce(texts)
    until(lambda: beside.count == LEAST - 1, "all others are compiled")
    assert beside.take(texts[-1]) is None
    beside.stop()
    until(lambda: not workers(), "no process")


def _with_many_rules():
    rules = (
        f'violation[{{"msg": "m{i}"}}] {{ input.review.object.a{i} == {i} }}' for i in range(9_000)
    )
    return "package p\n" + "\n".join(rules)


def test_a_template_that_does_not_compile_is_refused_in_the_same_words(replica):
    broken = template(kind="K8sDeny999", rego="package p\nviolation[x] { nothing(x) }")
    replica.trials.announce([*templates(LEAST), broken])
    with pytest.raises(InvalidTemplate) as beside:
        replica.client.add_template(broken)
    with pytest.raises(InvalidTemplate) as alone:
        Replica(tries_all=lambda: False).client.add_template(broken)
    assert str(beside.value) == str(alone.value)


def test_an_announcement_of_what_nobody_can_read_is_ignored(replica):
    replica.trials.announce([{}, {"kind": "ConstraintTemplate", "spec": 3}, template(rego="")])
    assert workers() == []


def test_nothing_is_compiled_elsewhere_once_policies_are_served(two_processors):
    replica = Replica(tries_all=lambda: True, ahead=True)
    replica.trials.announce(templates(LEAST))
    assert workers() == []


def test_one_processor_compiles_alone(monkeypatch):
    monkeypatch.setattr("webhook.trials.trials.processors", lambda: 1.0)
    replica = Replica(tries_all=lambda: False, ahead=True)
    replica.trials.announce(templates(LEAST))
    assert workers() == []


@pytest.mark.parametrize(
    ("quota", "expected"), [("100000 100000", 1.0), ("max 100000", 2.0), ("400000 100000", 2.0)]
)
def test_processors_are_those_of_the_affinity_within_the_quota(
    monkeypatch, tmp_path, quota, expected
):
    file = tmp_path / "cpu.max"
    file.write_text(quota)
    monkeypatch.setattr(ahead, "_QUOTA", file)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1}, raising=False)
    monkeypatch.setattr(os, "process_cpu_count", lambda: 2, raising=False)
    assert ahead.processors() == expected


def test_code_that_nobody_takes_is_bounded(monkeypatch, beside):
    monkeypatch.setattr(ahead, "DONE_BYTES_MAX", 1)
    beside.announce(text_of(code) for code in sources(LEAST))
    until(lambda: beside.count >= 8 and not workers(), "the process ends")
    assert beside.count == 8


def test_an_idle_process_ends(monkeypatch, beside):
    monkeypatch.setattr(ahead, "IDLE_SECONDS", 0.1)
    beside.announce(text_of(code) for code in sources(LEAST))
    until(lambda: beside.count == LEAST and not workers(), "the process ends")
