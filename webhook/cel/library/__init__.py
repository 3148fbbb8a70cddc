"""The functions of Kubernetes' CEL libraries, with an overload for each list of operand types.

For example, ``size`` has an overload for a string, bytes, a list and a map.
"""
