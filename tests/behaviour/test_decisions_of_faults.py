"""Decision records of requests that were not decided because a policy failed."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.behaviour.serving import FAILING, Server, review, thing, write_policies
from tests.decisions.process import Sidecar
from tests.decisions.receiver import Receiver
from tests.patience import PATIENCE_SECONDS

REJECTING = 'annotations: {"waddle.dev/on-error": reject}, '


def recorded(folder: Path, policies: str, *flags: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """The answer to a review of a Secret, and its record as a sink gets it."""
    written = write_policies(folder / "policies", policies)
    config = folder / "decisions.yaml"
    with Receiver() as receiver:
        sink = {"name": "http", "type": "http", "settings": {"url": receiver.url}}
        with Sidecar(folder / "sidecar", [sink]) as sidecar:
            config.write_text(json.dumps({"sidecarURL": sidecar.url, "flushSeconds": 0.01}))
            with Server(written, f"--decision-log-config={config}", *flags) as server:
                server.ready()
                answered = server.post(review(thing("Secret")))
                with receiver.changed:
                    assert receiver.changed.wait_for(lambda: found(receiver), PATIENCE_SECONDS)
                answer = answered.verdict if answered.status == 200 else {}
                return answer, found(receiver)[0]


def found(receiver: Receiver) -> list[dict[str, Any]]:
    """The decisions that arrived."""
    return [record for record in receiver.records if record["eventType"] == "decision"]


@pytest.mark.parametrize("way", ["evaluation-errors", "on-error"])
def test_what_is_answered_500_is_on_record_with_its_reason(tmp_path: Path, way: str) -> None:
    """Left to failurePolicy, it is neither allowed nor denied; refused for the fault, it is refused."""
    if way == "evaluation-errors":
        answer, record = recorded(tmp_path, FAILING, "--evaluation-errors=error")
        assert "allowed" not in record
    else:
        failing = FAILING.replace("metadata: {", f"metadata: {{{REJECTING}")
        answer, record = recorded(tmp_path, failing)
        assert (answer["allowed"], record["allowed"]) == (False, False)
        assert [(item["answer"], item["cause"]) for item in record["undecided"]] == [
            ("reject", "error")
        ]
        assert record["errors"] == [answer["status"]["message"]]
    assert (record["verdict"], record["code"]) == ("error", 500)
    assert record["resourceKind"] == "Secret"
    assert record["errors"]
