"""What tracing costs: a replica, and a review alone."""
