"""The targets: the kinds of values that can be reviewed."""
