"""Pairs of forms for tests."""

# The same questions in every run, so that a failure is a change's; `make fuzz` asks others.
SEED = 20261122


PAIRS, BODIES, OLDER = 2000, 700, 500
"""The numbers of questions, for about 40 s of CPU."""
