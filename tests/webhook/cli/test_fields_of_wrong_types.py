"""A wrong type in any field of any kind of policy: `check` names it, and still judges the rest."""

from __future__ import annotations

import copy
import re
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from tests.webhook.cli.in_process import waddle
from tests.webhook.constraint.policies import constraint, pod, template

if TYPE_CHECKING:
    from collections.abc import Iterator

KINDS = """
apiVersion: constraints.gatekeeper.sh/v1beta1
kind: Shape
metadata: {name: more, labels: {a: b}, annotations: {a: b}}
spec:
  enforcementAction: scoped
  scopedEnforcementActions: [{action: deny, enforcementPoints: [{name: "*"}]}]
  match:
    kinds: [{apiGroups: [""], kinds: [Pod]}]
    namespaces: [a]
    excludedNamespaces: [b]
    scope: Namespaced
    name: p*
    source: All
    labelSelector: {matchLabels: {a: b}, matchExpressions: [{key: a, operator: In, values: [b]}]}
    namespaceSelector: {matchLabels: {a: b}}
  parameters: {a: 1}
---
apiVersion: templates.gatekeeper.sh/v1
kind: ConstraintTemplate
metadata: {name: other, annotations: {a: b}}
spec:
  crd:
    spec:
      names: {kind: Other, shortNames: [o]}
      validation: {legacySchema: false, openAPIV3Schema: {type: object}}
  targets:
  - target: admission.k8s.gatekeeper.sh
    operations: [CREATE]
    code:
    - engine: Rego
      source: {version: v1, rego: "package p\\nviolation contains {'msg': 'x'}", libs: ["package lib.a"]}
---
apiVersion: templates.gatekeeper.sh/v1
kind: ConstraintTemplate
metadata: {name: other}
spec:
  crd: {spec: {names: {kind: Other}}}
  targets:
  - target: admission.k8s.gatekeeper.sh
    code:
    - engine: K8sNativeValidation
      source:
        failurePolicy: Fail
        generateVAP: true
        variables: [{name: v, expression: "1"}]
        matchConditions: [{name: m, expression: "true"}]
        validations: [{expression: "true", message: m, messageExpression: "'m'"}]
---
apiVersion: config.gatekeeper.sh/v1alpha1
kind: Config
metadata: {name: config, namespace: gatekeeper-system}
spec:
  match: [{processes: ["*"], excludedNamespaces: [kube-*]}]
  sync: {syncOnly: [{group: "", version: v1, kind: Pod}]}
  validation: {traces: [{user: u, kind: {group: "", version: v1, kind: Pod}, dump: All}]}
---
apiVersion: syncset.gatekeeper.sh/v1alpha1
kind: SyncSet
metadata: {name: s}
spec: {gvks: [{group: "", version: v1, kind: Pod}]}
---
apiVersion: mutations.gatekeeper.sh/v1
kind: Assign
metadata: {name: a}
spec:
  applyTo: [{groups: [""], versions: [v1], kinds: [Pod]}]
  match: {scope: Namespaced, kinds: [{apiGroups: [""], kinds: [Pod]}]}
  location: spec.x
  parameters: {assign: {value: y}, pathTests: [{subPath: spec, condition: MustExist}]}
---
apiVersion: mutations.gatekeeper.sh/v1
kind: ModifySet
metadata: {name: a}
spec:
  applyTo: [{groups: [""], versions: [v1], kinds: [Pod]}]
  location: spec.args
  parameters: {operation: merge, values: {fromList: [a]}}
---
apiVersion: mutations.gatekeeper.sh/v1alpha1
kind: AssignImage
metadata: {name: a}
spec:
  applyTo: [{groups: [""], versions: [v1], kinds: [Pod]}]
  location: "spec.containers[name:*].image"
  parameters: {assignDomain: x.io, assignPath: p, assignTag: ":t"}
---
apiVersion: expansion.gatekeeper.sh/v1beta1
kind: ExpansionTemplate
metadata: {name: e}
spec:
  applyTo: [{groups: [apps], versions: [v1], kinds: [Deployment]}]
  templateSource: spec.template
  enforcementAction: warn
  generatedGVK: {group: "", version: v1, kind: Pod}
---
apiVersion: externaldata.gatekeeper.sh/v1beta1
kind: Provider
metadata: {name: p}
spec: {url: "https://x.y/z", timeout: 1, caBundle: eA==}
---
apiVersion: waddle.dev/v1alpha1
kind: PolicyException
metadata: {name: e, namespace: shop}
spec:
  constraints: [{kind: Shape, name: more}]
  parts: {containers: [a]}
  reason: r
  owner: o
  expires: "2099-12-31T00:00:00Z"
---
apiVersion: constraints.gatekeeper.sh/v1beta1
kind: ConstraintGroup
metadata: {name: g}
spec:
  match: {kinds: [{apiGroups: [""], kinds: [Pod]}]}
  message: m
  members: {one: {kind: Shape, parameters: {a: 1}}}
  expression: one()
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: v}
spec:
  failurePolicy: Fail
  matchConstraints:
    resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods]}]
  variables: [{name: v, expression: "1"}]
  matchConditions: [{name: m, expression: "true"}]
  validations: [{expression: "true", message: m}]
  auditAnnotations: [{key: k, valueExpression: "'x'"}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: b}
spec:
  policyName: v
  validationActions: [Deny]
  matchResources: {namespaceSelector: {matchLabels: {a: b}}}
  paramRef: {name: x, parameterNotFoundAction: Deny}
"""
DOCUMENTS = list(yaml.safe_load_all(KINDS))
WRONG: tuple[Any, ...] = (5, True, None, "x", [None], {"a": 5})
PYTHON = re.compile(r"\b(None|True|False|NoneType|dict)\b|Traceback|fault of Waddle|\w+Error\b")


def places(value: Any, at: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """Each place within a value, but the kind by which it is known."""
    if at:
        yield at
    items = (
        value.items() if type(value) is dict else enumerate(value) if type(value) is list else ()
    )
    for key, item in items:
        if (*at, key) not in {("kind",), ("apiVersion",)}:
            yield from places(item, (*at, key))


def changed(document: dict[str, Any], at: tuple[str | int, ...], value: Any) -> dict[str, Any]:
    made = copy.deepcopy(document)
    inner: Any = made
    for key in at[:-1]:
        inner = inner[key]
    inner[at[-1]] = value
    return made


@pytest.mark.parametrize(
    ("number", "document"),
    list(enumerate(DOCUMENTS)),
    ids=[f"{number}-{one['kind']}" for number, one in enumerate(DOCUMENTS)],
)
def test_what_a_field_must_not_hold_is_reported_and_the_rest_is_judged(tmp_path, number, document):
    """Two ended in tracebacks, and some were told in Python's words."""
    base = [template("Shape"), constraint("Shape", "shape"), pod()]
    for turn, at in enumerate(places(document)):
        # Each field meets half of the values: all of them take as long again.
        for value in WRONG[(turn + number) % 2 :: 2]:
            file = tmp_path / "all.yaml"
            file.write_text(yaml.safe_dump_all([*base, changed(document, at, value)]))
            run = waddle("check", file)
            output = run.stdout + run.stderr
            assert not PYTHON.search(output), (at, value, output)
            assert "Shape/shape" in output, (at, value, output)
