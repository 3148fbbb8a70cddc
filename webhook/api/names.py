"""Names that Kubernetes and Gatekeeper gave, and the patterns of names (apimachinery, ``util/validation``)."""

from __future__ import annotations

import re
from typing import Final

CONSTRAINTS: Final = "constraints.gatekeeper.sh"
"""The group of constraints."""

OURS: Final = "waddle.dev"
"""The API group of Waddle's own policies, unknown to Gatekeeper."""

OURS_VERSION: Final = "v1alpha1"
"""Of their kinds."""

CONSTRAINT_GROUP: Final = "ConstraintGroup"
"""The kind that combines several policies into one constraint."""

WEBHOOK: Final = "validation.gatekeeper.sh"
AUDIT: Final = "audit.gatekeeper.sh"
"""Gatekeeper's enforcement points in a cluster."""

IGNORE: Final = "admission.gatekeeper.sh/ignore"
"""The label of namespaces that are exempt from Gatekeeper's webhook."""

NAME_MAX: Final = 253
"""Characters of an object's name."""

LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"
"""The annotation in which kubectl keeps a whole object."""

CLUSTER_WIDE: Final = "(cluster-wide)"
"""The namespace shown for cluster-scoped objects; no namespace can have this name."""


LABEL: Final = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
"""A DNS label (RFC 1123)."""

LABEL_1035: Final = "[a-z]([-a-z0-9]*[a-z0-9])?"
"""A label that begins with a letter (RFC 1035)."""

SUBDOMAIN: Final = rf"{LABEL}(\.{LABEL})*"
QUALIFIED: Final = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
"""The part of a label's key after its prefix."""

LABEL_VALUE: Final = f"({QUALIFIED})?"

UUID: Final = re.compile(r"(?i)[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}")
"""UUIDs in schemas and CEL: hyphens are optional."""

LONE_SURROGATE: Final = re.compile("[\ud800-\udfff]")
"""Characters that are valid in Python's strings but not in UTF-8."""
