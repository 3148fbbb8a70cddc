"""The audit beside Gatekeeper's: time, processor and memory of a sweep, on the same cluster."""
