"""A policy of config-validator's library."""

from __future__ import annotations

LIBRARY = """package validator.gcp.lib
# data.validator stays in comments, and "data.validator" in texts
parameter(constraint, name, otherwise) = found {
  found := object.get(constraint.spec.parameters, name, otherwise)
}
again(constraint) = data.validator.gcp.lib.parameter(constraint, "a", "b")
"""
REGO = """package templates.gcp.OldV1
import data.validator.gcp.lib as lib
deny[{"msg": m, "details": {"at": input.asset.name}}] {
  input.asset.asset_type == lib.parameter(input.constraint, "type", "x")
  m := "data.validator is only text"
}
"""


def template(**spec):
    return {
        "apiVersion": "templates.gatekeeper.sh/v1alpha1",
        "kind": "ConstraintTemplate",
        "metadata": {"name": "gcp-old-v1"},
        "spec": {
            "crd": {"spec": {"names": {"kind": "OldV1"}}},
            "targets": {"validation.gcp.forsetisecurity.org": {"rego": REGO}},
            **spec,
        },
    }


def constraint(**match):
    return {
        "apiVersion": "constraints.gatekeeper.sh/v1alpha1",
        "kind": "OldV1",
        "metadata": {"name": "Old_one", "annotations": {"a": "b"}},
        "spec": {"match": match, "parameters": {"type": "t"}},
    }
