"""The metrics of constraints' own code; :mod:`webhook.metrics` lists them with all others."""

from __future__ import annotations

from typing import Final

from webhook.metric import Metric

_W = "waddle_"

SPECIALISED_CONSTRAINTS: Final = Metric(
    f"{_W}specialised_constraints",
    "gauge",
    "Constraints with compiled code of their own, which those get that are evaluated often.",
)
SPECIALISED_BYTES: Final = Metric(
    f"{_W}specialised_bytes", "gauge", "Memory that constraints' own code takes, about."
)
SPECIALISATIONS_REFUSED: Final = Metric(
    f"{_W}specialisations_refused",
    "gauge",
    "Times that a constraint got no code of its own because the total was used up.",
)

SPECIALISATION_METRICS: Final = (
    SPECIALISED_CONSTRAINTS,
    SPECIALISED_BYTES,
    SPECIALISATIONS_REFUSED,
)
