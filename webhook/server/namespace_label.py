"""``/v1/admitlabel``: restricts which Namespaces may be exempt from the webhook.

The label ``admission.gatekeeper.sh/ignore`` takes a namespace out of the reach of policies, so only
namespaces that the operator named may carry it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from webhook.api.gvk import name_of
from webhook.api.names import IGNORE
from webhook.review.releasing import RELEASED, only_releases
from webhook.server import verdict
from webhook.values import dataclass

if TYPE_CHECKING:
    from webhook.api.admission import AdmissionRequest, AdmissionResponse


@dataclass(frozen=True, slots=True)
class Exemptions:
    """The namespaces that may carry the label."""

    names: tuple[str, ...] = ()
    prefixes: tuple[str, ...] = ()
    suffixes: tuple[str, ...] = ()

    def cover(self, name: str) -> bool:
        """Whether a namespace is one of them."""
        return name in self.names or name.startswith(self.prefixes) or name.endswith(self.suffixes)


def decide(request: AdmissionRequest, exemptions: Exemptions) -> AdmissionResponse:
    """Answers a request, in Gatekeeper's words (pkg/webhook/namespacelabel.go)."""
    uid = request.uid
    if request.operation == "DELETE":
        return verdict.allowed(uid, "Delete is always allowed")
    if request.kind.group_kind != ("", "Namespace"):
        return verdict.allowed(uid, "Not a namespace")
    if request.object is None:
        message = "while deserializing resource: unexpected end of JSON input"
        return verdict.denied(uid, message)._replace(code=500)
    name = name_of(request.object)
    if exemptions.cover(name):
        return verdict.allowed(uid, f"Namespace {name} is allowed to set {IGNORE}")
    if only_releases(request):
        return verdict.allowed(uid, RELEASED)
    if _carries_label(request.object):
        return verdict.denied(uid, f"Only exempt namespace can have the {IGNORE} label")
    return verdict.allowed(uid, f"Namespace is not setting the {IGNORE} label")


def _carries_label(namespace: dict[str, object]) -> bool:
    """Whether the Namespace has the label, with any value."""
    metadata = namespace.get("metadata")
    labels = metadata.get("labels") if type(metadata) is dict else None
    return type(labels) is dict and IGNORE in labels
