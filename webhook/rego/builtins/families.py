"""Imports every family of built-ins, so that the registry is complete."""
