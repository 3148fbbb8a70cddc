"""Imports every family of built-ins, so that the registry is complete.

A family that is not imported here does not exist.
"""
