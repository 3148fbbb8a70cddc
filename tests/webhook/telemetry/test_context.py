"""Which requests are traced."""

import pytest

from webhook.telemetry.context import QUEUED_MAX, Parent, SampledTracer, parse_parent

TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
PARENT = f"00-{TRACE}-{SPAN}-01"


def headers(text: str, state: str = "") -> list[tuple[bytes, bytes]]:
    """Those of a request, among others."""
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
    assert tracer.begin(headers(f"00-{TRACE}-{SPAN}-00"), 1.0) is None
    found = tracer.begin(headers(PARENT, "k8s=1"), 1.0)
    assert found is not None
    assert (found.trace_id, found.parent_id, found.state) == (
        int(TRACE, 16),
        int(SPAN, 16),
        "k8s=1",
    )
    own = tracer.begin(headers("nonsense", "k8s=1"), 1.0)
    assert own is not None
    assert (own.parent_id, own.state) == (0, "")
    assert SampledTracer(0).begin([], 1.0) is None


def test_about_as_many_are_traced_as_were_asked_for():
    tracer = SampledTracer(100_000, per_second_max=10**9)
    found = sum(tracer.begin([], 1.0) is not None for _ in range(20_000))
    assert 1600 < found < 2400  # nine standard deviations


def test_nobody_can_have_each_of_its_requests_traced():
    now = 5.0
    tracer = SampledTracer(0, per_second_max=3, clock=lambda: now)
    assert [tracer.begin(headers(PARENT), 1.0) is not None for _ in range(5)] == [True] * 3 + [
        False
    ] * 2
    assert tracer.refused == 2
    now = 6.0
    assert tracer.begin(headers(PARENT), 1.0) is not None


def test_traces_that_nobody_takes_are_bounded_and_counted():
    tracer = SampledTracer(0, per_second_max=10**9)
    for _ in range(QUEUED_MAX + 3):
        trace = tracer.begin(headers(PARENT), 1.0)
        assert trace is not None
        tracer.finish(trace)
    assert tracer.overflowed == 3
    assert tracer.ready.is_set()
    assert len(tracer.take(10)) == 10
    assert len(tracer.take(10**6)) == QUEUED_MAX - 10
