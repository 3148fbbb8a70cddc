"""The targets: the kinds of things that can be reviewed."""
