"""Policies of others with a part of another shape are refused, and end no command."""

from __future__ import annotations

from copy import deepcopy
from typing import TYPE_CHECKING, Any, Final

import pytest

from webhook.admission_policies.kinds import InvalidAdmissionPolicy
from webhook.admission_policies.reading import read_binding, read_mutating_policy, read_policy
from webhook.kyverno.conversion import converted
from webhook.kyverno.exception_conversion import converted_exceptions
from webhook.kyverno.image_conversion import converted_policy, converted_rules
from webhook.kyverno.kinds import InvalidPolicy
from webhook.kyverno.mutating_policy import KyvernoMutatingPolicy
from webhook.kyverno.patterns import Unwritable
from webhook.kyverno.policy_exception import KyvernoException
from webhook.kyverno.validating_policy import ValidatingPolicy

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

Json = dict[str, Any]

ODD: Final = (1, "x", [[]], {"a": 1})
"""Values that take the place of a part."""

_SELECTOR: Final = {
    "matchLabels": {"team": "a"},
    "matchExpressions": [{"key": "env", "operator": "In", "values": ["prod"]}],
}
_MATCHED: Final = {
    "resourceRules": [
        {
            "apiGroups": [""],
            "apiVersions": ["v1"],
            "operations": ["CREATE", "UPDATE"],
            "resources": ["pods"],
            "scope": "*",
        }
    ],
    "namespaceSelector": _SELECTOR,
}
_CONDITIONS: Final = [{"name": "a", "expression": "object.metadata.name != 'b'"}]
_CEL: Final = {
    "matchConstraints": _MATCHED,
    "matchConditions": _CONDITIONS,
    "variables": [{"name": "names", "expression": "object.spec.containers.map(c, c.name)"}],
    "failurePolicy": "Ignore",
}
_VALIDATING: Final = {
    **_CEL,
    "validations": [{"expression": "variables.names != []", "message": "no", "reason": "Invalid"}],
    "auditAnnotations": [{"key": "a", "valueExpression": "string(object.metadata.name)"}],
}
_MUTATIONS: Final = [
    {
        "patchType": "ApplyConfiguration",
        "applyConfiguration": {"expression": "Object{spec: Object.spec{hostNetwork: false}}"},
    },
    {
        "patchType": "JSONPatch",
        "jsonPatch": {"expression": "[JSONPatch{op: 'remove', path: '/a'}]"},
    },
]
_PODS: Final = {
    "any": [
        {
            "resources": {
                "kinds": ["Pod"],
                "names": ["a-*"],
                "namespaces": ["shop"],
                "operations": ["CREATE", "DELETE"],
                "annotations": {"a": "b"},
                "selector": _SELECTOR,
                "namespaceSelector": _SELECTOR,
            },
            "subjects": [{"kind": "User", "name": "jane"}],
        }
    ]
}
_DENY: Final = {
    "conditions": {
        "all": [
            {"key": "{{ request.object.spec.\"a-b\" || '' }}", "operator": "AnyIn", "value": ["c"]}
        ]
    }
}
_CHECKS: Final[tuple[Json, ...]] = (
    {"pattern": {"spec": {"=(hostNetwork)": False, "containers": [{"image": "!*:latest"}]}}},
    {"anyPattern": [{"spec": {"x": ">= 1"}}]},
    {"deny": _DENY},
    {
        "podSecurity": {
            "level": "baseline",
            "version": "latest",
            "exclude": [{"controlName": "Seccomp"}],
        }
    },
    {
        "cel": {key: _VALIDATING[key] for key in ("variables", "auditAnnotations")}
        | {"expressions": _VALIDATING["validations"]}
    },
    {
        "foreach": [
            {
                "list": "request.object.spec.containers",
                "preconditions": _DENY["conditions"],
                "deny": _DENY,
            }
        ]
    },
)
_RULES: Final = [
    {
        "name": f"rule-{at}",
        "match": {"any": [{"resources": {"kinds": ["Pod"]}}]} if at else _PODS,
        "context": [{"name": "a", "variable": {"value": "b", "jmesPath": "@"}}],
        "preconditions": _DENY["conditions"],
        "celPreconditions": _CONDITIONS if "cel" in check else [],
        "validate": {
            "message": "{{ request.object.metadata.name }}",
            "failureAction": "Enforce",
            **check,
        },
    }
    for at, check in enumerate(_CHECKS)
]
_KEY: Final = {"keys": {"publicKeys": "-----BEGIN PUBLIC KEY-----\nYQ==\n-----END PUBLIC KEY-----"}}
_IMAGES: Final = {
    "name": "images",
    "match": {"any": [{"resources": {"kinds": ["Pod"], "namespaces": ["shop"]}}]},
    "verifyImages": [
        {
            "imageReferences": ["ghcr.io/*"],
            "skipImageReferences": ["ghcr.io/a/*"],
            "failureAction": "Enforce",
            "attestors": [
                {
                    "count": 1,
                    "entries": [
                        _KEY,
                        {
                            "keyless": {
                                "issuer": "a",
                                "subject": "b",
                                "rekor": {"url": "https://a.example"},
                            }
                        },
                    ],
                }
            ],
            "attestations": [{"type": "https://a.example", "attestors": [{"entries": [_KEY]}]}],
            "mutateDigest": False,
            "imageRegistryCredentials": {"secrets": ["a"]},
        }
    ],
}
_OF_IMAGES: Final = {
    "validationActions": ["Deny"],
    "matchConstraints": _MATCHED,
    "matchImageReferences": [{"glob": "ghcr.io/*"}],
    "attestors": [{"name": "a", "cosign": {"keyless": {"identities": [{"issuer": "a", "subject": "b"}]}}}],
    "attestations": [{"name": "b", "intoto": {"type": "https://a.example"}}],
    "validationConfigurations": {"required": True, "mutateDigest": False},
    "validations": [{"expression": "images.containers.map(i, verifyImageSignatures(i, [attestors.a])).all(e, e > 0)"}],
    "evaluation": {"mode": "Kubernetes", "background": {"enabled": True}},
}  # fmt: skip
_OLD: Final = {"apiVersion": "kyverno.io/v1", "kind": "ClusterPolicy", "metadata": {"name": "p"}}


