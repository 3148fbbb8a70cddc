"""CEL as Kubernetes has it: text in, typed expressions out that evaluate over decoded JSON."""
