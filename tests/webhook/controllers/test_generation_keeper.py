"""Policies of the API server's own, where that is older: the version that it serves is the one written."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from tests.patience import PATIENCE_SECONDS
from tests.webhook.cluster.fault_server import scripted, status
from webhook.cluster import discovery
from webhook.cluster.client import ClusterClient
from webhook.controllers.generate import GenerationOptions
from webhook.controllers.generate import keeper as generation_keeper
from webhook.controllers.generate.keeper import GenerationKeeper
from webhook.controllers.object_faults import ObjectFaults
from webhook.generation.plan import Options
from webhook.log import Log
from webhook.metrics.registry import Registry

GROUP = "/apis/admissionregistration.k8s.io"
NOBODY: Any = None
"""For what is never asked here."""


def served(*plurals: str) -> tuple[int, list[bytes], str]:
    """A version of the group, with these resources."""
    kinds = {
        "validatingwebhookconfigurations": "ValidatingWebhookConfiguration",
        "validatingadmissionpolicies": "ValidatingAdmissionPolicy",
        "validatingadmissionpolicybindings": "ValidatingAdmissionPolicyBinding",
    }
    listed = [{"name": one, "kind": kinds[one], "namespaced": False} for one in plurals]
    return 200, [json.dumps({"kind": "APIResourceList", "resources": listed}).encode()], "end"


POLICIES = ("validatingadmissionpolicies", "validatingadmissionpolicybindings")


def requests_and_log(folder: Path, script: list[Any]) -> tuple[list[str], list[str]]:
    """Returns a keeper's requests, until one after the script's end, and its log."""
    options = GenerationOptions(
        Options(), wait_seconds=0, synced=False, configuration="", exempted=()
    )
    lines: list[bytes] = []

    async def run() -> list[str]:
        async with (
            scripted(folder, *script) as (server, credentials),
            ClusterClient(credentials) as client,
        ):
            log = Log(lines.append).logger("generation")
            keeper = GenerationKeeper(
                client, options, NOBODY, log, Registry(), ObjectFaults(), notify=lambda _: None
            )
            async with asyncio.timeout(PATIENCE_SECONDS), asyncio.TaskGroup() as tasks:
                running = tasks.create_task(keeper.run())
                await server.done.wait()
                running.cancel()
        return [path for path, _ in server.requests]

    return asyncio.run(run()), [json.loads(line)["msg"] for line in lines]


@pytest.mark.parametrize(
    ("script", "version"),
    [
        ([served(*POLICIES)], "v1"),
        ([served("validatingwebhookconfigurations"), served(*POLICIES)], "v1beta1"),
        ([status(404), served(*POLICIES)], "v1beta1"),
    ],
)
def test_policies_are_of_the_newest_version_that_the_api_server_serves(
    tmp_path: Path, script: list[Any], version: str
) -> None:
    requests, lines = requests_and_log(tmp_path, script)
    *versions, followed = requests[: len(script) + 1]
    assert versions == [f"{GROUP}/{one}" for one in ("v1", "v1beta1")[: len(script)]]
    assert followed.startswith(f"{GROUP}/{version}/validatingadmissionpolic")
    assert lines == []


def test_after_an_outage_it_is_asked_again_which_version_is_served(tmp_path: Path) -> None:
    requests, lines = requests_and_log(tmp_path, [status(500), served(*POLICIES)])
    assert requests[:2] == [f"{GROUP}/v1", f"{GROUP}/v1"]
    assert requests[2].startswith(f"{GROUP}/v1/validatingadmissionpolic")
    assert lines == ["the API server cannot be asked for ValidatingAdmissionPolicies; trying again"]


def test_an_api_server_without_such_policies_is_reported_and_asked_again_much_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The API server may be upgraded meanwhile."""
    monkeypatch.setattr(generation_keeper, "ABSENT_SECONDS", 0.0)
    monkeypatch.setattr(discovery, "_MISSING_SECONDS", 0.0)
    requests, lines = requests_and_log(tmp_path, [status(404), status(404), served(*POLICIES)])
    assert requests[:3] == [f"{GROUP}/v1", f"{GROUP}/v1beta1", f"{GROUP}/v1"]
    assert lines == ["the API server does not serve ValidatingAdmissionPolicies: none is generated"]
