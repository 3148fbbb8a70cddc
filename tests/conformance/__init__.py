"""Conformance to OPA's and Gatekeeper's own cases."""
