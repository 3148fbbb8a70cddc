"""waddle krm: a function of kustomize and kpt that validates a ResourceList."""
