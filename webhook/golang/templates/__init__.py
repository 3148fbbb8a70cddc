"""Go's text/template: its tokens, its tree, what executes it, its functions."""
