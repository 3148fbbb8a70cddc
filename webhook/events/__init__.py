"""Kubernetes Events: of policies, of admissions, and counted up where they come again.

They are a courtesy to people who look at an object: the API server forgets them after an hour, and
one that cannot be written is counted. The package must not know how anything is decided.
"""
