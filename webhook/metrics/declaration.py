"""What a metric is."""

from __future__ import annotations

from typing import Literal

from webhook.values import dataclass

MetricKind = Literal["counter", "gauge", "histogram"]


@dataclass(frozen=True, slots=True, eq=False)  # by identity: they are keys on the hot path
class Metric:
    """A metric as declared; a counter's name is without the ``_total`` that readers see."""

    name: str
    kind: MetricKind
    help: str
    labels: tuple[str, ...] = ()
    gatekeeper: bool = False
    buckets: tuple[float, ...] = ()
