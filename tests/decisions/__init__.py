"""Shared parts of the decision log's tests: processes, sinks and a disk that loses data."""
