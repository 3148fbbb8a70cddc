"""The exemption label cannot be set by a way around the check of its users."""

import base64
import copy
import datetime as dt

import pytest

from tests.behaviour.serving import Server
from tests.cluster import Api, ApiError
from tests.manifests import CONFIGURATION, Objects
from tests.patience import until
from webhook.certificates.pairs import self_signed

WEBHOOKS = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
LABEL = "admission.gatekeeper.sh/ignore"
PATH = "/api/v1/namespaces/sly"


@pytest.fixture
def reviewing(installed: Api, base: Objects, tmp_path):
    """The manifests' webhook that is asked about the label, at a server on loopback."""
    pair = self_signed(["127.0.0.1"], dt.datetime.now(tz=dt.UTC))
    certificates, policies = tmp_path / "certificates", tmp_path / "policies"
    certificates.mkdir()
    policies.mkdir()
    (certificates / "tls.crt").write_bytes(pair.certificate)
    (certificates / "tls.key").write_bytes(pair.key)
    made = copy.deepcopy(base["ValidatingWebhookConfiguration", "", CONFIGURATION])
    made["metadata"] = {"name": "exemption-label"}
    made["webhooks"] = [one for one in made["webhooks"] if one["name"].startswith("check-ignore")]
    with Server(policies, f"--cert-dir={certificates}") as server:
        (webhook,) = made["webhooks"]
        path = webhook["clientConfig"].pop("service")["path"]
        webhook["clientConfig"]["url"] = f"https://127.0.0.1:{server.ports['admission']}{path}"
        webhook["clientConfig"]["caBundle"] = base64.b64encode(pair.certificate).decode()
        webhook["timeoutSeconds"] = 30
        installed.apply(f"{WEBHOOKS}/exemption-label", made)
        try:
            yield installed
        finally:
            installed.request("DELETE", f"{WEBHOOKS}/exemption-label")


def refusal(api: Api, path: str, labels: dict[str, str]) -> str:
    """Returns the API server's refusal of the labels by this path; empty if there is none."""
    namespace = api.request("GET", PATH)
    namespace["metadata"]["labels"] = {**namespace["metadata"]["labels"], **labels}
    try:
        api.request("PUT", path, namespace)
    except ApiError as error:
        if error.status != 403:
            raise
        return str(error)
    return ""


def test_neither_the_status_nor_the_finalizers_of_a_namespace_set_its_exemption(reviewing):
    body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "sly"}}
    reviewing.apply(PATH, body)
    try:
        # The API server follows webhook configurations a moment later.
        until(
            lambda: refusal(reviewing, f"{PATH}?dryRun=All", {LABEL: "true"}),
            "who writes it is asked",
        )
        for path in (PATH, f"{PATH}/status", f"{PATH}/finalize"):
            assert "Only exempt namespace can have" in refusal(reviewing, path, {LABEL: "true"}), (
                path
            )
            assert LABEL not in reviewing.request("GET", PATH)["metadata"]["labels"]
            # Other labels are nobody's concern, and nobody is asked.
            assert refusal(reviewing, path, {"of": path.rpartition("/")[2]}) == ""
    finally:
        reviewing.request("DELETE", PATH)
