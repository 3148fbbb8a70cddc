"""Constants of the API server's own policies and bindings, and the errors of reading them."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any, Final

from webhook.api.encoding import encode
from webhook.api.gvk import gvk_of, name_of
from webhook.api.shapes import object_of
from webhook.constraint.errors import ConstraintFrameworkError

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
"""The kind whose status has an API server's answer on a user's right; expressions query it."""

VERSIONS: Final = ("v1", "v1beta1", "v1alpha1")
"""The versions that API servers serve or have served; all are read in the same way."""

CONDITIONS_MAX: Final = 64
"""The most match conditions of one policy (k8s.io/apiserver, admissionregistration validation)."""

REASONS: Final = ("Forbidden", "Invalid", "RequestEntityTooLarge")
"""The reasons of a failed validation for the client; the default is Invalid. The API's
documentation names Unauthorized, too, which API servers refuse."""

ACTIONS: Final = ("Deny", "Warn", "Audit")
"""The actions of a binding on a request that violates its policy."""

MUTATED_OPERATIONS: Final = ("CREATE", "UPDATE", "CONNECT")
"""The operations of mutating policies: no other operation has an object to change."""

OPERATIONS: Final = ("CREATE", "UPDATE", "DELETE", "CONNECT", "*")
"""The operations that rules may name."""

SCOPES: Final = ("Cluster", "Namespaced", "*")
"""The scopes of a rule: whether the resources it names are in a namespace."""


PATCH_TYPES: Final = ("ApplyConfiguration", "JSONPatch")
"""The forms of a mutation's change."""

REINVOCATIONS: Final = ("Never", "IfNeeded")
"""Whether a policy runs again after other policies have changed the object."""


def is_answer(document: Mapping[str, Any]) -> bool:
    """Whether an object is a SubjectAccessReview with an answer in its status."""
    if gvk_of(document).group_kind != (ANSWER_GROUP, ANSWER):
        return False
    return "allowed" in object_of(document.get("status"))


def name_or_digest(document: Mapping[str, Any]) -> str:
    """Returns the name of an object, or a digest for an answer without one.

    Answers are sent and never stored, so they may lack a name.
    """
    name = name_of(document)
    if name or not is_answer(document):
        return name
    return hashlib.sha256(encode(dict(document))).hexdigest()[:12]


class InvalidAdmissionPolicy(ConstraintFrameworkError):
    """An API server would refuse this policy; the text begins with the field."""


class ConfigurationFault(Exception):
    """The parameters of a binding are unavailable.

    The policy's failurePolicy decides the result.
    """
