"""Objects without a namespace belong to their request's: commands in Pods, forwarded ports."""

import re
from pathlib import Path

from tests.behaviour.serving import REQUIRED_LABELS, Server, write_policies

CONSTRAINT = """
apiVersion: constraints.gatekeeper.sh/v1beta1
kind: RequiredLabel
metadata: {{name: {name}}}
spec:
  match: {{kinds: [{{apiGroups: [""], kinds: [PodExecOptions]}}], {match}}}
  parameters: {{label: owner}}
"""
MATCHES = {
    "in-prod": "namespaces: [prod]",
    "not-in-prod": "excludedNamespaces: [prod]",
    "not-in-pr": "excludedNamespaces: ['pr*']",
    "namespaced": "scope: Namespaced",
    "cluster": "scope: Cluster",
    "selected": "namespaceSelector: {matchLabels: {env: prod}}",
}
NAMESPACES = """
apiVersion: v1
kind: Namespace
metadata: {name: prod, labels: {env: prod}}
---
apiVersion: v1
kind: Namespace
metadata: {name: test, labels: {env: test}}
"""
EXEC = {"apiVersion": "v1", "kind": "PodExecOptions", "command": ["sh"], "container": "web"}


def test_a_command_in_a_pod_is_matched_by_the_request_s_namespace(tmp_path: Path) -> None:
    constraints = [CONSTRAINT.format(name=name, match=match) for name, match in MATCHES.items()]
    policies = write_policies(tmp_path, REQUIRED_LABELS, NAMESPACES, *constraints)

    def denied_by(server: Server, namespace: str) -> tuple[set[str], str]:
        verdict = server.admit(EXEC, operation="CONNECT", namespace=namespace, name="web")
        message = verdict["status"]["message"]
        return set(re.findall(r"\[([\w-]+)\]", message)), message

    with Server(policies) as server:
        server.ready()
        assert denied_by(server, "prod")[0] == {"in-prod", "namespaced", "selected"}
        assert denied_by(server, "test")[0] == {"not-in-prod", "not-in-pr", "namespaced"}
        # The Namespace is missing, so that its selection is unknown.
        names, message = denied_by(server, "unknown")
        assert names == {"not-in-prod", "not-in-pr", "namespaced", "selected"}
        assert "missing Namespace" in message
