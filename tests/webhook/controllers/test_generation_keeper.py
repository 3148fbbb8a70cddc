"""Policies of the API server's own, where that is older: the version that it serves is the one written."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from tests.patience import PATIENCE_SECONDS
from tests.webhook.cluster.fault_server import scripted, status
from webhook.cluster.client import ClusterClient
from webhook.controllers.generation_keeper import GenerationKeeper
from webhook.controllers.generation_scope import GenerationOptions
from webhook.controllers.spoiled import Spoiled
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
    options = GenerationOptions(
        Options(), wait_seconds=0, synced=False, configuration="", exempted=()
    )

    async def run() -> list[str]:
        async with (
            scripted(tmp_path, *script) as (server, credentials),
            ClusterClient(credentials) as client,
        ):
            lines: list[bytes] = []
            log = Log(lines.append).logger("generation")
            keeper = GenerationKeeper(
                client, options, NOBODY, log, Registry(), Spoiled(), tell=lambda _: None
            )
            async with asyncio.timeout(PATIENCE_SECONDS), asyncio.TaskGroup() as tasks:
                running = tasks.create_task(keeper.run())
                await server.done.wait()
                running.cancel()
        return [path for path, _ in server.requests]

    *asked, followed = asyncio.run(run())[: len(script) + 1]
    assert asked == [f"{GROUP}/{one}" for one in ("v1", "v1beta1")[: len(script)]]
    assert followed.startswith(f"{GROUP}/{version}/validatingadmissionpolic")
