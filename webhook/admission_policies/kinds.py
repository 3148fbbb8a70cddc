"""The API server's own policies and their bindings: their names, and what may be wrong with them."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any, Final

from webhook.api.encoding import encode
from webhook.api.gvk import gvk_of, name_of
from webhook.api.shapes import object_of
from webhook.constraint.errors import ConstraintFrameworkError

if TYPE_CHECKING:
    from collections.abc import Mapping

GROUP: Final = "admissionregistration.k8s.io"
POLICY: Final = "ValidatingAdmissionPolicy"
BINDING: Final = "ValidatingAdmissionPolicyBinding"

MUTATING_POLICY: Final = "MutatingAdmissionPolicy"
MUTATING_BINDING: Final = "MutatingAdmissionPolicyBinding"

PLURALS: Final = {
    POLICY: "validatingadmissionpolicies",
    BINDING: "validatingadmissionpolicybindings",
    MUTATING_POLICY: "mutatingadmissionpolicies",
    MUTATING_BINDING: "mutatingadmissionpolicybindings",
}

ANSWER_GROUP: Final = "authorization.k8s.io"
ANSWER: Final = "SubjectAccessReview"
"""The kind whose status says who may do what, as an API server gave it; expressions ask for it."""

VERSIONS: Final = ("v1", "v1beta1", "v1alpha1")
"""The versions that API servers serve or have served; all are read alike."""

CONDITIONS_MAX: Final = 64
"""Match conditions of one policy (k8s.io/apiserver, admissionregistration validation)."""

REASONS: Final = ("Forbidden", "Invalid", "RequestEntityTooLarge")
"""Why a validation refuses, for the client; without one it is Invalid. The API's documentation names
Unauthorized, too, which API servers refuse."""

ACTIONS: Final = ("Deny", "Warn", "Audit")
"""The actions of a binding on a request that violates its policy."""

MUTATED_OPERATIONS: Final = ("CREATE", "UPDATE", "CONNECT")
"""The operations of mutating policies: no other has an object to change."""

OPERATIONS: Final = ("CREATE", "UPDATE", "DELETE", "CONNECT", "*")
"""The operations that rules may name."""

SCOPES: Final = ("Cluster", "Namespaced", "*")
"""The scopes of a rule: whether the resources it names are in a namespace."""


PATCH_TYPES: Final = ("ApplyConfiguration", "JSONPatch")
"""How a mutation says what it changes."""

REINVOCATIONS: Final = ("Never", "IfNeeded")
"""Whether a policy is asked once more when others have changed the object after it."""


def is_answer(document: Mapping[str, Any]) -> bool:
    """Whether an object answers what policies ask; without a status it is one like any other."""
    if gvk_of(document).group_kind != (ANSWER_GROUP, ANSWER):
        return False
    return "allowed" in object_of(document.get("status"))


def name_or_digest(document: Mapping[str, Any]) -> str:
    """The name of an object; an answer, which is sent and never stored, may have none: its digest."""
    name = name_of(document)
    if name or not is_answer(document):
        return name
    return hashlib.sha256(encode(dict(document))).hexdigest()[:12]


class InvalidAdmissionPolicy(ConstraintFrameworkError):
    """An API server would refuse it; the text begins with the field."""


class ConfigurationFault(Exception):
    """A binding's parameters cannot be had; the policy's failurePolicy says what becomes of it."""
