"""The functions of Kubernetes' CEL libraries, by the types of what they are given."""
