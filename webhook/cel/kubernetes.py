"""The variables of admission and their types (k8s.io/apiserver, admission/plugin/cel/compile.go).

Each kind of expression has an environment: :func:`admission` for validations and variables,
:func:`mutations`, and :func:`match_conditions`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from webhook.cel.check.environment import JSON_PATCH, Environment, Overload
from webhook.cel.check.types import (
    BOOL,
    BYTES,
    DOUBLE,
    DURATION,
    DYN,
    INT,
    NULL,
    STRING,
    TIMESTAMP,
    UINT,
    Type,
    list_of,
    map_of,
)
from webhook.cel.run.values import VARIABLES


def _message(name: str) -> Type:
    return Type(name, message=True)


_KIND: Final = _message("kubernetes.GroupVersionKind")
_RESOURCE: Final = _message("kubernetes.GroupVersionResource")
_USER: Final = _message("kubernetes.UserInfo")
ADMISSION_REQUEST: Final = "kubernetes.AdmissionRequest"
_REQUEST: Final = _message(ADMISSION_REQUEST)
_METADATA: Final = _message("kubernetes.NamespaceMetadata")
_SPEC: Final = _message("kubernetes.NamespaceSpec")
_STATUS: Final = _message("kubernetes.NamespaceStatus")
_CONDITION: Final = _message("kubernetes.NamespaceCondition")
_NAMESPACE: Final = _message("kubernetes.Namespace")
_VARIABLES: Final = _message(VARIABLES)
_AUTHORIZERS: Final = {
    "authorizer": Type("kubernetes.authorization.Authorizer"),
    "authorizer.requestResource": Type("kubernetes.authorization.ResourceCheck"),
}
_PATCH: Final = {"op": STRING, "path": STRING, "from": STRING, "value": DYN}

_MESSAGES: Final[dict[str, dict[str, Type]]] = {
    _KIND.name: {"group": STRING, "version": STRING, "kind": STRING},
    _RESOURCE.name: {"group": STRING, "version": STRING, "resource": STRING},
    _USER.name: {
        "username": STRING,
        "uid": STRING,
        "groups": list_of(STRING),
        "extra": map_of(STRING, list_of(STRING)),
    },
    _REQUEST.name: {
        "kind": _KIND,
        "resource": _RESOURCE,
        "subResource": STRING,
        "requestKind": _KIND,
        "requestResource": _RESOURCE,
        "requestSubResource": STRING,
        "name": STRING,
        "namespace": STRING,
        "operation": STRING,
        "userInfo": _USER,
        "dryRun": BOOL,
        "options": DYN,
    },
    _NAMESPACE.name: {"metadata": _METADATA, "spec": _SPEC, "status": _STATUS},
    _METADATA.name: {
        "name": STRING,
        "generateName": STRING,
        "namespace": STRING,
        "labels": map_of(STRING, STRING),
        "annotations": map_of(STRING, STRING),
        "UID": STRING,
        "creationTimestamp": TIMESTAMP,
        "deletionGracePeriodSeconds": INT,
        "deletionTimestamp": TIMESTAMP,
        "generation": INT,
        "resourceVersion": STRING,
        "finalizers": list_of(STRING),
    },
    _SPEC.name: {"finalizers": list_of(STRING)},
    _STATUS.name: {"conditions": list_of(_CONDITION), "phase": STRING},
    _CONDITION.name: {
        "status": STRING,
        "type": STRING,
        "lastTransitionTime": TIMESTAMP,
        "message": STRING,
        "reason": STRING,
    },
}


_PLAIN: Final = frozenset(
    {Type("any"), BOOL, BYTES, DOUBLE, DURATION, INT, NULL, STRING, TIMESTAMP, UINT}
)


def as_declared(of: Type) -> Type:
    """Returns the declared type of a composed variable.

    Types of libraries and optional types are declared as dyn, so their errors are reported by the
    evaluation (k8s.io/apiserver, admission/plugin/cel/composition.go).
    """
    if of in _PLAIN:
        return of
    if of.name in {"list", "map"}:
        return Type(of.name, tuple(as_declared(part) for part in of.parts))
    return DYN


def admission(
    variables: Mapping[str, Type], *, params: bool, authorizer: bool = False
) -> Environment:
    """Returns the environment of an expression, with the composed variables that it may read.

    ``params`` adds the resource of parameters, ``authorizer`` adds authorization checks.
    """
    declared = {
        "object": DYN,
        "oldObject": DYN,
        "request": _REQUEST,
        "namespaceObject": _NAMESPACE,
        "variables": _VARIABLES,
    }
    if params:
        declared["params"] = DYN
    if authorizer:
        declared |= _AUTHORIZERS
    composed = {name: as_declared(of) for name, of in variables.items()}
    return Environment(declared, {**_MESSAGES, VARIABLES: composed})


def mutations(variables: Mapping[str, Type], *, params: bool) -> Environment:
    """Returns the environment of mutations: expressions may write objects and JSON Patches."""
    return patching(admission(variables, params=params, authorizer=True))


def patching(environment: Environment) -> Environment:
    """Returns an environment whose expressions may write objects and JSON Patches, too."""
    return replace(
        environment,
        messages={**environment.messages, JSON_PATCH: _PATCH},
        functions={
            **environment.functions,
            "jsonpatch.escapeKey": (
                Overload(member=False, args=(STRING,), result=STRING, free=()),
            ),
        },
        patches=True,
    )


def match_conditions(*, params: bool = True) -> Environment:
    """Returns the environment of match conditions: no composed variables, but an authorizer."""
    declared = dict(admission({}, params=params, authorizer=True).variables)
    del declared["variables"]
    return Environment(declared, _MESSAGES)
