"""The decision log's cost for an admission, and the sidecar's throughput."""
