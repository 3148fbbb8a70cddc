"""Policies of `waddle export --static` on an API server that loads them from files: no webhook runs."""

from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests import policies
from tests.cluster import ApiError
from tests.patience import until
from tests.system.admission_calls import dry_run, register_both
from tests.system.conftest import ALL_OPERATIONS, control_plane
from tests.system.proxy import Proxy
from tests.system.replicas import (
    CONFIG_MAPS,
    NAMESPACE,
    WEBHOOKS,
    Plane,
    Replica,
    config_map,
    constraint,
    template,
    try_request,
)
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


def reading(folder: Path) -> tuple[str, str]:
    """Flags by which the API server reads the policies of a folder."""
    return "-apiserver-args", (
        "--feature-gates=ManifestBasedAdmissionControlConfig=true "
        f"--admission-control-config-file={folder / 'admission-configuration.yaml'}"
    )


def refusal(plane: Plane, method: str, path: str, body: Any = None) -> str:
    """Returns the refusal of a request; empty if there is none."""
    try:
        plane.api.request(method, path, body)
    except ApiError as error:
        return error.body
    return ""


@pytest.mark.slow(40)
def test_policies_of_files_hold_while_no_webhook_runs(tmp_path: Path) -> None:
    folder = tmp_path / "admission"
    export(folder, "--allow-user", "ops@example.com")
    with control_plane(tmp_path, *reading(folder), install=Plane.make_namespaces) as plane:
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


@pytest.mark.slow(60)
def test_policies_of_files_hold_beside_replicas_and_after_these_are_killed(
    tmp_path: Path, proxy: Proxy
) -> None:
    """Requests are admitted while no replica runs, unless the files refuse them."""
    folder = tmp_path / "admission"
    export(folder)

    def answers(plane: Plane) -> dict[str, str]:
        return {
            word: dry_run(plane, "configmaps", data={"deny": word})
            for word in ("bad", "opened", "good")
        } | {"secret": dry_run(plane, "secrets")}

    def check_without_replicas(plane: Plane) -> None:
        found = answers(plane)
        assert "denied by bad" in found["bad"]
        assert (found["opened"], found["good"]) == ("admitted", "admitted")
        assert "failed calling webhook" in found["secret"]

    with control_plane(tmp_path, *reading(folder)) as plane, ExitStack() as stack:
        register_both(plane, "both", proxy.port, ignore=["configmaps"], fail=["secrets"])
        replicas = []
        for number in range(3):
            name = f"filed-{number}"
            replica = stack.enter_context(Replica(plane, name, *ALL_OPERATIONS)).wait_ready()
            plane.mark_pod(name, ready=True)
            replicas.append(replica)
        proxy.replicas = replicas
        made = plane.put_template(template())
        until(lambda: plane.is_generated("denied", made["metadata"]["uid"]), "its CRD is there")
        plane.put_constraint(constraint("opened", "opened"))
        for replica in replicas:
            until(lambda replica=replica: replica.denies("opened"), f"{replica.name} denies")
        found = answers(plane)
        assert "denied by bad" in found["bad"]
        assert "denied by opened" in found["opened"]
        assert (found["good"], found["secret"]) == ("admitted", "admitted")

        for replica in replicas:
            replica.kill()
        check_without_replicas(plane)
        plane.cluster.restart()
        check_without_replicas(plane)
        with Replica(plane, "filed-again", *ALL_OPERATIONS) as again:
            proxy.replicas = [again.wait_ready()]
            until(lambda: "denied by opened" in answers(plane)["opened"], "it is enforced again")
            assert "denied by bad" in answers(plane)["bad"]
            assert answers(plane)["secret"] == "admitted"
