"""A review by one webhook entry leaves out the constraints of the other, over HTTPS."""

from pathlib import Path

import yaml

from tests import policies
from tests.behaviour.serving import Server, pod, review

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

        def told(path: str) -> list[str]:
            status = server.post(review(pod()), path).verdict.get("status", {})
            return [line.split("] ")[1] for line in status.get("message", "").splitlines()]

        assert told("/v1/admit/fail?timeout=30s") == ["fail"]
        assert told("/v1/admit/ignore?timeout=30s") == ["ignore", "plain"]
        assert told("/v1/admit?timeout=30s") == ["fail", "ignore", "plain"]
        assert server.post(review(pod()), "/v1/admit/closed").status == 404
        refused = [event for event in server.events if "would lock the cluster out" in str(event)]
        assert any("it is for every kind" in str(event) for event in refused)
