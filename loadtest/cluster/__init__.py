"""A large cluster: what a start, a replica's memory and its steady state cost, beside Gatekeeper."""
