"""Both Deployments with every component, by Helm and by kustomize: records survive a restart."""

import base64
import copy
import datetime as dt
import json
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.cluster import ApiError, serves
from tests.decisions.receiver import Receiver
from tests.manifests import CHART, apply, with_components
from tests.patience import PATIENCE_SECONDS, until
from tests.policies import definition
from tests.ports import free_port
from tests.programs import Programs
from tests.system.conftest import control_plane
from tests.system.installed import InstalledPod, InstalledServer, InstalledSidecar, Node
from tests.system.replicas import (
    CRD_PATH,
    NAMESPACE,
    PATIENT_SECONDS,
    WEBHOOKS,
    WORKLOADS,
    Plane,
    config_map,
    constraint,
    template,
)
from webhook.certificates.pairs import self_signed

CONFIGURATION = "waddle-validating-webhook-configuration"

COMPONENTS = {
    "sidecar": (
        *("components/alerts", "components/pod-monitor", "decisions/sidecar"),
        *("decisions/persistent", "decisions/audit-report", "decisions/alerts"),
    ),
    "exporter": (
        *("components/alerts", "components/pod-monitor"),
        *("decisions/exporter", "decisions/alerts"),
    ),
}
VALUES = {
    "sidecar": "decisions.queue.persistent=true,decisions.auditReport.enabled=true",
    "exporter": "replicas=3",
}


@pytest.fixture
def plane(tmp_path: Path, program: Programs) -> Iterator[Plane]:
    """A cluster of its own, with the kinds of the Prometheus operator."""
    del program

    def install(plane: Plane) -> None:
        for kind in ("PodMonitor", "PrometheusRule"):
            crd = definition(kind, f"{kind.lower()}s", "monitoring.coreos.com", namespaced=True)
            plane.api.apply(f"{CRD_PATH}/{kind.lower()}s.monitoring.coreos.com", crd)
            until(lambda crd=crd: serves(plane.api, crd), f"{kind}s are served")
        made = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": WORKLOADS}}
        plane.api.apply(f"/api/v1/namespaces/{WORKLOADS}", made)

    with control_plane(tmp_path, install=install) as made:
        yield made


def install_by_helm(plane: Plane, program: Programs, mode: str, sink: dict[str, Any]) -> None:
    finished = subprocess.run(
        [
            *(program("helm"), "install", "waddle", CHART, "--namespace", NAMESPACE),
            *("--create-namespace", "--kubeconfig", plane.cluster.kubeconfig),
            *("--set", f"decisions.mode={mode},{VALUES[mode]}"),
            *("--set", "alerts.enabled=true,podMonitor.enabled=true"),
            *("--set-json", f"decisions.sinks={json.dumps([sink])}"),
        ],
        check=True,
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
    ).stdout
    # Users create the Secrets that an exporter waits for.
    assert ("waddle-exporter-tls: " in finished) is (mode == "exporter")
    assert ("waddle-exporter-client: " in finished) is (mode == "exporter")


def install_by_kustomize(plane: Plane, program: Programs, mode: str, sink: dict[str, Any]) -> None:
    """The sink is what a user writes into the ConfigMap."""
    del program
    with tempfile.TemporaryDirectory() as folder:
        objects = with_components(Path(folder), *COMPONENTS[mode])
    data = objects["ConfigMap", NAMESPACE, "waddle-decisions"]["data"]
    data["sidecar.yaml"] = (
        data["sidecar.yaml"].partition("sinks:")[0] + f"sinks: [{json.dumps(sink)}]"
    )
    first = ("Namespace", "CustomResourceDefinition")
    for item in sorted(objects.values(), key=lambda item: item["kind"] not in first):
        until(lambda item=item: applied(plane, item), f"{item['kind']} is applied")


def applied(plane: Plane, item: dict[str, Any]) -> bool:
    """Whether an object was taken; its kind may not be served yet."""
    try:
        apply(plane.api, item, dry_run=False)
    except ApiError as error:
        if error.status in (404, 429):
            return False
        raise
    return True


INSTALL = {"helm": install_by_helm, "kustomize": install_by_kustomize}


