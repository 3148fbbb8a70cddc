"""Sampling of requests for traces."""

import pytest

from webhook.serving.trace import Trace
from webhook.telemetry.context import QUEUED_MAX, Parent, SampledTracer, parse_parent

TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
PARENT = f"00-{TRACE}-{SPAN}-01"


def headers(text: str, state: str = "") -> list[tuple[bytes, bytes]]:
    """Returns the trace headers of a request, among others."""
    found = [(b"host", b"waddle"), (b"traceparent", text.encode())]
    return [*found, (b"tracestate", state.encode())] if state else found


@pytest.mark.parametrize(
    ("text", "sampled"),
    [
        (PARENT, True),
        (f"00-{TRACE}-{SPAN}-00", False),
        (f"00-{TRACE}-{SPAN}-03", True),  # unknown flags are let be
        (f"cc-{TRACE}-{SPAN}-01", True),  # a later version
        (f"cc-{TRACE}-{SPAN}-01-what-else", True),
        (f" {PARENT} ", True),
    ],
)
def test_a_parent_is_read_as_the_standard_says(text, sampled):
    assert parse_parent(text.encode()) == Parent(int(TRACE, 16), int(SPAN, 16), sampled)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "00",
        f"00-{'0' * 32}-{SPAN}-01",
        f"00-{TRACE}-{'0' * 16}-01",
        f"ff-{TRACE}-{SPAN}-01",
        f"00-{TRACE}-{SPAN}-01-what-else",
        f"00-{TRACE.upper()}-{SPAN}-01",
        f"00-{TRACE}-{SPAN}-1",
        f"00-{TRACE}{SPAN}-01",
        f"00-{TRACE}-{SPAN}-01\n00",
    ],
)
def test_what_is_no_parent_is_none(text):
    assert parse_parent(text.encode()) is None


def test_the_caller_decides_and_a_share_of_the_rest_is_traced():
    tracer = SampledTracer(1_000_000)
    assert tracer.sample(headers(f"00-{TRACE}-{SPAN}-00")) is None
    found = tracer.sample(headers(PARENT, "k8s=1"))
    assert found is not None
    assert (found.trace_id, found.parent_id, found.state) == (
        int(TRACE, 16),
        int(SPAN, 16),
        "k8s=1",
    )
    own = tracer.sample(headers("nonsense", "k8s=1"))
    assert own is not None
    assert (own.parent_id, own.state) == (0, "")
    assert SampledTracer(0).sample([]) is None


@pytest.mark.parametrize(
    "text",
    [
        f"00-{TRACE}-{SPAN}-02",  # random, and not sampled
        f"cc-{TRACE}-{SPAN}-fe",
        f"cc-{TRACE}-{SPAN}-00-what-else",
        f" {'0' * 53} ",
        f"00-{TRACE}-{SPAN}-0a",
    ],
)
def test_a_caller_that_does_not_sample_is_not_traced_whatever_the_share(text):
    """With a share of none a malformed one is not traced either; with all of them, it is."""
    assert SampledTracer(0).sample(headers(text)) is None
    own = SampledTracer(1_000_000).sample(headers(text))
    assert (own is None) == (parse_parent(text.encode()) is not None)


@pytest.mark.parametrize("flags", ["01", "03", "0b", "ff", "0d"])
def test_a_caller_that_samples_is_traced_though_the_share_is_none(flags):
    assert SampledTracer(0).sample(headers(f"00-{TRACE}-{SPAN}-{flags}")) is not None


def test_about_as_many_are_traced_as_were_asked_for():
    tracer = SampledTracer(100_000, per_second_max=10**9)
    found = sum(tracer.sample([]) is not None for _ in range(20_000))
    assert 1600 < found < 2400  # nine standard deviations


def test_nobody_can_have_each_of_its_requests_traced():
    now = 5.0
    tracer = SampledTracer(0, per_second_max=3, clock=lambda: now)
    assert [tracer.sample(headers(PARENT)) is not None for _ in range(5)] == [True] * 3 + [
        False
    ] * 2
    assert tracer.refused == 2
    now = 6.0
    assert tracer.sample(headers(PARENT)) is not None


def test_traces_that_nobody_takes_are_bounded_and_counted():
    tracer = SampledTracer(0, per_second_max=10**9)
    for _ in range(QUEUED_MAX + 3):
        sampled = tracer.sample(headers(PARENT))
        assert sampled is not None
        tracer.finish(Trace(*sampled, 0))
    assert tracer.overflowed == 3
    assert tracer.ready.is_set()
    assert len(tracer.take(10)) == 10
    assert len(tracer.take(10**6)) == QUEUED_MAX - 10
