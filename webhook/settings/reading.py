"""Reads arguments and environment into validated settings."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace

from webhook.settings.flags import flags_of, parse
from webhook.settings.gatekeeper import Foreign
from webhook.settings.serve import CLUSTER_OPERATIONS, PodSettings, ServeSettings
from webhook.settings.serve_checks import validate


def read(arguments: Sequence[str], environment: Mapping[str, str] | None = None) -> ServeSettings:
    """Returns settings from the arguments and from the Pod's environment variables.

    They are ``POD_NAME``, ``POD_NAMESPACE``, ``POD_UID`` and ``POD_SERVICE_ACCOUNT``. Raises
    :class:`~webhook.settings.flags.InvalidFlag`.
    """
    environment = os.environ if environment is None else environment
    foreign = Foreign()
    pod = PodSettings(
        environment.get("POD_NAME", ""),
        environment.get("POD_NAMESPACE", ""),
        environment.get("POD_UID", ""),
        environment.get("POD_SERVICE_ACCOUNT", ""),
    )
    settings = parse(ServeSettings, arguments, foreign=foreign, overrides={"pod": pod})
    if (
        not settings.policies.paths
        and not settings.in_cluster
        and environment.get("KUBERNETES_SERVICE_HOST")
    ):
        # Defaults to the cluster in a Pod without files, as Gatekeeper's arguments name no source.
        settings = replace(settings, policies=replace(settings.policies, kubernetes=True))
    validate(settings)
    return replace(settings, notices=(*foreign.notices, *_notices(settings)))


def _notices(settings: ServeSettings) -> list[str]:
    notices = []
    if settings.limits.max_serving_threads > 1:
        notices.append("--max-serving-threads has no effect: one thread evaluates policies")
    if (
        "mutation-status" in settings.policies.operation
        and "status" not in settings.policies.operation
    ):
        notices.append("--operation=mutation-status has no effect without status, which does both")
    if not settings.in_cluster and (
        idle := sorted(CLUSTER_OPERATIONS & set(settings.policies.operation))
    ):
        notices.append(f"--operation={','.join(idle)} has no effect without --kubernetes")
    if settings.logging.emit_admission_events and not settings.in_cluster:
        notices.append("--emit-admission-events has no effect without --kubernetes")
    if not settings.audits:
        notices += [
            f"--{item.name} has no effect without --kubernetes and --operation=audit"
            for item in flags_of(ServeSettings)
            if item.section == "audit" and getattr(settings.audit, item.field) != item.default
        ]
    return notices
