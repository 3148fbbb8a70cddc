"""The releases of others whose behaviour is ours."""

from __future__ import annotations

from typing import Final

OPA_LEVEL: Final = "1.22.0"
"""The OPA whose Rego this is."""

KUBERNETES_LEVEL: Final = "1.35"
"""The Kubernetes whose CEL this is (docs/cel.md)."""
