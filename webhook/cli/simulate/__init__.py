"""waddle simulate: recorded decisions decided again by other policies."""
