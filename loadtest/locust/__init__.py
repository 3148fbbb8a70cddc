"""Load tests with Locust: to replicas over TLS (`direct.py`), and through an API server (`indirect.py`).

`python -m loadtest.locust` starts what is needed and runs one of them; see `loadtest/README.md`.
Only `session`, `direct` and `indirect` import Locust, which has an environment of its own.
"""
