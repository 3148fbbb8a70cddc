"""What the decision log costs an admission, and what the sidecar can take."""
