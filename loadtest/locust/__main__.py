"""`python -m loadtest.locust [FLAG...]`: start servers, load them, stop them, exit by thresholds.

Flags that are not known here go to Locust: `--headless` is set, reports go to loadtest/results/.
"""

import argparse
import base64
import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from loadtest.bench.servers import Cores, waddle
from loadtest.locust.mix import POLICY_SETS
from tests.cluster import Cluster
from tests.programs import ProgramUnavailableError, build
from webhook.certificates.pairs import self_signed

ROOT = Path(__file__).resolve().parent.parent.parent
HERE = Path(__file__).resolve().parent
LOCUST = ROOT / ".venv-load" / "bin" / "locust"
WEBHOOKS = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one load; Locust's exit code, 2 when it cannot be run here."""
    parser = argparse.ArgumentParser(
        prog="python -m loadtest.locust", description=__doc__, allow_abbrev=False
    )
    parser.add_argument("--case", choices=("direct", "indirect"), default="direct")
    parser.add_argument("--replicas", type=int, default=1, help="servers of the direct case")
    parser.add_argument("--policies", choices=POLICY_SETS, default="p12")
    parser.add_argument("--namespace", default="payments", help="of the reviewed objects")
    parser.add_argument("--output", type=Path, default=ROOT / "loadtest" / "results", help="folder")
    options, rest = parser.parse_known_args(arguments)
    if not LOCUST.exists():
        print("there is no .venv-load: `make load` makes it", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory(prefix="waddle-load-") as scratch:
        try:
            with _servers(options, Path(scratch)) as environment:
                return _locust(options, rest, environment)
        except ProgramUnavailableError as unavailable:
            print(f"the API server cannot be built here: {unavailable}", file=sys.stderr)
            return 2


def _locust(options: argparse.Namespace, rest: list[str], environment: dict[str, str]) -> int:
    """Locust as a process; its reports are named after the case."""
    options.output.mkdir(parents=True, exist_ok=True)
    reports = options.output.resolve() / f"locust-{options.case}"
    command: list[str | Path] = [
        LOCUST,
        f"--locustfile={HERE / f'{options.case}.py'}",
        "--headless",
        "--only-summary",
        f"--html={reports}.html",
        f"--csv={reports}",
        f"--policies={options.policies}",
        f"--namespace={options.namespace}",
        *rest,
    ]
    finished = subprocess.run(
        command,
        cwd=ROOT,
        env={**os.environ, **environment},
        stdin=subprocess.DEVNULL,
        check=False,
    )
    print(f"reports: {reports}.html and {reports}_*.csv", file=sys.stderr)
    return finished.returncode


@contextlib.contextmanager
def _servers(options: argparse.Namespace, folder: Path) -> Iterator[dict[str, str]]:
    """Yields Locust's targets as environment variables; starts nothing for a given cluster."""
    if options.case == "indirect" and os.environ.get("KUBECONFIG"):
        yield {}
        return
    policies = _policies(options.policies, folder / "policies")
    certificates = folder / "certificates"
    certificates.mkdir()
    pair = self_signed(["127.0.0.1", "localhost"], datetime.now(UTC))
    (certificates / "tls.crt").write_bytes(pair.certificate)
    (certificates / "tls.key").write_bytes(pair.key)
    core, log = Cores.of_this_machine().server, folder / "waddle.log"
    with contextlib.ExitStack() as stack:
        count = options.replicas if options.case == "direct" else 1
        servers = [
            stack.enter_context(
                waddle(policies, certificates, core=core, log=log, keeps_results=True)
            )
            for _ in range(count)
        ]
        urls = [f"https://{urlsplit(server.url).netloc}" for server in servers]
        if options.case == "direct":
            yield {
                "WADDLE_LOAD_TARGETS": ",".join(urls),
                "WADDLE_LOAD_CA_FILE": str(certificates / "tls.crt"),
            }
            return
        cluster = Cluster.start(build("testcluster"), folder / "cluster")
        stack.callback(cluster.stop)
        webhook = _registration(urls[0], pair.certificate, options.namespace)
        cluster.api.request("POST", WEBHOOKS, webhook)
        yield {"KUBECONFIG": str(cluster.kubeconfig)}


def _policies(name: str, folder: Path) -> Path:
    """A set of loadtest/policies with the warnings that the mix expects beside it."""
    shutil.copytree(ROOT / "loadtest" / "policies" / name, folder)
    shutil.copy(HERE / "policies" / "warnings.yaml", folder)
    return folder


def _registration(url: str, certificate: bytes, namespace: str) -> dict[str, Any]:
    """Have the mix's kinds reviewed, in its namespace only."""
    named = {"key": "kubernetes.io/metadata.name", "operator": "In", "values": [namespace]}
    operations = ["CREATE", "UPDATE", "DELETE"]
    webhook = {
        "name": "validation.gatekeeper.sh",
        "admissionReviewVersions": ["v1"],
        "clientConfig": {
            "url": f"{url}/v1/admit",
            "caBundle": base64.b64encode(certificate).decode(),
        },
        "failurePolicy": "Fail",
        "sideEffects": "None",
        "timeoutSeconds": 10,
        "namespaceSelector": {"matchExpressions": [named]},
        "rules": [
            {
                "apiGroups": [group],
                "apiVersions": ["v1"],
                "operations": operations,
                "resources": list(resources),
            }
            for group, resources in (("", ("pods", "configmaps")), ("apps", ("deployments",)))
        ],
    }
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": "waddle-load"},
        "webhooks": [webhook],
    }


if __name__ == "__main__":
    sys.exit(main())