def make_certificates(plane: Plane) -> None:
    """A pair for the exporter and one for its clients, each the other's authority."""
    now = dt.datetime.now(tz=dt.UTC)
    server = self_signed([f"waddle-exporter.{NAMESPACE}.svc", "127.0.0.1"], now)
    client = self_signed(["waddle"], now)
    for name, own, other in (
        ("waddle-exporter-tls", server, client),
        ("waddle-exporter-client", client, server),
    ):
        pair = {"tls.crt": own.certificate, "tls.key": own.key, "ca.crt": other.certificate}
        data = {key: base64.b64encode(value).decode() for key, value in pair.items()}
        secret = {"apiVersion": "v1", "kind": "Secret", "data": data}
        secret["metadata"] = {"name": name, "namespace": NAMESPACE}
        apply(plane.api, secret, dry_run=False)


class Installation:
    """The processes of all its Pods, one replica of each."""

    def __init__(self, plane: Plane, folder: Path, mode: str) -> None:
        self.plane = plane
        self.admission_port = free_port()
        exporter = f"127.0.0.1:{free_port()}"
        addresses = {"[::]:9443": exporter, f"waddle-exporter.{NAMESPACE}.svc:9443": exporter}
        self.node = Node(plane, folder, addresses)
        self.webhook = InstalledPod(self.node, "waddle-webhook")
        self.audit = InstalledPod(self.node, "waddle-audit")
        self.queues = [(self.webhook, "decisions"), (self.audit, "decisions")]
        if mode == "exporter":
            self.queues = [(InstalledPod(self.node, "waddle-exporter"), "exporter")]
        self.sidecars: list[InstalledSidecar] = []
        self.servers: list[InstalledServer] = []

    def start(self) -> None:
        """Starts the sidecars and the servers."""
        self.start_sidecars()
        self.servers = [
            InstalledServer(self.webhook, "webhook", self.admission_port),
            InstalledServer(self.audit, "audit"),
        ]
        for server in self.servers:
            server.__enter__()

    def start_sidecars(self) -> None:
        self.sidecars = [InstalledSidecar(*queue) for queue in self.queues]

    def kill_sidecars(self) -> None:
        for sidecar in self.sidecars:
            sidecar.kill()

    def state_of_sidecars(self) -> str:
        """Returns the exit codes and last log lines of the sidecars and the audit."""
        sidecars = [f"{one.process.poll()} {one.log.read_text()[-3000:]}" for one in self.sidecars]
        return "\n".join([*sidecars, *map(str, self.servers[-1].events[-20:])])

    def stop(self) -> None:
        """Stops all processes, servers first; a bug in a server's log is a failure."""
        for server in self.servers:
            server.__exit__()
        self.servers = []
        self.kill_sidecars()
        self.sidecars = []

    def call(self) -> None:
        """Have the API server call the webhook where it runs, about one namespace."""
        path = f"{WEBHOOKS}/{CONFIGURATION}"
        made = copy.deepcopy(self.plane.api.request("GET", path))
        made["metadata"].pop("managedFields", None)
        for webhook in made["webhooks"]:
            there = webhook["clientConfig"].pop("service", {"path": "/v1/admit"})["path"]
            webhook["clientConfig"]["url"] = f"https://localhost:{self.admission_port}{there}"
            webhook["failurePolicy"] = "Fail"
            webhook["timeoutSeconds"] = PATIENT_SECONDS
            webhook.setdefault("matchConditions", []).append(
                {
                    "name": "tests-alone",
                    "expression": f"has(request.namespace) && request.namespace == '{WORKLOADS}'",
                }
            )
        self.plane.api.request("PUT", path, made)


def admitted(plane: Plane, name: str, word: str) -> bool:
    """Whether the API server takes a ConfigMap; waits for a webhook that is being started."""
    made = config_map(word, name)
    path = f"/api/v1/namespaces/{WORKLOADS}/configmaps"
    found: list[bool] = []

    def is_answered() -> bool:
        try:
            plane.api.request("POST", path, made)
        except ApiError as error:
            if "denied by" not in error.body:
                return False
            found.append(False)
        else:
            found.append(True)
        return True

    until(is_answered, f"{name} is decided")
    return found[0]


def named(receiver: Receiver) -> Callable[[str, str, str], bool]:
    """Whether a record about a ConfigMap with a verdict arrived from an enforcement point."""

    def is_there(point: str, name: str, verdict: str) -> bool:
        with receiver.changed:
            return any(
                record.get("resourceName") == name
                and record["verdict"] == verdict
                and record["enforcementPoint"] == point
                for record in receiver.records
                if record["eventType"] == "decision"
            )

    return is_there


