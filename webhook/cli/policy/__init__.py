"""waddle policy: policies as artifacts of registries."""
