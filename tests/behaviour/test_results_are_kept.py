"""A server that knows what constraints find of a Pod answers as before, and says that it knew."""

import json
from pathlib import Path

from tests.behaviour.serving import (
    REQUIRED_LABELS,
    Server,
    await_true,
    constraint,
    pod,
    write_policies,
)
from tests.decisions.process import Sidecar
from tests.decisions.receiver import Receiver
from tests.patience import PATIENCE_SECONDS
from webhook.constraint.memo import DERIVE_AFTER


def policies(folder: Path) -> Path:
    return write_policies(
        folder / "policies",
        REQUIRED_LABELS,
        constraint("needs-owner", "owner"),
        constraint("needs-team", "team", action="warn"),
    )


def answers(server: Server) -> list[str]:
    """The answers to three Pods."""
    pods = (pod(), pod(owner="me"), pod(owner="me", team="x"))
    verdicts = [server.admit(one) for one in pods]
    return [json.dumps([one["status"], one.get("warnings")], sort_keys=True) for one in verdicts]


def test_answers_are_the_same_and_metrics_and_records_tell(tmp_path: Path) -> None:
    config = tmp_path / "decisions.yaml"
    with Receiver() as receiver:
        sink = {"name": "http", "type": "http", "settings": {"url": receiver.url}}
        with Sidecar(tmp_path / "sidecar", [sink]) as sidecar:
            config.write_text(json.dumps({"sidecarURL": sidecar.url, "flushSeconds": 0.01}))
            with Server(policies(tmp_path), f"--decision-log-config={config}") as server:
                server.ready()
                before = answers(server)

                def known() -> bool:
                    assert answers(server) == before
                    return bool(server.metric("waddle_memo_hits_total"))

                for _ in range(DERIVE_AFTER // 3):
                    assert answers(server) == before
                await_true(known)
                assert (server.metric("waddle_memo_misses_total") or 0) > 0
                assert 0 < (server.metric("waddle_memo_bytes") or 0) < 16 << 20
                assert server.metric("waddle_memo_resting") == 0
                with receiver.changed:
                    assert receiver.changed.wait_for(
                        lambda: any(one.get("memo") for one in receiver.records), PATIENCE_SECONDS
                    )
        records = [one for one in receiver.records if one["eventType"] == "decision"]
    assert {one.get("memo") for one in records} == {None, True}
    assert {one["constraintsEvaluated"] for one in records} == {2}


def test_zero_bytes_switch_it_off(tmp_path: Path) -> None:
    with Server(policies(tmp_path), "--memo-bytes=0") as server:
        server.ready()
        before = answers(server)
        for _ in range(DERIVE_AFTER):
            assert answers(server) == before
        assert server.metric("waddle_memo_hits_total") is None
        assert server.metric("waddle_memo_bytes") is None
