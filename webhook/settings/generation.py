"""The flags of ``waddle serve`` that are about ValidatingAdmissionPolicies."""

from __future__ import annotations

from typing import Final

from webhook.settings.audit import AuditSettings
from webhook.settings.flags import flag
from webhook.values import dataclass

_GENERATING: Final = "ValidatingAdmissionPolicies"


@dataclass(frozen=True, slots=True)
class GenerationSettings(AuditSettings):
    """What is generated, and in which form."""

    default_create_vap_for_templates: bool = flag(
        True,
        "Make a ValidatingAdmissionPolicy of each template with CEL that does not say otherwise "
        "(generateVAP), with --operation=generate.",
        gatekeeper=True,
        group=_GENERATING,
    )
    default_create_vap_binding_for_constraints: bool = flag(
        True,
        "Make a ValidatingAdmissionPolicyBinding of each constraint of such a template; without it "
        "of those alone whose scopedEnforcementActions name vap.k8s.io.",
        gatekeeper=True,
        group=_GENERATING,
    )
    default_wait_for_vapb_generation: int = flag(
        30,
        "Seconds that a constraint's CRD has been served before a binding is made that reads "
        "constraints of it.",
        gatekeeper=True,
        group=_GENERATING,
    )
    sync_vap_enforcement_scope: bool = flag(
        True,
        "Give policies the scope that the webhook has: by its configuration "
        "(--validating-webhook-configuration-name), Config and the exempt namespaces. Without it "
        "they are about every creation and update.",
        gatekeeper=True,
        group=_GENERATING,
    )
    vap_generation_mode: str = flag(
        "template",
        "template makes one policy of a template, as Gatekeeper does: it reads constraints as "
        "parameters and leaves errors of its evaluation to the webhook. constraint makes one of "
        "each constraint, with its parameters written into it, which can fail closed.",
        group=_GENERATING,
        choices=("template", "constraint"),
    )
