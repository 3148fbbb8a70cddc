"""No fault with a Secret puts its values into our answers, logs, records or metrics."""

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from tests.behaviour.serving import Server, review, thing, write_policies
from tests.decisions.process import Sidecar
from tests.decisions.receiver import Receiver
from tests.patience import PATIENCE_SECONDS
from tests.webhook.mutation.documents import modify_set

MARKER = "hunter2xyz"
"""Made up; a part of it, in any case, and what base64 stands for must not be seen either."""

VALUES = {"data": {"password": base64.b64encode(MARKER.encode()).decode()}}
SECRET = thing("Secret", "db", namespace="shop") | VALUES | {"stringData": {"token": MARKER}}

CEL = {
    "number": "int(object.stringData.token) > 0",
    "key": "object.data[object.stringData.token] == 'x'",
    "duration": "duration(object.stringData.token) > duration('1s')",
    "time": "timestamp(object.stringData.token) > timestamp('2026-01-01T00:00:00Z')",
    "quantity": "quantity(object.stringData.token).isGreaterThan(quantity('1'))",
    "url": "url(object.stringData.token).getHost() == 'x'",
    "part": "int(object.stringData.token.substring(2, 8)) > 0",
    "upper": "int(object.stringData.token.upperAscii()) > 0",
    "decoded": "object.stringData[object.data.password] == 'x'",
    "pattern": "'a'.matches(object.stringData.token + '(')",
    "fine": "object.stringData.token == 'x'",
}
REGO = {
    "number": "to_number(input.review.object.stringData.token) > 0",
    "json": "json.unmarshal(input.review.object.stringData.token)",
    "units": "units.parse(input.review.object.stringData.token) > 0",
    "time": "time.parse_rfc3339_ns(input.review.object.stringData.token) > 0",
    "conflict": "{k: v | v := input.review.object.stringData[_]; k := 1; v != 1}; "
    'x := {"a": input.review.object.stringData.token}; object.union(x, input.review.object.kind)',
    "fine": 'input.review.object.stringData.token == "x"',
}


def policies() -> list[str]:
    """A template of each expression, each with its constraint, and a mutator of a wrong type."""
    made: list[dict[str, Any]] = []
    sources = [
        (
            f"Cel{name.title()}",
            {
                "engine": "K8sNativeValidation",
                "source": {
                    "validations": [{"expression": expression, "message": "no"}],
                    "failurePolicy": "Fail",
                },
            },
        )
        for name, expression in CEL.items()
    ] + [
        (
            f"Rego{name.title()}",
            {
                "engine": "Rego",
                "source": {
                    "rego": f'package p\nviolation[{{"msg": "no"}}] {{ {body} }}',
                },
            },
        )
        for name, body in REGO.items()
    ]
    for kind, code in sources:
        target = {"target": "admission.k8s.gatekeeper.sh", "code": [code]}
        spec = {"crd": {"spec": {"names": {"kind": kind}}}, "targets": [target]}
        metadata = {"name": kind.lower()}
        made.append(
            {
                "apiVersion": "templates.gatekeeper.sh/v1",
                "kind": "ConstraintTemplate",
                "metadata": metadata,
                "spec": spec,
            }
        )
        made.append(
            {
                "apiVersion": "constraints.gatekeeper.sh/v1beta1",
                "kind": kind,
                "metadata": metadata,
                "spec": {"enforcementAction": "warn"},
            }
        )
    wrong = modify_set("m", "stringData.token", "merge", ["x"])
    wrong["spec"]["applyTo"] = [{"groups": [""], "versions": ["v1"], "kinds": ["Secret"]}]
    return [json.dumps(item) for item in [*made, wrong]]


def requests() -> list[dict[str, Any]]:
    """Reviews of the Secret: as it is made, changed, deleted, and of one without a kind."""
    without_kind = review(SECRET)
    del without_kind["request"]["object"]["kind"]
    return [
        review(SECRET),
        review(SECRET, operation="UPDATE", oldObject=SECRET),
        review(SECRET, operation="DELETE", object=None, oldObject=SECRET),
        without_kind,
    ]


@pytest.mark.parametrize("errors", ["violation", "error"])
def test_no_door_shows_a_value_of_a_secret(tmp_path: Path, errors: str) -> None:
    written = write_policies(tmp_path / "policies", *policies())
    config = tmp_path / "decisions.yaml"
    with Receiver() as receiver:
        sink = {"name": "http", "type": "http", "settings": {"url": receiver.url}}
        with Sidecar(tmp_path / "sidecar", [sink]) as sidecar:
            config.write_text(json.dumps({"sidecarURL": sidecar.url, "flushSeconds": 0.01}))
            flags = (
                f"--decision-log-config={config}",
                "--log-denies",
                "--log-level=DEBUG",
                "--operation=webhook",
                "--operation=mutation-webhook",
                "--log-mutations",
                f"--evaluation-errors={errors}",
            )
            with Server(written, *flags) as server:
                server.ready()
                shown = [
                    server.post(body, path=path).body.decode()
                    for body in requests()
                    for path in ("/v1/admit", "/v1/mutate")
                ]
                with receiver.changed:
                    assert receiver.changed.wait_for(
                        lambda: len(receiver.records) >= len(requests()), PATIENCE_SECONDS
                    )
                shown.append(server.get("metrics", "/metrics").body.decode())
                shown.append(server.get("health", "/readyz?verbose").body.decode())
            shown += [json.dumps(event) for event in server.events]
            shown += [json.dumps(record) for record in receiver.records]
    assert any("quotes a value of a Secret and is left out" in text for text in shown)
    encoded = base64.b64encode(MARKER.encode()).decode()
    for text in shown:
        for part in (MARKER, encoded, MARKER[2:8], base64.b64encode(encoded.encode()).decode()):
            assert part.lower() not in text.lower(), text[:2000]
