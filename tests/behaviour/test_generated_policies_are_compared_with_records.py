"""``waddle check --vap --decisions``: what a server recorded, asked of policies of the API server's."""

import functools
import json
import os
from pathlib import Path
from typing import Any

import yaml

from tests import policies
from tests.behaviour.serving import Server, pod, write_policies
from tests.conformance.gatekeeper import waddle
from tests.decisions.process import Sidecar
from tests.decisions.receiver import Receiver
from tests.patience import PATIENCE_SECONDS

LABEL = {"label": {"type": "string"}}


def template(**source: Any) -> str:
    """A template in CEL, as YAML."""
    schema = {"type": "object", "properties": LABEL}
    return yaml.safe_dump(policies.template("Recorded", cel=source, schema=schema))


CONSTRAINT = """
apiVersion: constraints.gatekeeper.sh/v1beta1
kind: Recorded
metadata: {name: one}
spec:
  match: {kinds: [{apiGroups: [""], kinds: [Pod]}]}
  parameters: {label: owner}
"""

MISSING = {
    "expression": "variables.params.label in variables.anyObject.metadata.?labels.orValue({})",
    "messageExpression": "request.operation + ' by ' + request.userInfo.username",
}
"""Says who did what to an object without a label, one that is deleted among them."""

TEN = "[0, 1, 2, 3, 4, 5, 6, 7, 8, 9]"
LOOPS = functools.reduce(lambda within, name: f"{TEN}.all({name}, {within})", "abcde", "true")
"""Costs about half of what the webhook pays for a constraint, and a twentieth of an API server's."""

OF_CAROL = {"expression": f"request.userInfo.username != 'carol' || !{LOOPS}"}
"""Fails of requests of carol alone, of which no sample is."""


def recorded(folder: Path, policies: Path) -> Path:
    """Writes the decision records of six requests to a server with these policies, one a line."""
    requests: list[dict[str, Any]] = [
        {"obj": pod()},
        {"obj": pod(owner="me")},
        {"obj": pod(), "userInfo": {"username": "carol", "groups": ["dev"]}},
        {"obj": pod(owner="me"), "oldObject": pod(), "operation": "UPDATE"},
        {"obj": pod(), "oldObject": pod(owner="me"), "operation": "UPDATE"},
        {"obj": None, "oldObject": pod(), "operation": "DELETE"},
    ]
    with Receiver() as receiver:
        sink = {"name": "http", "type": "http", "settings": {"url": receiver.url}}
        with Sidecar(folder / "sidecar", [sink]) as sidecar:
            config = folder / "decisions.yaml"
            settings = {"sidecarURL": sidecar.url, "flushSeconds": 0.01, "includeObjects": True}
            config.write_text(json.dumps(settings))
            environment = {**os.environ, "POD_UID": "uid-1", "POD_NAME": "waddle-0"}
            flags = (f"--decision-log-config={config}", "--evaluation-budget=1m")
            with Server(policies, *flags, environment=environment) as server:
                server.ready()
                answers = [
                    server.admit(one.pop("obj"), **{"name": "web", **one}) for one in requests
                ]
                with receiver.changed:
                    assert receiver.changed.wait_for(
                        lambda: len(decisions(receiver)) == len(requests), PATIENCE_SECONDS
                    )
    denied = [answer["allowed"] for answer in answers]
    assert denied == [False, True, False, True, False, False]
    file = folder / "records.jsonl"
    file.write_text("".join(json.dumps(one) + "\n" for one in decisions(receiver)))
    return file


def decisions(receiver: Receiver) -> list[dict[str, Any]]:
    """Returns the received events that are decisions."""
    return [one for one in list(receiver.records) if one["eventType"] == "decision"]


def test_what_a_server_recorded_is_compared_request_by_request(tmp_path: Path) -> None:
    """Alike in both modes; a policy that says otherwise of one recorded request is a no."""
    same = write_policies(tmp_path / "same", template(validations=[MISSING]), CONSTRAINT)
    records = recorded(tmp_path, same)
    for mode in ("template", "constraint"):
        check = ("check", "-f", same, "--vap", mode, "-o", "json")
        samples = json.loads(waddle(*check).stdout)["generated"]["compared"]
        run = waddle(*check, "--decisions", records)
        found = json.loads(run.stdout)["generated"]
        assert run.returncode == 0, run.stderr
        assert found["compared"] == samples + 6
        assert (found["differences"], found["leftToTheWebhook"]) == ([], 0)

    changed = template(validations=[{**OF_CAROL, "message": name} for name in "abc"])
    differs = write_policies(tmp_path / "differs", changed, CONSTRAINT)
    # Samples say nothing of who asks, so that the loops run for each message: longer than is usual.
    budget = f"--evaluation-budget-ms={PATIENCE_SECONDS * 1000:.0f}"
    other_check = ("check", "-f", differs, "--vap", "template", budget)
    assert waddle(*other_check).returncode == 0, "no sample is carol's"
    run = waddle(*other_check, "--decisions", records)
    assert run.returncode == 1, run.stdout
    assert "1 differ" in run.stdout
    assert "Recorded/one: CREATE Pod default/web" in run.stdout
