"""waddle conftest: conftest's commands, options and outputs."""