def _all_rules(document: Json) -> None:
    for _, outcome in converted(document):
        if not isinstance(outcome, Unwritable):
            ValidatingPolicy(outcome)


def _excused(document: Json) -> None:
    converted_exceptions(document, [{**_OLD, "spec": {"rules": _RULES}}])


CASES: Final[dict[str, tuple[Json, Callable[[Json], object]]]] = {
    "VAP": ({"kind": "ValidatingAdmissionPolicy", "spec": _VALIDATING | {"paramKind": {"apiVersion": "v1", "kind": "ConfigMap"}}}, read_policy),
    "MAP": ({"kind": "MutatingAdmissionPolicy", "spec": {**_CEL, "mutations": _MUTATIONS, "reinvocationPolicy": "Never"}}, read_mutating_policy),
    "binding": (
        {
            "kind": "ValidatingAdmissionPolicyBinding",
            "spec": {
                "policyName": "p",
                "validationActions": ["Deny"],
                "paramRef": {"selector": _SELECTOR, "parameterNotFoundAction": "Deny"},
                "matchResources": {"objectSelector": _SELECTOR},
            },
        },
        read_binding,
    ),
    "ValidatingPolicy": (
        {
            "kind": "ValidatingPolicy",
            "spec": {
                **_VALIDATING,
                "validationActions": ["Deny"],
                "evaluation": {"mode": "Kubernetes", "admission": {"enabled": True}},
                "autogen": {"podControllers": {"controllers": ["deployments"]}},
            },
        },
        lambda document: ValidatingPolicy(document).specs,
    ),
    "MutatingPolicy": (
        {"kind": "MutatingPolicy", "spec": {**_CEL, "mutations": _MUTATIONS, "autogen": {"podControllers": {"controllers": ["deployments"]}}}},
        lambda document: KyvernoMutatingPolicy(document).specs,
    ),
    "PolicyException": (
        {
            "kind": "PolicyException",
            "spec": {
                "policyRefs": [{"name": "p", "kind": "ValidatingPolicy"}],
                "matchConditions": _CONDITIONS,
                "images": ["a"],
                "allowedValues": ["b"],
                "reportResult": "skip",
                "expiresAt": "2030-01-01T00:00:00Z",
            },
        },
        KyvernoException,
    ),
    "older PolicyException": (
        {
            "apiVersion": "kyverno.io/v2",
            "kind": "PolicyException",
            "spec": {"exceptions": [{"policyName": "p", "ruleNames": ["rule-*"]}], "match": _PODS, "conditions": _DENY["conditions"]},
        },
        _excused,
    ),
    "images of a ClusterPolicy": ({**_OLD, "spec": {"rules": [_IMAGES]}}, lambda document: list(converted_rules(document))),
    "ImageValidatingPolicy": ({"kind": "ImageValidatingPolicy", "spec": _OF_IMAGES}, converted_policy),
    **{
        f"ClusterPolicy: {next(iter(check))}": ({**_OLD, "spec": {"validationFailureAction": "Audit", "background": True, "rules": [rule]}}, _all_rules)
        for check, rule in zip(_CHECKS, _RULES, strict=True)
    },
}  # fmt: skip
"""A policy of each kind, with what reads it."""


def _places(value: Any, place: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yields the path to each part, without that of the whole."""
    if place:
        yield place
    parts = (
        value.items() if type(value) is dict else enumerate(value if type(value) is list else ())
    )
    for key, part in parts:
        yield from _places(part, (*place, key))


@pytest.mark.parametrize("kind", CASES)
def test_a_part_of_another_shape_is_refused_or_has_no_effect(kind: str) -> None:
    """Each part is replaced by each odd value; another error would fail the test."""
    policy, read = CASES[kind]
    policy = {"apiVersion": "v1", "metadata": {"name": "p", "namespace": "shop"}, **policy}
    read(deepcopy(policy))
    for place in _places(policy["spec"], ("spec",)):
        for odd in ODD:
            document = deepcopy(policy)
            within: Any = document
            for key in place[:-1]:
                within = within[key]
            within[place[-1]] = odd
            try:
                read(document)
            except (InvalidAdmissionPolicy, InvalidPolicy, Unwritable):
                continue
            except Exception as error:
                raise AssertionError(f"{place} is {odd!r}") from error
