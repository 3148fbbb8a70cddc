"""Runs a replica as a Pod does: by the service account of the manifests, and without a kubeconfig.

Reading a kubeconfig takes a package of 16 MiB, which no replica in a cluster imports.
"""

import sys
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

import yaml

from tests.cluster import Api, ApiError, Cluster
from tests.manifests import MANIFESTS, path_of
from tests.patience import until
from tests.system.replicas import NAMESPACE, TEMPLATES

ACCOUNT = "waddle"

_PROGRAM = """
import pathlib, sys
from webhook.cluster import service_account
service_account.FOLDER = pathlib.Path(sys.argv.pop(1))
from webhook.cli.main import main
main()
"""
"""`waddle` with the folder of its service account as first argument: a Pod has it at a fixed path."""


def install_rights(api: Api) -> None:
    """Apply the service account and the roles of the manifests, and wait until they count."""
    for file in ("service-account.yaml", "rbac.yaml"):
        for item in yaml.safe_load_all((MANIFESTS / "base" / file).read_text()):
            api.apply(path_of(item), item)
    until(lambda: _may_read_templates(api), "the rights of the service account")


def _may_read_templates(api: Api) -> bool:
    try:
        api.request("GET", TEMPLATES, user=f"system:serviceaccount:{NAMESPACE}:{ACCOUNT}")
    except ApiError as error:
        if error.status != 403:
            raise
        return False
    return True


def command(cluster: Cluster, folder: Path) -> list[str]:
    """Write a new token and the API server's authority to a folder; return `waddle` with them."""
    folder.mkdir(parents=True, exist_ok=True)
    path = f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts/{ACCOUNT}/token"
    request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    token = cluster.api.request("POST", path, request)["status"]["token"]
    (folder / "token").write_text(token)
    (folder / "ca.crt").write_text(cluster.authority)
    return [sys.executable, "-c", _PROGRAM, str(folder)]


def environment(cluster: Cluster, pod: str, uid: str) -> Mapping[str, str]:
    """Returns the variables that the kubelet and the Deployment set."""
    address = urlsplit(cluster.server)
    return {
        "KUBERNETES_SERVICE_HOST": str(address.hostname),
        "KUBERNETES_SERVICE_PORT": str(address.port),
        "POD_NAME": pod,
        "POD_NAMESPACE": NAMESPACE,
        "POD_UID": uid,
        "POD_SERVICE_ACCOUNT": ACCOUNT,
        "KUBECONFIG": "",
    }
