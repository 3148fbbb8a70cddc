"""Names that Kubernetes and Gatekeeper gave, where several packages read or write them."""

from __future__ import annotations

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
"""What stands in a namespace's place for objects of no namespace; no namespace has such a name."""