ADMISSION, AUDIT = "validation.gatekeeper.sh", "audit.gatekeeper.sh"


@pytest.mark.slow(25)
@pytest.mark.parametrize("form", ["helm", "kustomize"])
@pytest.mark.parametrize("mode", ["sidecar", "exporter"])
def test_records_of_admissions_and_audits_reach_the_sink_through_a_restart_of_everything(
    plane: Plane, program: Programs, form: str, mode: str
) -> None:
    """The sink is down meanwhile, and the sidecars are killed: what they had is on the volumes."""
    with ExitStack() as stack:
        receiver = stack.enter_context(Receiver())
        # The system bounds the paths of sockets: pytest's own folders are too deep.
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        batch = {"backoffInitialSeconds": 0.05, "backoffMaxSeconds": 0.5}
        sink = {"name": "http", "type": "http", "settings": {"url": receiver.url}, "batch": batch}
        plane.api.request(
            "POST", f"/api/v1/namespaces/{WORKLOADS}/configmaps", config_map("bad", "old")
        )
        INSTALL[form](plane, program, mode, sink)
        for path in ("podmonitors/waddle", "prometheusrules/waddle-decisions"):
            plane.api.request(
                "GET", f"/apis/monitoring.coreos.com/v1/namespaces/{NAMESPACE}/{path}"
            )
        make_certificates(plane)
        installation = Installation(plane, folder, mode)
        installation.call()
        stack.callback(installation.stop)
        plane.put_template(template())
        installation.start()
        plane.put_constraint(constraint("denied", "bad"))
        until(lambda: not admitted(plane, "first", "bad"), "the policy is in force")
        assert admitted(plane, "good", "fine")
        arrived = named(receiver)
        until(lambda: arrived(ADMISSION, "first", "deny"), "a denial arrives")
        until(lambda: arrived(ADMISSION, "good", "allow"), "an admission arrives")
        until(
            lambda: arrived(AUDIT, "old", "deny"),
            lambda: f"an audit's violation arrives: {installation.state_of_sidecars()}",
        )

        until(
            lambda: len({server.digest for server in installation.servers}) == 1,
            "the digests are one: WaddleReplicasDiffer fires where they are not equal",
        )

        receiver.set("refusing")
        before = offered(installation)
        assert not admitted(plane, "queued", "bad")
        until_acknowledged(installation, before)
        installation.kill_sidecars()
        before = offered(installation)
        assert not admitted(plane, "without-a-sidecar", "bad")
        installation.start_sidecars()
        until_acknowledged(installation, before)
        installation.stop()
        plane.cluster.restart()
        installation.start()
        until(lambda: not admitted(plane, "after", "bad"), "the policy is in force again")
        count = len(receiver.records)
        receiver.set("ok")
        for name in ("queued", "without-a-sidecar", "after"):

            def progress(name: str = name) -> str:
                return f"{name} arrives: {installation.state_of_sidecars()}"

            until(lambda name=name: arrived(ADMISSION, name, "deny"), progress)
        until(
            lambda: any(record.get("auditID") for record in receiver.records[count:]),
            "an audit after the restart arrives",
        )
        if mode == "sidecar":
            reports = installation.node.claim("waddle-audit-report") / "audit"
            until(lambda: whole(reports), "a report is there, whole")


def offered(installation: Installation) -> float:
    """Returns the number of the webhook's records: each is made a moment after its answer."""
    return installation.servers[0].metric("waddle_decisions_offered_total") or 0


def until_acknowledged(installation: Installation, before: float) -> None:
    """Wait until there is a record more, and every one is on a sidecar's disk."""
    until(lambda: offered(installation) > before, "a record is made")
    for server in installation.servers:
        until(
            lambda server=server: server.metric("waddle_decisions_connected") == 1,
            "the sidecar is there",
        )
        until(
            lambda server=server: server.metric("waddle_decisions_queued") == 0,
            "everything is acknowledged",
        )


def whole(reports: Path) -> bool:
    """Whether the newest report has its begin, the violation and its end, in Gatekeeper's words."""
    for file in reports.glob("[!.]*.log"):
        events = [json.loads(line) for line in file.read_text().splitlines()]
        assert events[0]["message"] == "audit is started"
        assert events[-1]["message"] == "audit is completed"
        found = [event for event in events if event.get("eventType") == "violation_audited"]
        if any(event["resourceName"] == "old" for event in found):
            return True
    return False
