"""How long a test waits for what must come."""

import os

PATIENCE_SECONDS = float(os.environ.get("WADDLE_TEST_PATIENCE", "240"))
"""A wait ends as soon as what it waits for is there, so this costs time only where a test fails;
on a machine with ten times the work that it has cores for, what takes 20 seconds alone may come
late. Less than the end that pytest puts to each test (`timeout` in pyproject.toml)."""
