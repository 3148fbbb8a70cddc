"""Decisions in rows: the same records, in fewer bytes, whoever makes records of them."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.webhook.decisions.exporting import Peer, balanced, make, obliging
from webhook import log
from webhook.api.admission import AdmissionResponse, read_request
from webhook.constraint.constraint import Constraint
from webhook.constraint.result import Fault, Responses, Result, Undecided
from webhook.decisions.configuration import parse
from webhook.decisions.exporter import recorder as recording
from webhook.decisions.exporter import rows as written_rows
from webhook.decisions.exporter.encoding import Origin
from webhook.decisions.exporter.exporter import Exporter
from webhook.decisions.exporter.outbox import Outbox
from webhook.decisions.exporter.recorder import AdmissionRecorder
from webhook.decisions.exporter.rows import ROW_BYTES_AMPLE, ROWS
from webhook.decisions.exporter.settings import read_settings
from webhook.decisions.sidecar.session import Session
from webhook.decisions.wire import rows
from webhook.decisions.wire.framing import (
    MAX_LINE_BYTES,
    ClientHello,
    ProtocolError,
    StreamID,
    decode_client_line,
)
from webhook.serving.recorder import Reviewed

STREAM = StreamID("uid", "process")


def exporter_of(settings: bytes = b"") -> Exporter:
    """An exporter whose queue nobody empties."""
    return Exporter(
        read_settings(parse(b"sidecarURL: unix:///s\n" + settings, "test")),
        Origin("uid", "pod", "namespace", "node", "process"),
        log.Log(lambda _: None).logger("test"),
    )


def queued(exporter: Exporter) -> list[dict[str, Any]]:
    """The records that are queued, as a receiver of version 1 gets them."""
    exporter.settle()
    text = b""
    while lines := exporter.outbox.take(10**9):
        text += rows.expanded(bytes(lines))
    return [orjson.loads(line) for line in text.splitlines()]


def constraint(name: str, **metadata: Any) -> Constraint:
    document = {
        "apiVersion": "constraints.gatekeeper.sh/v1beta1",
        "kind": "Always",
        "metadata": {"name": name, **metadata},
    }
    return Constraint("Always", name, document)


CONSTRAINTS = (
    constraint("a", generation=3),
    constraint("b", annotations={"severity": "high"}),
    constraint("c"),
    constraint("d", generation=2**70),
)
TEXT = st.text(max_size=12)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats(allow_nan=False) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=6,
)
RESULTS = st.lists(
    st.builds(
        lambda of, action, scoped, text, details, existing: Result(
            target="admission.k8s.gatekeeper.sh",
            msg=text,
            constraint=of,
            enforcement_action=action,
            scoped_actions=scoped,
            details=details,
            existing=existing,
        ),
        st.sampled_from(CONSTRAINTS),
        st.sampled_from(("deny", "warn", "dryrun", "unknown")),
        st.sampled_from(((), ("warn",), ("deny", "warn"))),
        TEXT,
        JSON,
        st.booleans(),
    ),
    max_size=4,
).map(tuple)
RESPONSES = st.builds(
    Responses,
    results=RESULTS,
    faults=st.sampled_from(((), (Fault("t", "Always", "it broke"),))),
    deadline_exceeded=st.booleans(),
    evaluated=st.integers(0, 9),
    undecided=st.sampled_from(
        ((), (Undecided("t", CONSTRAINTS[1], "suspended", "reject", "it is paused"),))
    ),
)
REQUESTS = st.fixed_dictionaries(
    {
        "uid": TEXT,
        "operation": st.sampled_from(("CREATE", "DELETE")),
        "kind": st.just({"group": "", "version": "v1", "kind": "Pod"}),
        "name": st.sampled_from(("", "n")),
        "namespace": TEXT,
        "userInfo": st.sampled_from(
            ({}, None, {"username": "u", "uid": "7", "groups": ["g"]}, {"groups": None})
        ),
        "object": st.none()
        | st.builds(
            lambda labels: {"metadata": {"name": "named", "labels": labels}},
            st.sampled_from((None, 7, ["a"]))
            | st.dictionaries(TEXT, TEXT | st.sampled_from((None, 7)), max_size=2),
        ),
        "oldObject": st.sampled_from(({"metadata": {"name": "old"}}, {"metadata": 7})),
        "resource": st.none() | st.just({"group": "", "version": "v1", "resource": "pods"}),
    }
)
ANSWERS = st.builds(
    AdmissionResponse,
    uid=st.just("u"),
    allowed=st.booleans(),
    code=st.sampled_from((200, 299, 403, 500)),
    message=TEXT,
)


@given(st.lists(st.tuples(REQUESTS, RESPONSES, ANSWERS), min_size=1, max_size=5))
def test_a_row_s_record_is_the_one_that_is_made_at_once(
    decided: list[tuple[dict[str, Any], Responses, AdmissionResponse]],
) -> None:
    batches: list[list[dict[str, Any]]] = []
    for takes_rows in (True, False):
        exporter = exporter_of()
        exporter._takes_rows = takes_rows
        recorder = AdmissionRecorder(exporter)
        for document, responses, answer in decided:
            request = read_request(orjson.loads(orjson.dumps(document)))
            recorder.answered(request, responses, None, 1.0, 1.5, answer)
        assert not exporter.counters.dropped
        batches.append(queued(exporter))
        assert balanced(exporter)
    for record in (*batches[0], *batches[1]):
        for name in ("timestamp", "durationNs"):
            record.pop(name)
    assert batches[0] == batches[1]


def decide(
    exporter: Exporter,
    count: int,
    responses: Responses | None = None,
    recorder: AdmissionRecorder | None = None,
) -> None:
    """Answer so many requests."""
    recorder = recorder or AdmissionRecorder(exporter)
    for _ in range(count):
        request = read_request({"uid": "u", "object": {"metadata": {"name": "n"}}})
        answer = AdmissionResponse("u", True)
        recorder.answered(request, responses or Responses(), None, 1.0, 1.5, answer)


def test_a_receiver_of_this_version_gets_rows_and_older_ones_records(tmp_path: Path) -> None:
    async def newer(peer: Peer) -> None:
        await peer.read()
        peer.say(type="hello", protocol=3, acknowledged=0)
        while (await peer.read()).get("type") != "bye":
            last = peer.lines[-1]
            peer.say(type="ack", sequence=last["sequence"] + len(last["rows"]) - 1)

    async def run(script: Callable[[Peer], Any]) -> list[dict[str, Any]]:
        exporter = make(tmp_path, flushSeconds=60)
        async with Peer(tmp_path, script) as peer, asyncio.TaskGroup() as tasks:
            tasks.create_task(exporter.run())
            decide(exporter, 2 * ROWS + 3)
            await exporter.drain(60)
        assert exporter.counters.acknowledged == 2 * ROWS + 3
        assert balanced(exporter)
        (tmp_path / "s").unlink(missing_ok=True)
        return [line for line in peer.lines if line.get("type") not in {"hello", "bye"}]

    of_rows = asyncio.run(run(newer))
    assert [len(line["rows"]) for line in of_rows] == [ROWS, ROWS, 3]
    assert [line["sequence"] for line in of_rows] == [1, ROWS + 1, 2 * ROWS + 1]
    of_records = asyncio.run(run(obliging))
    assert [line["sequence"] for line in of_records] == list(range(1, 2 * ROWS + 4))


def test_a_row_says_when_it_was_decided_however_much_later_it_is_put_on_a_line(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(written_rows, "time", lambda: 1795242560.5)
    monkeypatch.setattr(written_rows, "monotonic", lambda: 107.0)
    monkeypatch.setattr(recording, "monotonic", lambda: 97.0)
    exporter = exporter_of()
    decide(exporter, 1)
    (record,) = queued(exporter)
    assert record["timestamp"] == "2026-11-21T06:29:10.500000Z"
    assert (record["durationNs"], record["queueDurationNs"]) == (95_500_000_000, 500_000_000)


def test_an_answer_that_has_a_name_is_recorded_under_it_and_given_as_it_is() -> None:
    exporter = exporter_of()
    recorder = AdmissionRecorder(exporter)
    request = read_request({"uid": "u", "object": {"metadata": {"name": "n"}}})
    named = AdmissionResponse("u", True, decision_id=next(recorder.names))
    assert recorder.answered(request, Responses(), None, 1.0, 1.5, named) is named
    unnamed = AdmissionResponse("u", True)
    recorded = recorder.answered(request, Responses(), None, 1.0, 1.5, unnamed)
    assert recorded == unnamed._replace(decision_id="process-2")
    assert [record["id"] for record in queued(exporter)] == ["process-1", "process-2"]


def test_what_results_say_of_their_constraint_makes_no_line_that_a_receiver_refuses() -> None:
    exporter = exporter_of()
    large = constraint("large", annotations={"text": "x" * 100_000})
    responses = Responses(results=(Result("t", large, "m", None, "warn"),), evaluated=1)
    decide(exporter, 2 * ROWS, responses)
    records = queued(exporter)  # which makes the records of each line as a receiver does
    assert [record["sequence"] for record in records] == [*range(1, 2 * ROWS + 1)]
    assert balanced(exporter)


def test_rows_that_no_queue_has_room_for_are_counted_one_by_one() -> None:
    exporter = exporter_of(b"queue: {maxRecords: 5}")
    decide(exporter, 9)
    assert exporter.counters.offered == 9
    assert exporter.counters.dropped == {"queue_full": 4}
    assert [record["sequence"] for record in queued(exporter)] == [5, 6, 7, 8, 9]
    assert balanced(exporter)


def test_rows_leave_the_queue_s_bound_whole_where_records_come_between_them() -> None:
    exporter = exporter_of(b"queue: {maxRecords: 40}")
    recorder = AdmissionRecorder(exporter)
    for turn in range(60):
        decide(exporter, 1, recorder=recorder)
        if turn % 3 == 0:
            exporter.offer({"id": str(turn)})
        assert exporter.queued <= 40
        assert balanced(exporter)
    assert exporter.counters.dropped == {"queue_full": 40}
    assert len(queued(exporter)) == 40


def test_rows_of_a_process_that_ends_are_counted_as_such() -> None:
    async def end() -> Exporter:
        exporter = exporter_of()
        recorder = AdmissionRecorder(exporter)
        decide(exporter, 3, recorder=recorder)
        await exporter.drain(0)
        decide(exporter, 2, recorder=recorder)
        return exporter

    exporter = asyncio.run(end())
    assert exporter.counters.dropped == {"shutdown": 5}
    assert balanced(exporter)


def test_rows_find_room_for_some_of_them_where_bytes_are_few() -> None:
    exporter = exporter_of(b"queue: {maxBytes: 20000}")
    long = Responses(results=(Result("t", CONSTRAINTS[0], "m" * 3000, None, "warn"),), evaluated=1)
    decide(exporter, 12, long)
    records = queued(exporter)
    assert 3 <= len(records) < 12
    assert exporter.counters.dropped == {"queue_full": 12 - len(records)}
    assert balanced(exporter)


def test_a_row_whose_record_is_too_long_is_shortened_alone() -> None:
    exporter = exporter_of()
    large = Responses(
        results=tuple(
            Result("t", one, "m", {"text": "x" * 100_000}, "warn") for one in CONSTRAINTS[:3]
        ),
        evaluated=3,
    )
    decide(exporter, 1)
    decide(exporter, 1, large)
    decide(exporter, 1)
    first, second, third = queued(exporter)
    assert second["truncated"] == ["results.details"]
    assert [result["constraint"]["name"] for result in second["results"]] == ["a", "b", "c"]
    assert "truncated" not in first
    assert "truncated" not in third
    assert [one["sequence"] for one in (first, second, third)] == [1, 2, 3]


def test_a_long_row_does_not_wait_outside_of_the_queue_s_bound_of_bytes() -> None:
    exporter = exporter_of()
    details = {"text": "x" * ROW_BYTES_AMPLE}
    long = Responses(results=(Result("t", CONSTRAINTS[0], "m", details, "warn"),), evaluated=1)
    decide(exporter, 1)
    assert exporter.queued_bytes == 0
    decide(exporter, 1, long)
    assert exporter.queued_bytes > ROW_BYTES_AMPLE
    assert [record["sequence"] for record in queued(exporter)] == [1, 2]
    assert balanced(exporter)


def test_a_row_that_cannot_be_written_is_a_record_behind_those_before_it() -> None:
    exporter = exporter_of()
    large = Responses(results=(Result("t", CONSTRAINTS[0], "m", {"n": 2**70}, "warn"),))
    decide(exporter, 2)
    decide(exporter, 1, large)
    decide(exporter, 1)
    records = queued(exporter)
    assert [record["sequence"] for record in records] == [1, 2, 3, 4]
    assert records[2]["results"][0]["details"] == {"n": float(2**70)}
    assert [record["id"].rpartition("-")[2] for record in records] == ["1", "2", "3", "4"]
    assert balanced(exporter)


def test_each_way_into_the_queue_numbers_its_record_behind_the_rows_before_it() -> None:
    """Of a request without an answer, of one that cannot be read, of an event and of an audit."""
    exporter = exporter_of()
    recorder = AdmissionRecorder(exporter)
    request = read_request({"uid": "u", "object": {"metadata": {"name": "n"}}})
    unanswered = Reviewed(request, None, None, (1.0, 1.5))
    later: tuple[Callable[[], object], ...] = (
        lambda: recorder.unanswered(unanswered, 504, "late"),
        lambda: recorder.unread("uid", "malformed"),
        lambda: recorder.event("policies"),
        lambda: asyncio.run(exporter.put({"auditID": "a"})),
    )
    for write in later:
        decide(exporter, 2, recorder=recorder)
        assert exporter.noted.count == 2
        write()
    records = queued(exporter)
    assert [record["sequence"] for record in records] == list(range(1, 13))
    assert [record.get("verdict") == "allow" for record in records] == [True, True, False] * 4
    assert balanced(exporter)


def test_what_an_audit_leaves_out_has_a_number_behind_the_rows_before_it() -> None:
    exporter = exporter_of()
    decide(exporter, 2)
    assert exporter.noted.count == 2
    assert not asyncio.run(exporter.put({"auditID": "a", "other": ["x" * 2**20]}))
    decide(exporter, 1)
    assert [record["sequence"] for record in queued(exporter)] == [1, 2, 4]
    assert balanced(exporter)


def test_a_bug_in_rows_is_counted_for_each_and_reported() -> None:
    lines: list[bytes] = []
    settings = read_settings(parse(b"sidecarURL: unix:///s", "test"))
    exporter = Exporter(settings, Origin(), log.Log(lines.append).logger("test"))
    decide(exporter, 3, Responses(results=(object(),), evaluated=1))  # type: ignore[arg-type]
    assert queued(exporter) == []
    assert exporter.counters.dropped == {"bug": 3}
    assert balanced(exporter)
    assert b"a decision was not recorded" in lines[-1]


def test_a_bug_in_one_row_keeps_no_other_from_being_recorded() -> None:
    exporter = exporter_of()
    decide(exporter, 5)
    decide(exporter, 1, Responses(results=(object(),), evaluated=1))  # type: ignore[arg-type]
    decide(exporter, 3)
    assert [record["sequence"] for record in queued(exporter)] == [*range(1, 9)]
    assert exporter.counters.dropped == {"bug": 1}
    assert balanced(exporter)


def test_a_bug_in_putting_rows_together_keeps_no_other_from_being_recorded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    exporter = exporter_of()
    add = exporter.outbox.add

    def refusing(sequence: int, *parts: bytes | memoryview, count: int = 1) -> None:
        if b'-4"' in b"".join(parts):
            raise RuntimeError("a bug")
        add(sequence, *parts, count=count)

    monkeypatch.setattr(Outbox, "add", lambda _, *parts, **count: refusing(*parts, **count))
    decide(exporter, 6)
    records = queued(exporter)
    assert [record["id"].rpartition("-")[2] for record in records] == ["1", "2", "3", "5", "6"]
    assert [record["sequence"] for record in records] == [1, 2, 3, 4, 5]
    assert exporter.counters.dropped == {"bug": 1}
    assert balanced(exporter)


class Taken:
    """An intake that keeps what it gets."""

    def __init__(self) -> None:
        self.records: list[Any] = []
        self.streams = self

    def open(self, *_: Any) -> int:
        return 0

    def accept(self, records: Any, _: str) -> list[ProtocolError]:
        self.records += records
        return []


def row(more: Any = None) -> list[Any]:
    """Returns a row with few fields."""
    return [1.0, 1.25, 1.5, more, *rows.NAMES]


ROW = row()


def frame(**other: Any) -> dict[str, Any]:
    """A frame of one decision."""
    return {
        "type": "decisions",
        "sequence": 7,
        "clock": 1.7e9,
        "common": {"podUID": "uid", "process": "process"},
        "constraints": [],
        "rows": [ROW],
        **other,
    }


def test_a_sidecar_makes_records_of_the_sender_s_own_stream_whatever_rows_say() -> None:
    taken: Any = Taken()
    session = Session(taken, "uid 0")
    assert session.hello(ClientHello(STREAM, "pod", 0)).protocol == 3
    session.lines([orjson.dumps(frame(common={"podUID": "another", "process": "else"}))])
    (record,) = taken.records
    assert (record.stream, record.sequence) == (STREAM, 7)
    assert orjson.loads(record.line)["podUID"] == "uid"
    assert decode_client_line(record.line) == record


def test_rows_without_a_hello_are_refused() -> None:
    taken: Any = Taken()
    with pytest.raises(ProtocolError, match="after a hello"):
        Session(taken, "uid 0").lines([orjson.dumps(frame())])
    assert taken.records == []


@pytest.mark.parametrize(
    "wrong",
    [
        {"sequence": 0},
        {"sequence": True},
        {"sequence": "1"},
        {"sequence": 2**53},
        {"common": []},
        {"constraints": None},
        {"rows": {}},
        {"rows": []},
        {"rows": [[]]},
        {"rows": [5]},
        {"clock": None},
        {"clock": "x"},
        {"clock": 1e300},
        {"clock": -10},
        {"rows": [["received", 1.25, 1.5, None, *rows.NAMES]]},
        {"rows": [[1.0, None, 1.5, None, *rows.NAMES]]},
        {"rows": [[1.0, 1.25, 1e300, None, *rows.NAMES]]},
        {"rows": [[1.0, 1.25, 3e11, None, *rows.NAMES]]},
        {"rows": [[1.0, 1.25, True, None, *rows.NAMES]]},
        {"rows": [ROW[:-1]]},
        {"rows": [row(7)]},
        {"rows": [row({"results": 7})]},
        {"rows": [row({"results": [[0]]})]},
        {"rows": [row({"results": [[0, *"abcdef"]]})]},
        {"rows": [row({"results": [["0", *"abcdef"]]})], "constraints": [{}]},
        {"rows": [row({"results": [[-1, *"abcdef"]]})], "constraints": [{}]},
        {"rows": [row({"results": [[0, *"abcdef"]]})], "constraints": [5]},
        {"rows": [ROW] * 257},
    ],
)
def test_what_is_no_frame_of_rows_is_refused_and_says_why(wrong: dict[str, Any]) -> None:
    taken: Any = Taken()
    session = Session(taken, "uid 0")
    session.hello(ClientHello(STREAM, "pod", 0))
    with pytest.raises(ProtocolError, match="a frame of rows: ") as caught:
        session.lines([orjson.dumps(frame(**wrong))])
    assert caught.value.code == "bad_frame"
    assert taken.records == []


@pytest.mark.parametrize("place", ["common", "constraints"])
def test_a_frame_cannot_make_much_of_little(place: str) -> None:
    """Fields that are common to all rows or results are written with each of them."""
    large = {"text": "x" * (MAX_LINE_BYTES // 4)}
    many = row({"results": [[0, *"abcdef"]] * 50})
    wrong: dict[str, Any] = {"constraints": [large], "rows": [many]}
    if place == "common":
        wrong = {"common": large, "rows": [ROW] * 200}
    taken: Any = Taken()
    session = Session(taken, "uid 0")
    session.hello(ClientHello(STREAM, "pod", 0))
    with pytest.raises(ProtocolError) as caught:
        session.lines([orjson.dumps(frame(**wrong))])
    assert caught.value.code == "line_too_long"
    assert taken.records == []
