"""Records near their bounds: how long a line may be, and how much an evaluation may write."""

from pathlib import Path
from typing import Any

import orjson
import pytest

from tests.webhook.decisions.exporting import balanced, make
from webhook.api.encoding import encode
from webhook.rego.run.weight import MAX_STEPS, text_steps


@pytest.mark.parametrize(("longer", "truncated"), [(0, None), (16, ["results.details"])])
def test_a_record_as_long_as_it_may_be_is_whole_and_a_longer_one_is_shortened(
    tmp_path: Path, longer: int, truncated: list[str] | None
) -> None:
    """By as many bytes as its sequence number may have digits: that is not counted."""
    exporter = make(tmp_path, maxRecordBytes=2000)
    empty: dict[str, Any] = {"results": [{"message": "m", "details": {"d": ""}}]}
    text = "x" * (2000 - len(encode(empty)) + longer)
    record: dict[str, Any] = {"results": [{"message": "m", "details": {"d": text}}]}

    assert exporter.offer(record)

    assert record.get("truncated") == truncated
    assert record["results"][0]["details"] == ({} if longer else {"d": text})
    assert balanced(exporter)


def test_details_that_are_as_many_values_as_an_evaluation_may_write_are_left_out(
    tmp_path: Path,
) -> None:
    """Small in memory, since its parts are shared; 1.6 MB when written."""
    exporter = make(tmp_path)
    shared: Any = ["aaaaaaaa"] * 10
    for _ in range(13):
        shared = [shared, shared]
    assert text_steps(shared) > MAX_STEPS / 2, "near the most that is written"
    record = {"results": [{"message": "m", "details": {"d": shared}}], "verdict": "deny"}

    assert exporter.offer(record)

    assert record["truncated"] == ["results.details"]
    (line,) = bytes(exporter.outbox.take(10**6)).splitlines()
    assert orjson.loads(line)["verdict"] == "deny"
    assert balanced(exporter)
