"""The speed of the Rego engine beside the real ones."""
