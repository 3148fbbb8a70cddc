"""The cost of tracing: a replica, and a review alone."""
