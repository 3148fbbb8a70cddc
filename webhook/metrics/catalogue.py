"""All metrics, in the order in which documentation lists them: subject by subject, as declared."""

from __future__ import annotations

from typing import Final

from webhook.metrics import (
    admission,
    audit,
    cluster,
    decisions,
    images,
    mutation,
    policies,
    providers,
    reports,
    server,
    telemetry,
)
from webhook.metrics.declaration import Metric

_SUBJECTS: Final = (
    *(admission, mutation, providers, server, policies, decisions, cluster, audit, reports),
    telemetry,
    images,
)

METRICS: Final = tuple(
    declared
    for subject in _SUBJECTS
    for declared in vars(subject).values()
    if isinstance(declared, Metric)
)
