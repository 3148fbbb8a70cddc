"""Objects too large for etcd are cut, the least important parts first, and always alike."""

from typing import Any

import pytest

from webhook.api.encoding import encode
from webhook.api.fitting import (
    OBJECT_BYTES_MAX,
    STATUS_BYTES_MIN,
    first_of,
    fitted,
    status_room,
)
from webhook.api.pod_status import TEMPLATE, Pod, StatusError, pod_status, status_subject
from webhook.controllers.status.by_pod import merged_status
from webhook.reports.finding import Finding
from webhook.reports.report import fill, result

POD = Pod("replica", "waddle-system", "uid", ("status",))


def subject() -> dict[str, Any]:
    return {"metadata": {"name": "a", "uid": "u", "generation": 1}, "spec": {}}


def test_what_fits_is_left_as_it_is() -> None:
    value = {"a": ["x" * 2000] * 3}
    assert fitted(value, 10_000) is value
    assert first_of([value], 10_000) == [value]


def test_texts_are_cut_before_entries_are_left_out() -> None:
    entries = [{"message": "x" * 4000, "total": 7}] * 100
    kept = first_of(entries, 50_000)
    assert len(kept) == 100
    assert {len(entry["message"]) for entry in kept} == {256}
    kept = first_of(entries, 5_000)
    assert 0 < len(kept) < 100
    assert len(encode(kept)) <= 5_000
    assert kept == first_of(entries, 5_000)


def test_of_a_status_numbers_stay_whatever_of_its_lists_is_shown() -> None:
    status = {"audit": {"totalViolations": 5000, "violations": [{"name": "n" * 250}] * 5000}}
    cut = fitted(status, 300_000)
    assert cut["audit"]["totalViolations"] == 5000
    assert len(cut["audit"]["violations"]) == 1000
    assert fitted(status, 100)["audit"]["totalViolations"] == 5000


def test_characters_that_are_written_as_six_bytes_count_as_such() -> None:
    kept = first_of([{"message": "\x01" * 1024}] * 10, 20_000)
    assert len(encode(kept)) <= 20_000


@pytest.mark.parametrize(
    ("spec_bytes", "room"), [(0, OBJECT_BYTES_MAX), (1_400_000, STATUS_BYTES_MIN)]
)
def test_a_status_has_the_room_that_its_object_leaves(spec_bytes: int, room: int) -> None:
    document = subject() | {"spec": {"text": "x" * spec_bytes}, "status": {"x": "y" * 1000}}
    assert room - 200 < status_room(document) <= room


def test_what_a_replica_says_and_what_all_say_fits() -> None:
    errors = [StatusError("rego", "x" * 4096)] * 2000
    statuses = []
    for number in range(5):
        pod = Pod(f"replica-{number}", "waddle-system", f"uid-{number}")
        statuses.append(pod_status(pod, status_subject(TEMPLATE, subject()), errors=errors))
        assert len(encode(statuses[-1])) < OBJECT_BYTES_MAX + 1000
        assert statuses[-1]["status"]["errors"]
    merged = merged_status(subject(), statuses, TEMPLATE)
    assert merged is not None
    assert [entry["id"] for entry in merged["byPod"]] == [f"replica-{n}" for n in range(5)]
    assert all(entry["errors"] for entry in merged["byPod"])
    assert len(encode(merged)) <= OBJECT_BYTES_MAX
    assert merged_status(subject() | {"status": merged}, statuses, TEMPLATE) is None


def test_a_report_counts_what_it_has_no_room_for() -> None:
    finding = Finding("Kind", "name", "fail", "\x01" * 1024)
    document = fill({}, [result(finding, 0) for _ in range(6000)])
    assert document["summary"]["fail"] == 6000
    assert len(encode(document["results"])) <= OBJECT_BYTES_MAX
    assert 0 < len(document["results"]) < 6000
