"""Kubernetes Events of policies and of admissions; repeated ones are counted up.

Events are a courtesy to people who look at an object: the API server drops them after an hour, and
failed writes are only counted. The package must not know how anything is decided.

For example, a constraint that refuses the same Pod a hundred times has one Event with that count.
"""
