"""How cost grows: with constraints, objects, replicas, data and changes, each beside Gatekeeper.

Every point is a JSON file of its own below `loadtest/results/curves/`, so that a run that was
stopped goes on where it was. `python -m loadtest.curves` measures what is missing and draws.
"""
