"""Policies of `waddle export --static` on an API server that loads them from files: no webhook runs."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from tests import policies
from tests.cluster import ApiError
from tests.patience import until
from tests.system.conftest import control_plane
from tests.system.replicas import CONFIG_MAPS, NAMESPACE, WEBHOOKS, Plane, config_map, try_request
from tests.webhook.cli.in_process import waddle

CONFIGURATION = "waddle-validating-webhook-configuration"


def export(folder: Path, *arguments: str) -> None:
    """Have a template in CEL and a constraint written for the API server."""
    target = {
        "target": "admission.k8s.gatekeeper.sh",
        "code": [
            {
                "engine": "K8sNativeValidation",
                "source": {
                    "validations": [
                        {
                            "expression": "!has(object.data) || !('deny' in object.data) || "
                            "object.data.deny != variables.params.word",
                            "messageExpression": "'denied by ' + variables.params.word",
                        }
                    ]
                },
            }
        ],
    }
    schema = {"type": "object", "properties": {"word": {"type": "string"}}}
    crd = {"spec": {"names": {"kind": "Said"}, "validation": {"openAPIV3Schema": schema}}}
    template = {
        "apiVersion": "templates.gatekeeper.sh/v1",
        "kind": "ConstraintTemplate",
        "metadata": {"name": "said"},
        "spec": {"crd": crd, "targets": [target]},
    }
    constraint = policies.constraint(
        "Said", "words", kinds=["ConfigMap"], parameters={"word": "bad"}
    )
    file = folder.parent / "policies.yaml"
    file.write_text(yaml.safe_dump_all([template, constraint]))
    run = waddle("export", "--static", folder, "--path", str(folder), "-f", file, *arguments)
    assert run.returncode == 0, run.stderr


def refusal(plane: Plane, method: str, path: str, body: Any = None) -> str:
    """Why a request is refused; empty where it is not."""
    try:
        plane.api.request(method, path, body)
    except ApiError as error:
        return error.body
    return ""


@pytest.mark.slow(40)
def test_policies_of_files_hold_while_no_webhook_runs(tmp_path: Path) -> None:
    folder = tmp_path / "admission"
    export(folder, "--allow-user", "ops@example.com")
    arguments = (
        "--feature-gates=ManifestBasedAdmissionControlConfig=true "
        f"--admission-control-config-file={folder / 'admission-configuration.yaml'}"
    )
    with control_plane(
        tmp_path, "-apiserver-args", arguments, install=Plane.make_namespaces
    ) as plane:
        body = {
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "ValidatingWebhookConfiguration",
            "metadata": {"name": CONFIGURATION},
            "webhooks": [],
        }
        plane.api.request("POST", WEBHOOKS, body)
        for is_new in (True, False):
            assert "denied by bad" in refusal(plane, "POST", CONFIG_MAPS, config_map("bad"))
            assert not refusal(plane, "POST", f"{CONFIG_MAPS}?dryRun=All", config_map("good"))
            for path in (
                WEBHOOKS,
                f"{WEBHOOKS}/{CONFIGURATION}",
                f"/api/v1/namespaces/{NAMESPACE}",
            ):
                why = refusal(plane, "DELETE", path)
                assert "only ops@example.com may change or delete this" in why, path
            if is_new:
                plane.cluster.restart()  # They hold from its first request on.
        # Files that change are read again.
        export(folder, "--allow-user", "ops@example.com", "--allow-group", "system:masters")
        until(
            lambda: not refusal(plane, "DELETE", f"{WEBHOOKS}/{CONFIGURATION}"),
            "who is allowed deletes it",
        )
        assert try_request(plane.api, "GET", f"{WEBHOOKS}/{CONFIGURATION}") is None
