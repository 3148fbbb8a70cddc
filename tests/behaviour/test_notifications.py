"""docs/notifications.md with real receivers: what is refused arrives in the shape that each takes."""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from html import unescape
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.behaviour.serving import REQUIRED_LABELS, Server, constraint, write_policies
from tests.decisions.process import Sidecar
from tests.decisions.receiver import Receiver
from tests.patience import PATIENCE_SECONDS
from tests.programs import ROOT
from webhook.decisions.sinks.http import RECORDS_MAX, SHAPES, message_of

PAGE = (ROOT / "docs" / "notifications.md").read_text()
SINKS = [
    sink
    for block in re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
    for sink in yaml.safe_load(block)["sinks"]
]
NAMES = ["slack", "teams", "receiver"]
HOSTILE = "<!channel> & <https://evil.example|click>"


@pytest.fixture
def receivers() -> Iterator[dict[str, Receiver]]:
    with ExitStack() as stack:
        yield {name: stack.enter_context(Receiver()) for name in NAMES}


def pod(**labels: str) -> dict[str, Any]:
    metadata = {"name": "web", "namespace": "shop", "labels": labels}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata}


def test_each_receiver_of_the_page_hears_of_a_refusal_and_of_nothing_else(
    tmp_path: Path, receivers: dict[str, Receiver], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert [sink["name"] for sink in SINKS] == NAMES
    for name in ("slack", "teams"):
        monkeypatch.setenv(f"{name.upper()}_URL", receivers[name].url)
    token = tmp_path / "token"
    token.write_text("of-the-receiver")
    SINKS[2]["settings"] |= {"url": receivers["receiver"].url, "bearerTokenFile": str(token)}
    policies = write_policies(tmp_path / "policies", REQUIRED_LABELS, constraint("owned", "owner"))
    config = tmp_path / "decisions.yaml"
    sidecar = Sidecar(tmp_path, SINKS)
    command = [sys.executable, "-m", "webhook", "sidecar", "--config", str(sidecar.config)]
    subprocess.run([*command, "--check"], check=True, timeout=PATIENCE_SECONDS)
    with sidecar:
        config.write_text(json.dumps({"sidecarURL": sidecar.url}))
        with Server(policies, f"--decision-log-config={config}") as server:
            server.ready()
            assert server.admit(pod(owner="me"))["allowed"]
            assert not server.admit(pod(), userInfo={"username": "alice"})["allowed"]
            for receiver in receivers.values():
                receiver.wait_for(1)
    (message,), (card,), (record,) = (receivers[name].records for name in NAMES)
    first, second = message["text"].splitlines()
    assert first == "deny CREATE Pod shop/web by alice"
    assert second.startswith("RequiredLabel/owned: ")
    assert unescape(message["text"]) == text_of(card)
    assert record["verdict"] == "deny"
    headers = receivers["receiver"].requests[0]["headers"]
    assert headers["Authorization"] == "Bearer of-the-receiver"


def text_of(card: Any) -> str:
    (attachment,) = card["attachments"]
    assert attachment["contentType"] == "application/vnd.microsoft.card.adaptive"
    assert attachment["content"]["type"] == "AdaptiveCard"
    blocks = attachment["content"]["body"]
    return "\n\n".join(run["text"] for block in blocks for run in block["inlines"])


def lines(count: int, message: str) -> list[bytes]:
    constraint = {"kind": "K", "name": "c"}
    record = {
        "verdict": "deny",
        "operation": "CREATE",
        "resourceKind": "Pod",
        "resourceName": "p",
        "results": [{"constraint": constraint, "message": message}] * 5,
    }
    return [json.dumps(record).encode()] * count


def test_nobody_is_named_or_linked_by_what_a_policy_wrote() -> None:
    text = json.loads(message_of(lines(1, HOSTILE), "slack"))["text"]
    assert "<" not in text
    assert "&lt;!channel&gt; &amp; &lt;https://evil.example|click&gt;" in text
    assert HOSTILE in text_of(json.loads(message_of(lines(1, HOSTILE), "teams")))


@pytest.mark.parametrize("shape", SHAPES)
def test_a_message_is_bounded_whatever_a_batch_holds(shape: str) -> None:
    body = message_of(lines(500, "é" * 100_000), shape)
    assert len(json.dumps(json.loads(body), ensure_ascii=False).encode()) < 28 * 1024
    assert f"and {500 - RECORDS_MAX} more" in body.decode()


@pytest.mark.parametrize("shape", SHAPES)
def test_records_that_are_no_decisions_are_no_message(shape: str) -> None:
    assert message_of([b'{"eventType":"lifecycle","event":"started"}'], shape) == b""


def test_what_fails_and_what_an_audit_found_is_reported_too() -> None:
    failed = {"verdict": "error", "resourceKind": "Pod", "errors": ["no policies yet"]}
    text = json.loads(message_of([json.dumps(failed).encode()], "slack"))["text"]
    assert text == "error audit Pod (unnamed)\nno policies yet"
