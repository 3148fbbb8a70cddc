"""waddle verify: runs test suites of policies, and prints reports."""
