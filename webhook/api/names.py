"""Names that Kubernetes and Gatekeeper gave, and the patterns of names (apimachinery, ``util/validation``)."""

from __future__ import annotations

import re
from typing import Final

CONSTRAINTS: Final = "constraints.gatekeeper.sh"
"""The group of constraints."""

OURS: Final = "waddle.dev"
"""The group of policies that Gatekeeper does not know."""

OURS_VERSION: Final = "v1alpha1"
"""Of their kinds."""

CONSTRAINT_GROUP: Final = "ConstraintGroup"
"""The kind of what decides by several policies as one constraint."""

WEBHOOK: Final = "validation.gatekeeper.sh"
AUDIT: Final = "audit.gatekeeper.sh"
"""Gatekeeper's enforcement points in a cluster."""

IGNORE: Final = "admission.gatekeeper.sh/ignore"
"""The label of namespaces that Gatekeeper's webhook is not asked about."""

NAME_MAX: Final = 253
"""Characters of an object's name."""

LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"
"""The annotation in which kubectl keeps a whole object."""

CLUSTER_WIDE: Final = "(cluster-wide)"
"""Stands in a namespace's place for objects of no namespace; no namespace has such a name."""


LABEL: Final = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
"""A DNS label (RFC 1123)."""

LABEL_1035: Final = "[a-z]([-a-z0-9]*[a-z0-9])?"
"""One that begins with a letter (RFC 1035)."""

SUBDOMAIN: Final = rf"{LABEL}(\.{LABEL})*"
QUALIFIED: Final = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
"""The part of a label's key after its prefix."""

LABEL_VALUE: Final = f"({QUALIFIED})?"

UUID: Final = re.compile(r"(?i)[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}")
"""As schemas and CEL have it: hyphens may be left out."""

LONE_SURROGATE: Final = re.compile("[\ud800-\udfff]")
"""Characters that Python's strings can hold and UTF-8 cannot."""
