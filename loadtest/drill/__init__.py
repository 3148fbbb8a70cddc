"""Attacks on a running server, each with a bound that must hold meanwhile."""
