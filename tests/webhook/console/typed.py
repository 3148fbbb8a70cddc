"""Input for the playground, and decisions that it is tried on."""

from typing import Any

POLICY = """
apiVersion: templates.gatekeeper.sh/v1
kind: ConstraintTemplate
metadata: {name: nosample}
spec:
  crd: {spec: {names: {kind: NoSample}}}
  targets:
    - target: admission.k8s.gatekeeper.sh
      rego: |
        package nosample
        violation[{"msg": msg}] {
          input.review.object.metadata.name == "sample"
          msg := "no samples"
        }
---
"""
CONSTRAINT = """
apiVersion: constraints.gatekeeper.sh/v1beta1
kind: NoSample
metadata: {name: no-sample}
spec: {match: {kinds: [{apiGroups: [""], kinds: [Pod]}]}}
"""


def decision(name: str, verdict: str = "allow", *results: dict[str, Any]) -> dict[str, Any]:
    """A decision on a Pod of this name, as the log has it."""
    return {
        "eventType": "decision",
        "enforcementPoint": "validation.gatekeeper.sh",
        "verdict": verdict,
        "operation": "CREATE",
        "requestUID": f"u-{name}",
        "resourceGroup": "",
        "resourceAPIVersion": "v1",
        "resourceKind": "Pod",
        "resourceNamespace": "shop",
        "resourceName": name,
        "requestResource": {"group": "", "version": "v1", "resource": "pods"},
        "object": {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "namespace": "shop"},
        },
        "results": list(results),
    }
