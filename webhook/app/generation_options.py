"""From the flags to what the generation of policies reads."""

from __future__ import annotations

from typing import TYPE_CHECKING

from webhook.controllers.generate.scope import GenerationOptions
from webhook.generation.plan import Options
from webhook.generation.scope import exempted_patterns

if TYPE_CHECKING:
    from webhook.settings.serve import ServeSettings


def generation_options(settings: ServeSettings) -> GenerationOptions:
    """What the flags say of generated policies."""
    return GenerationOptions(
        Options(
            settings.default_create_vap_for_templates,
            settings.default_create_vap_binding_for_constraints,
            alone=settings.vap_generation_mode == "constraint",
            fails=settings.default_k8s_native_validation_failure_policy == "Fail",
        ),
        wait_seconds=settings.default_wait_for_vapb_generation,
        synced=settings.sync_vap_enforcement_scope,
        configuration=settings.validating_webhook_configuration_name,
        exempted=exempted_patterns(
            settings.exempt_namespace,
            settings.exempt_namespace_prefix,
            settings.exempt_namespace_suffix,
        ),
    )
