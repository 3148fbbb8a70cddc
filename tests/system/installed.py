"""Pods run as processes: what installed objects say of arguments, environment and volumes, and no more.

Paths and addresses of a Pod become those of a folder and of loopback; nothing else is changed.
"""

import base64
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from tests.cluster import ApiError
from tests.ports import free_port
from tests.system.replicas import NAMESPACE, PODS, Plane, Replica

Object = dict[str, Any]
CONFIG_MAPS = f"/api/v1/namespaces/{NAMESPACE}/configmaps"
SECRETS = f"/api/v1/namespaces/{NAMESPACE}/secrets"
DEPLOYMENTS = f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments"


class Node:
    """A folder that stands for a node's disk and for every claim; ``addresses`` for the network."""

    def __init__(self, plane: Plane, folder: Path, addresses: Mapping[str, str]) -> None:
        self.plane = plane
        self.folder = folder
        self.addresses = addresses

    def claim(self, name: str) -> Path:
        """The folder of a PersistentVolumeClaim."""
        return self.folder / "claims" / name


class InstalledPod:
    """The Pod of a Deployment; its containers can end and be started again, as a kubelet does."""

    def __init__(self, node: Node, deployment: str) -> None:
        self.node = node
        api = node.plane.api
        template = api.request("GET", f"{DEPLOYMENTS}/{deployment}")["spec"]["template"]
        name = f"{deployment}-0"
        pod = {"apiVersion": "v1", "kind": "Pod", **template}
        pod["metadata"] = template["metadata"] | {"name": name}
        made = api.request("POST", PODS, pod)
        status = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
        api.request("PUT", f"{PODS}/{name}/status", made | {"status": status})
        self.name, self.uid, self.spec = name, made["metadata"]["uid"], template["spec"]
        self.folder = node.folder / deployment
        self.metrics_port = free_port()

    def container(self, name: str) -> tuple[list[str], dict[str, str]]:
        """A container's arguments and environment, with its volumes as they are now."""
        containers = [*self.spec.get("initContainers", ()), *self.spec["containers"]]
        (found,) = (item for item in containers if item["name"] == name)
        mounts = found.get("volumeMounts", ())
        paths = {mount["mountPath"]: self._volume(mount["name"], name) for mount in mounts}
        for mount in mounts:
            self._fill(mount["name"], name, paths)
        environment = dict(os.environ)
        for item in found.get("env", ()):
            environment[item["name"]] = item.get("value") or self._field(item)
        return [self._here(text, paths) for text in found["args"]], environment

    def _field(self, item: Object) -> str:
        path = item["valueFrom"]["fieldRef"]["fieldPath"]
        fields = {"metadata.name": self.name, "metadata.uid": self.uid}
        fields["spec.serviceAccountName"] = self.spec.get("serviceAccountName", "default")
        return fields.get(path, NAMESPACE if path == "metadata.namespace" else "node")

    def _here(self, text: str, paths: Mapping[str, Path]) -> str:
        """Paths and addresses of this machine in the place of the Pod's, each once."""
        replaced = {path: str(folder) for path, folder in paths.items()}
        replaced |= {**self.node.addresses} | {":8889": f"127.0.0.1:{self.metrics_port}"}
        longest_first = sorted(replaced, key=len, reverse=True)
        pattern = "|".join(map(re.escape, longest_first))
        return re.sub(pattern, lambda found: replaced[found[0]], text)

    def _declared(self, name: str) -> Object:
        (volume,) = (item for item in self.spec["volumes"] if item["name"] == name)
        found: Object = volume
        return found

    def _volume(self, name: str, container: str) -> Path:
        """A volume's folder as a container sees it.

        What is written there is the Pod's, but for ConfigMaps and Secrets: paths in them are
        those of the container that reads them, and another may mount other volumes.
        """
        volume = self._declared(name)
        if claim := volume.get("persistentVolumeClaim"):
            folder = self.node.claim(claim["claimName"])
        elif "configMap" in volume or "secret" in volume:
            folder = self.folder / container / name
        else:
            folder = self.folder / name
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    def _fill(self, name: str, container: str, paths: Mapping[str, Path]) -> None:
        """Write what a ConfigMap or a Secret holds."""
        volume = self._declared(name)
        api, folder = self.node.plane.api, self._volume(name, container)
        if source := volume.get("configMap"):
            for key, text in api.request("GET", f"{CONFIG_MAPS}/{source['name']}")["data"].items():
                (folder / key).write_text(self._here(text, paths))
        if source := volume.get("secret"):
            optional = (404,) if source.get("optional") else ()
            try:
                secret = api.request("GET", f"{SECRETS}/{source['secretName']}")
            except ApiError as error:
                if error.status not in optional:
                    raise
                return
            for key, text in (secret.get("data") or {}).items():
                (folder / key).write_bytes(base64.b64decode(text))


class InstalledServer(Replica):
    """The container that serves or audits, with the rights of its service account."""

    def __init__(self, pod: InstalledPod, container: str, port: int = 0) -> None:
        self.name = pod.name
        self.plane = pod.node.plane
        arguments, environment = pod.container(container)
        replaced = (
            *("--port=", "--health-addr=", "--prometheus-port=", "--shutdown-delay="),
            *("--audit-interval=", "--decision-log-grace="),
        )
        arguments = [item for item in arguments if not item.startswith(replaced)]
        arguments += ["--host=127.0.0.1", f"--port={port}", "--health-addr=127.0.0.1:0"]
        arguments += ["--prometheus-host=127.0.0.1", "--prometheus-port=0", "--shutdown-delay=1"]
        # An audit soon, and patience with a sidecar that starts on a busy machine.
        arguments += ["--audit-interval=5", "--decision-log-grace=60s"]
        arguments.append(f"--kubeconfig={credentials(pod)}")
        self.start([sys.executable, "-m", "webhook", *arguments], environment)


class InstalledSidecar:
    """The container with the queue; what it logs is kept."""

    def __init__(self, pod: InstalledPod, container: str) -> None:
        arguments, environment = pod.container(container)
        pod.folder.mkdir(parents=True, exist_ok=True)
        self.log = pod.folder / f"{container}.log"
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "webhook", *arguments],
                env=environment,
                stdout=log,
                stderr=log,
            )

    def kill(self) -> None:
        """SIGKILL."""
        self.process.kill()
        self.process.wait()


def credentials(pod: InstalledPod) -> Path:
    """A kubeconfig of the Pod's service account."""
    plane = pod.node.plane
    account = pod.spec["serviceAccountName"]
    path = f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts/{account}/token"
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    token = plane.api.request("POST", path, body)["status"]["token"]
    config = yaml.safe_load(plane.cluster.kubeconfig.read_text())
    config["users"][0]["user"] = {"token": token}
    file = pod.folder / "kubeconfig"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(yaml.safe_dump(config))
    return file
