"""Go's text/template: tokens, tree, execution and functions."""
