"""Waddle's CEL beside Kubernetes' own validator."""
