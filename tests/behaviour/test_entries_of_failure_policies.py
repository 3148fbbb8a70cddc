"""A review by one webhook entry leaves out the constraints of the other, over HTTPS."""

import json
from pathlib import Path
from typing import Any

import yaml

from tests import policies
from tests.behaviour.serving import Server, pod, review
from tests.decisions.process import Sidecar
from tests.decisions.receiver import Receiver
from tests.patience import PATIENCE_SECONDS

ANNOTATION = "waddle.dev/failure-policy"


def test_each_path_decides_by_its_constraints_and_the_whole_one_by_all(tmp_path: Path) -> None:
    rego = 'package named\nviolation[{"msg": input.parameters.word}] { true }\n'
    schema = {"type": "object", "properties": {"word": {"type": "string"}}}
    documents = [policies.template("Named", rego, schema=schema)]
    for name in ("fail", "ignore", "plain", "everything"):
        document = policies.constraint("Named", name, kinds=["Pod"], parameters={"word": name})
        if name != "plain":
            document["metadata"]["annotations"] = {ANNOTATION: name}
        if name == "everything":  # would lock the cluster out
            document["metadata"]["annotations"] = {ANNOTATION: "fail"}
            del document["spec"]["match"]
        documents.append(document)
    (tmp_path / "policies.yaml").write_text(yaml.safe_dump_all(documents))
    with Server(tmp_path, "--on-error=allow") as server:
        server.ready()

        def messages_at(path: str) -> list[str]:
            status = server.post(review(pod()), path).verdict.get("status", {})
            return [line.split("] ")[1] for line in status.get("message", "").splitlines()]

        assert messages_at("/v1/admit/fail?timeout=30s") == ["fail"]
        assert messages_at("/v1/admit/ignore?timeout=30s") == ["ignore", "plain"]
        assert messages_at("/v1/admit?timeout=30s") == ["fail", "ignore", "plain"]
        assert server.post(review(pod()), "/v1/admit/closed").status == 404
        refused = [event for event in server.events if "would lock the cluster out" in str(event)]
        assert any("it is for every kind" in str(event) for event in refused)


def test_records_say_which_entry_asked_behind_the_sidecar(tmp_path: Path) -> None:
    rego = 'package named\nviolation[{"msg": "no"}] { true }\n'
    documents = [policies.template("Named", rego)]
    for name in ("fail", "ignore"):
        document = policies.constraint("Named", name, kinds=["Pod"])
        document["metadata"]["annotations"] = {ANNOTATION: name}
        documents.append(document)
    folder = tmp_path / "policies"
    folder.mkdir()
    (folder / "policies.yaml").write_text(yaml.safe_dump_all(documents))
    config = tmp_path / "decisions.yaml"
    with Receiver() as receiver:
        sink = {"name": "http", "type": "http", "settings": {"url": receiver.url}}
        with Sidecar(tmp_path / "sidecar", [sink]) as sidecar:
            config.write_text(json.dumps({"sidecarURL": sidecar.url, "flushSeconds": 0.01}))
            with Server(folder, f"--decision-log-config={config}") as server:
                server.ready()
                for path in ("/v1/admit/fail", "/v1/admit/ignore", "/v1/admit"):
                    assert server.post(review(pod()), path).verdict["allowed"] is False

                def decisions() -> list[dict[str, Any]]:
                    return [one for one in receiver.records if one["eventType"] == "decision"]

                with receiver.changed:
                    assert receiver.changed.wait_for(
                        lambda: len(decisions()) == 3, PATIENCE_SECONDS
                    )
    counts = {one.get("failurePolicy"): len(one["results"]) for one in decisions()}
    assert counts == {"fail": 1, "ignore": 1, None: 2}
