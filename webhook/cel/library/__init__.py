"""The functions of Kubernetes' CEL libraries, with an overload for each list of operand types."""
