"""Builds the templates and constraints of tests: a test says what is particular about its own."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

Json = dict[str, Any]

ADMISSION = "admission.k8s.gatekeeper.sh"
FREE: Json = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
"""The schema of parameters of any form."""


def template(
    kind: str,
    rego: str = "",
    *,
    cel: Mapping[str, Any] | None = None,
    schema: Mapping[str, Any] | None = None,
    target: Mapping[str, Any] | None = None,
    metadata: Mapping[str, Any] | None = None,
    version: str = "v1",
    **spec: Any,
) -> Json:
    """A template in Rego, or in CEL with ``cel`` as its source; its name is the kind's.

    ``schema`` is its parameters', ``target`` has more fields of its target, ``metadata`` and
    ``spec`` of the template.
    """
    crd: Json = {"names": {"kind": kind}}
    if schema is not None:
        crd["validation"] = {"openAPIV3Schema": schema}
    source: Json = {"rego": rego} if rego else {}
    if cel is not None:
        source["code"] = [{"engine": "K8sNativeValidation", "source": cel}]
    return {
        "apiVersion": f"templates.gatekeeper.sh/{version}",
        "kind": "ConstraintTemplate",
        "metadata": {"name": kind.lower(), **(metadata or {})},
        "spec": {
            "crd": {"spec": crd},
            "targets": [{"target": ADMISSION, **source, **(target or {})}],
            **spec,
        },
    }


def constraint(
    kind: str,
    name: str,
    *,
    kinds: Sequence[str] = (),
    metadata: Mapping[str, Any] | None = None,
    **spec: Any,
) -> Json:
    """A constraint of this spec; ``kinds`` are those of the core group that it is about."""
    if kinds:
        on_kinds = {"kinds": [{"apiGroups": [""], "kinds": list(kinds)}]}
        spec["match"] = on_kinds | spec.get("match", {})
    return {
        "apiVersion": "constraints.gatekeeper.sh/v1beta1",
        "kind": kind,
        "metadata": {"name": name, **(metadata or {})},
        "spec": spec,
    }


def exception(name: str, *constraints: str, namespace: str = "", **spec: Any) -> Json:
    """An exception for constraints named KIND/NAME: of the cluster where it is in no namespace."""
    listed = [dict(zip(("kind", "name"), of.split("/"), strict=True)) for of in constraints]
    place = {"namespace": namespace} if namespace else {}
    given = {"constraints": listed, "reason": "it must", "expires": "2100-01-01T00:00:00Z", **spec}
    return {
        "apiVersion": "waddle.dev/v1alpha1",
        "kind": "PolicyException" if namespace else "ClusterPolicyException",
        "metadata": {"name": name, **place},
        "spec": {name: value for name, value in given.items() if value is not None},
    }


def expansion_template(name: str = "e", *, version: str = "v1alpha1", **spec: Any) -> Json:
    """An ExpansionTemplate: of Deployments, whose template is a Pod, where ``spec`` says no other."""
    return {
        "apiVersion": f"expansion.gatekeeper.sh/{version}",
        "kind": "ExpansionTemplate",
        "metadata": {"name": name},
        "spec": {
            "applyTo": [{"groups": ["apps"], "versions": ["v1"], "kinds": ["Deployment"]}],
            "templateSource": "spec.template",
            "generatedGVK": {"group": "", "version": "v1", "kind": "Pod"},
            **spec,
        },
    }


CRONJOB_EXPANSIONS: Final = (
    expansion_template(
        "of-cronjobs",
        applyTo=[{"groups": ["batch"], "versions": ["v1"], "kinds": ["CronJob"]}],
        templateSource="spec.jobTemplate",
        generatedGVK={"group": "batch", "version": "v1", "kind": "Job"},
    ),
    expansion_template(
        "of-jobs", applyTo=[{"groups": ["batch"], "versions": ["v1"], "kinds": ["Job"]}]
    ),
)
"""From a CronJob to its Jobs, and from these to their Pods."""


def definition(
    kind: str,
    plural: str,
    group: str,
    *,
    version: str = "v1",
    namespaced: bool = False,
    with_status: bool = False,
    labels: Mapping[str, str] | None = None,
    schema: Json | None = None,
) -> Json:
    """A CustomResourceDefinition; without a ``schema`` its objects may hold anything.

    ``with_status`` makes their status a subresource.
    """
    served: Json = {"name": version, "served": True, "storage": True}
    if with_status:
        served["subresources"] = {"status": {}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}", "labels": labels or {}},
        "spec": {
            "group": group,
            "scope": "Namespaced" if namespaced else "Cluster",
            "names": {"kind": kind, "plural": plural, "singular": kind.lower()},
            "versions": [{**served, "schema": {"openAPIV3Schema": schema or FREE}}],
        },
    }


def config(*, namespace: str = "", **spec: Any) -> Json:
    """The Config of a cluster: ``sync``, ``match``, ``validation``."""
    place = {"namespace": namespace} if namespace else {}
    return {
        "apiVersion": "config.gatekeeper.sh/v1alpha1",
        "kind": "Config",
        "metadata": {"name": "config", **place},
        "spec": spec,
    }
