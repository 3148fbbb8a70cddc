"""Random and composed expressions, to our CEL and to Kubernetes' own."""
