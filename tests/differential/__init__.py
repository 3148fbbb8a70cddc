"""Our engine beside the real OPA: the same questions, and the answers compared."""
